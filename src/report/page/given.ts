/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import type { Given } from './protocol.ts';

/** The bundle that `colibri report` put into the page. */
export interface Embedded {
  readonly name: string;
  readonly zip: Uint8Array<ArrayBuffer>;
}

export function embeddedBundle(): Embedded | undefined {
  const text = document.getElementById('bundle')?.textContent ?? 'null';
  const value: { name: string; zip: string } | null = JSON.parse(text);
  return value === null ? undefined : { name: value.name, zip: fromBase64(value.zip) };
}

const STEP = 1_048_576;

// In steps, because a text of a hundred megabytes would be held three times over.
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let from = 0; from < text.length; from += STEP) {
    const part = atob(text.slice(from, from + STEP));
    for (let i = 0; i < part.length; i += 1) bytes[at + i] = part.charCodeAt(i);
    at += part.length;
  }
  return bytes;
}

/** What was chosen: a zip, a certificate, or the files of a folder. */
export async function fromFiles(files: Iterable<File>): Promise<Given | undefined> {
  const all = [...files];
  const [only] = all;
  if (only === undefined) return undefined;
  if (all.length === 1 && !only.webkitRelativePath.includes('/'))
    return (await isZip(only)) ? { zip: only } : { certificate: only };
  return { files: all.map((file) => [file.webkitRelativePath || file.name, file] as const) };
}

/** What was dropped: a zip, a certificate, or a folder with everything in it. */
export async function fromDrop(transfer: DataTransfer): Promise<Given | undefined> {
  // Both must be taken before the first wait: afterwards the browser has emptied them.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry());
  const files = [...transfer.files];
  if (!entries.some((entry) => entry?.isDirectory)) return await fromFiles(files);
  const found: [string, Blob][] = [];
  for (const entry of entries) if (entry !== null) await collect(entry, '', found);
  return { files: found };
}

const FILES_MAX = 100_000;

async function collect(entry: FileSystemEntry, prefix: string, found: [string, Blob][]): Promise<void> {
  const path = `${prefix}${entry.name}`;
  if (found.length > FILES_MAX) throw new Error(`There are more than ${FILES_MAX} files.`);
  if (isFile(entry)) {
    found.push([path, await new Promise<File>((resolve, reject) => entry.file(resolve, reject))]);
  } else if (isDirectory(entry)) {
    const reader = entry.createReader();
    const next = () =>
      new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    for (let batch = await next(); batch.length > 0; batch = await next())
      for (const child of batch) await collect(child, `${path}/`, found);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isDirectory(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

async function isZip(file: File): Promise<boolean> {
  const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return file.name.toLowerCase().endsWith('.zip') || (start[0] === 0x50 && start[1] === 0x4b);
}
