import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { readIfPresent, replaceFile } from './private-files.ts';

/**
 * Which log was last seen at a path. Tells a replaced database from a new one. The path counts both as it was named and
 * as it resolves: a link put in the place of the folder leads elsewhere, and still has the old name.
 */
export class PathMemory {
  readonly #entries: readonly { readonly path: string; readonly file: string }[];

  constructor(configDir: string, dbPath: string) {
    const paths = new Set([resolve(dbPath), realPath(dbPath)]);
    this.#entries = [...paths].map((path) => ({
      path,
      file: join(configDir, 'paths', `${sha256Hex(path).slice(0, 32)}.json`),
    }));
  }

  /** The origins seen here, each once. More than one only where the name and what it resolves to disagree. */
  seen(): readonly string[] {
    return [...new Set(this.#entries.flatMap(({ file }) => originIn(readIfPresent(file)) ?? []))];
  }

  /** An origin that was seen here and is not this one. */
  otherThan(origin: string | undefined): string | undefined {
    return this.seen().find((seen) => seen !== origin);
  }

  /** Remembers under both names. Writes only what is new: each write is an fsync. */
  write(origin: string): void {
    for (const { path, file } of this.#entries) {
      if (originIn(readIfPresent(file)) === origin) continue;
      makePrivateFolder(dirname(file));
      replaceFile(file, `${JSON.stringify({ path, origin })}\n`);
    }
  }
}

function originIn(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    const entry: unknown = JSON.parse(text);
    const isEntry = typeof entry === 'object' && entry !== null && 'origin' in entry;
    return isEntry && typeof entry.origin === 'string' ? entry.origin : undefined;
  } catch {
    return undefined;
  }
}

/** Where a path leads; for a file that is not there, where its folder leads. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(resolve(path));
    return above === resolve(path) ? above : join(realPath(above), basename(path));
  }
}
