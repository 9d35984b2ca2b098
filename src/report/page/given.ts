import type { Period } from '../glance.ts';
import type { Abandoned } from '../live/form.ts';
import type { Given } from './worker/open.ts';

/** The bundle that `colibri report` put into the page. */
export type Embedded = NonNullable<ReturnType<typeof embeddedBundle>>;

/** Whether `colibri serve` sent the page, which then asks its server. */
export function isLive(): boolean {
  return document.getElementById('bundle')?.textContent === '{"live":true}';
}

const STEP = 1_048_576;

export function embeddedBundle() {
  const text = document.getElementById('bundle')?.textContent ?? 'null';
  type Value = { name: string; abandoned?: Abandoned; period?: Period; zip: string };
  const value: Value | null = JSON.parse(text);
  if (value === null || isLive()) return undefined;
  // In steps, because a text of a hundred megabytes would be held three times over.
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < value.zip.length; at += STEP)
    parts.push(Buffer.from(value.zip.slice(at, at + STEP), 'base64'));
  const { name, abandoned, period } = value;
  return { name, abandoned, period, zip: new Blob(parts, { type: 'application/zip' }) };
}

type Open = (given: Given, title: string) => Promise<void>;

/** Opens what was chosen: a zip, a certificate, or the files of a folder. */
export async function openFiles(files: readonly File[], open: Open): Promise<void> {
  const [first] = files;
  if (first === undefined) return;
  const [folder = ''] = first.webkitRelativePath.split('/');
  if (files.length === 1 && folder === '') {
    const isZip = first.name.toLowerCase().endsWith('.zip') || (await first.slice(0, 2).text()) === 'PK';
    return await open(isZip ? { zip: first } : { certificate: first }, first.name);
  }
  const named = files.map((file) => [file.webkitRelativePath || file.name, file] as const);
  await open({ files: named }, folder || first.name);
}

/** Opens what was dropped: a zip, a certificate, or a folder with everything in it. */
export async function openDropped(transfer: DataTransfer, open: Open): Promise<void> {
  // Both must be taken before the first wait: afterwards the browser has emptied them.
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const files = [...transfer.files];
  if (!entries.some(({ isDirectory }) => isDirectory)) return await openFiles(files, open);
  const found: [string, Blob][] = [];
  for (const entry of entries) await collect(entry, '', found);
  await open({ files: found }, entries[0]?.name ?? '');
}

const FILES_MAX = 100_000;

async function collect(entry: FileSystemEntry, prefix: string, found: [string, Blob][]): Promise<void> {
  const path = `${prefix}${entry.name}`;
  if (found.length > FILES_MAX) throw new Error(`There are more than ${FILES_MAX} files.`);
  if (entry instanceof FileSystemFileEntry)
    found.push([path, await new Promise<File>((resolve, reject) => entry.file(resolve, reject))]);
  else if (entry instanceof FileSystemDirectoryEntry) {
    const reader = entry.createReader();
    const next = () =>
      new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    for (let batch = await next(); batch.length > 0; batch = await next())
      for (const child of batch) await collect(child, `${path}/`, found);
  }
}
