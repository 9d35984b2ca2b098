import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BundleRequest, type WrittenBundle, writeBundle } from '../export/bundle.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { readIfPresent } from '../trust/private-files.ts';

/** The empty page holds this once; the data replaces it. */
const NO_BUNDLE = '<script type="application/json" id="bundle">null</script>';
const OPEN = '<script type="application/json" id="bundle">{"name":';

/** A multiple of three, so that pieces of base64 can be put together. */
const CHUNK_BYTES = 3 * 262_144;

/**
 * The page that checks bundles, without one inside: `verify.html` in a bundle. The build puts it beside the command line;
 * run from source, it is in `dist`.
 */
export function reportPage(): string {
  for (const place of ['verify.html', '../../dist/verify.html']) {
    const page = readIfPresent(fileURLToPath(new URL(place, import.meta.url)));
    if (page !== undefined) return page;
  }
  throw new Error('verify.html is not beside the program: the installation is incomplete. Install it again.');
}

/**
 * Writes the page with a bundle inside as one file. The bundle is the very zip that `colibri export` makes, so that the
 * page has one kind of input and can hand it out again.
 */
export async function writeReport(
  storage: StorageEngine,
  request: BundleRequest,
  path: string,
): Promise<WrittenBundle & { readonly bytes: number }> {
  const target = resolve(path);
  assertReplaceable(target);
  const page = reportPage();
  const [before, after] = splitPage(page);
  const folder = mkdtempSync(join(tmpdir(), 'colibri-report-'));
  try {
    const name = `${basename(target).replace(/\.html?$/i, '')}.zip`;
    const zip = join(folder, 'bundle.zip');
    const written = await writeBundle(storage, { ...request, page }, zip);
    mkdirSync(dirname(target), { recursive: true });
    const bytes = writePage(target, [
      `${before}${OPEN}${inScript(name)},"zip":"`,
      zip,
      `"}</script>${after}`,
    ]);
    return { ...written, bytes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Only a report of ours may be overwritten. */
function assertReplaceable(target: string): void {
  const there = readIfPresent(target);
  if (there === undefined || there.includes('<title>Colibri report</title>')) return;
  throw new Error(
    `${target} exists and is not a report, so it was not overwritten. Name another file with -o.`,
  );
}

/** JSON that cannot end the script element it is in. */
function inScript(value: string): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function splitPage(page: string): readonly [string, string] {
  const [before, after, more] = page.split(NO_BUNDLE);
  if (before === undefined || after === undefined || more !== undefined)
    throw new Error('verify.html has no place for a bundle, or more than one');
  return [before, after];
}

/** The file appears at the target only when it is complete. Only its owner may read it: calls may have been given secrets. */
function writePage(target: string, [before, zip, after]: readonly [string, string, string]): number {
  const making = join(dirname(target), `.${basename(target)}.${process.pid}.new`);
  const fd = openSync(making, 'wx', 0o600);
  let bytes = 0;
  const write = (text: string) => {
    const data = Buffer.from(text);
    for (let done = 0; done < data.length; ) done += writeSync(fd, data, done);
    bytes += data.length;
  };
  try {
    write(before);
    for (const chunk of chunksOf(zip)) write(chunk.toString('base64'));
    write(after);
    closeSync(fd);
    renameSync(making, target);
  } catch (error) {
    rmSync(making, { force: true });
    throw error;
  }
  return bytes;
}

function* chunksOf(path: string): Generator<Buffer> {
  const fd = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      let filled = 0;
      for (let read = -1; read !== 0 && filled < CHUNK_BYTES; filled += read)
        read = readSync(fd, buffer, filled, CHUNK_BYTES - filled, null);
      if (filled === 0) return;
      yield buffer.subarray(0, filled);
      if (filled < CHUNK_BYTES) return;
    }
  } finally {
    closeSync(fd);
  }
}
