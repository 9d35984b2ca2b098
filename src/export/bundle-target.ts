import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { formatSums, MARKER, SUMS } from '../verify/sources/forms.ts';
import { openBundle, ZipWriter } from './files.ts';

/** What a file is made of: lines of text, or bytes. */
type Parts = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Where a bundle is written: a folder, or a zip. Nothing is at the target before everything is. */
export interface BundleTarget {
  write(name: string, parts: Parts): Promise<void>;
  /** Writes the sums and puts the whole in its place. */
  finish(): Promise<void>;
  /** Removes what was written so far. */
  abandon(): void;
}

/** Prepares to write a bundle at `path`; a name ending in .zip makes a zip. Refuses to replace anything but a bundle. */
export async function openTarget(path: string): Promise<BundleTarget> {
  const target = resolve(path);
  await assertReplaceable(target);
  const making = join(dirname(target), `.${basename(target)}.${process.pid}.new`);
  mkdirSync(dirname(target), { recursive: true });
  const zip = target.endsWith('.zip') ? new ZipWriter(making) : undefined;
  if (zip === undefined) mkdirSync(making, { mode: 0o700 });
  const sums = new Map<string, string>();

  async function write(name: string, parts: Parts): Promise<void> {
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of chunked(parts)) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const path = join(making, name);
    if (zip === undefined) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const asNew = { flag: 'wx', mode: 0o600, flush: true };
    await (zip === undefined ? writeFile(path, hashed(), asNew) : zip.add(name, hashed()));
    sums.set(name, hash.digest('hex'));
  }

  return {
    write,
    async finish() {
      await write(SUMS, [formatSums(sums)]);
      zip?.close();
      putInPlace(making, target);
    },
    abandon() {
      zip?.abandon();
      rmSync(making, { recursive: true, force: true });
    },
  };
}

/** Lines of text gathered into chunks that are worth a write. */
async function* chunked(parts: Parts, chars = 262_144): AsyncGenerator<Buffer> {
  let text = '';
  for await (const part of parts) {
    if (typeof part === 'string') text += part;
    else yield Buffer.from(part);
    if (text.length < chars) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}

/** Nothing, an empty folder, or a bundle of ours may stand where a bundle goes. */
async function assertReplaceable(target: string): Promise<void> {
  if (!existsSync(target)) return;
  if (lstatSync(target).isDirectory() && readdirSync(target).length === 0) return;
  if (!(await isBundle(target)))
    throw new Error(
      `${target} exists and is not a bundle, so it is not overwritten. Name another place with -o.`,
    );
}

async function isBundle(target: string): Promise<boolean> {
  try {
    const { names, close } = await openBundle(target);
    close();
    return names.includes(MARKER) && names.includes(SUMS);
  } catch {
    // Whatever cannot be opened as a bundle is something else, and stays.
    return false;
  }
}

function putInPlace(made: string, target: string): void {
  const old = `${made}.old`;
  const replaced = existsSync(target);
  if (replaced) renameSync(target, old);
  renameSync(made, target);
  if (replaced) rmSync(old, { recursive: true, force: true });
}
