/// <reference lib="dom" />
import { isEntryName } from '../../../export/zip-format.ts';
import type { Given } from '../protocol.ts';
import { readZip } from './zip.ts';

/** The files of a bundle by name. */
export type Files = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

/** Says why something is no bundle that can be read. The message is a whole sentence. */
export class BundleError extends Error {}

/** Reads everything that was handed over. Hostile input enters here. */
export async function readFiles(given: Given): Promise<Files> {
  if ('zip' in given) return await readZip(new Uint8Array(given.zip));
  const prefix = commonFolder(given.files.map(([name]) => name));
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const [path, file] of given.files) {
    const name = path.slice(prefix.length);
    if (!isEntryName(name)) throw new BundleError(`${JSON.stringify(name)} does not belong in a bundle.`);
    if (files.has(name)) throw new BundleError(`There are two files ${name}.`);
    files.set(name, new Uint8Array(await file.arrayBuffer()));
  }
  return files;
}

/** Files of a chosen folder come with its name before them. */
function commonFolder(names: readonly string[]): string {
  const marker = names.find((name) => name === 'bundle.json' || name.endsWith('/bundle.json')) ?? '';
  const prefix = marker.slice(0, -'bundle.json'.length);
  return names.every((name) => name.startsWith(prefix)) ? prefix : '';
}
