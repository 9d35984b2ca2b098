import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { openBundle } from './bundle-source.ts';
import { MARKER, SUMS } from './layout.ts';
import { chunked } from './lines.ts';
import { writeFully, ZipWriter } from './zip.ts';

/** Where a bundle is written: a folder, or a zip. Nothing is at the target before everything is. */
export interface BundleTarget {
  /** Writes one file, line by line. */
  write(name: string, lines: AsyncIterable<string> | Iterable<string>): Promise<void>;
  /** Writes one file that is no text. */
  writeBytes(name: string, bytes: Uint8Array): Promise<void>;
  /** Writes the sums and puts the whole in its place. */
  finish(): Promise<void>;
  /** Removes what was written so far. */
  abandon(): void;
}

/** Prepares to write a bundle at `path`; a name ending in .zip makes a zip. Refuses to replace anything but a bundle. */
export function openTarget(path: string): BundleTarget {
  const target = resolve(path);
  assertReplaceable(target);
  const making = join(dirname(target), `.${basename(target)}.${process.pid}.new`);
  mkdirSync(dirname(target), { recursive: true });
  const files = target.endsWith('.zip') ? zipFiles(making) : folderFiles(making);
  const sums = new Map<string, string>();

  async function write(name: string, lines: AsyncIterable<string> | Iterable<string>): Promise<void> {
    await add(name, chunked(lines));
  }

  async function add(name: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    await files.write(name, hashed());
    sums.set(name, hash.digest('hex'));
  }

  return {
    write,
    writeBytes: (name, bytes) => add(name, [Buffer.from(bytes)]),
    async finish() {
      await write(SUMS, [formatSums(sums)]);
      files.close();
      putInPlace(making, target);
    },
    abandon() {
      files.abandon();
      rmSync(making, { recursive: true, force: true });
    },
  };
}

/** One line a file, as `sha256sum -c` reads them, in the order of their names. */
export function formatSums(sums: ReadonlyMap<string, string>): string {
  return [...sums]
    .filter(([name]) => name !== SUMS)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hash]) => `${hash}  ${name}\n`)
    .join('');
}

interface Files {
  write(name: string, chunks: AsyncIterable<Buffer>): Promise<void>;
  close(): void;
  abandon(): void;
}

function folderFiles(folder: string): Files {
  mkdirSync(folder, { mode: 0o700 });
  return {
    async write(name, chunks) {
      const path = join(folder, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const fd = openSync(path, 'wx', 0o600);
      try {
        for await (const chunk of chunks) writeFully(fd, chunk, null);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    },
    close() {},
    abandon() {},
  };
}

function zipFiles(path: string): Files {
  const zip = new ZipWriter(path);
  return {
    write: (name, chunks) => zip.add(name, chunks),
    close: () => zip.close(),
    abandon: () => zip.abandon(),
  };
}

/** Nothing, an empty folder, or a bundle of ours may stand where a bundle goes. */
function assertReplaceable(target: string): void {
  if (!existsSync(target)) return;
  if (lstatSync(target).isDirectory() && readdirSync(target).length === 0) return;
  if (!isBundle(target))
    throw new Error(
      `${target} exists and is no bundle, so it is not overwritten. Name another place with -o.`,
    );
}

function isBundle(target: string): boolean {
  try {
    const source = openBundle(target);
    try {
      return source.names.has(MARKER) && source.names.has(SUMS);
    } finally {
      source.close();
    }
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
