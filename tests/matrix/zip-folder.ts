import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ZipWriter } from '../../src/export/files.ts';
import { BundleFolder } from './forgeries/bundles.ts';

/** Packs a folder as `colibri export` packs one, and answers where. */
export async function packFolder(folder: string): Promise<string> {
  const path = `${folder}.zip`;
  const zip = new ZipWriter(path);
  for (const name of new BundleFolder(folder).names())
    await zip.add(name, [readFileSync(join(folder, name))]);
  zip.close();
  return path;
}
