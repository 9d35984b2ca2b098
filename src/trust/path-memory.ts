import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { readJson, replaceFile } from './private-files.ts';

/**
 * Which log was last seen at a path. Tells a replaced database from a new one. The path counts both as it was named and
 * as it resolves: a link put in the place of the folder leads elsewhere, and still has the old name.
 */
export class PathMemory {
  /** The path, by the file that remembers it. */
  readonly #files: ReadonlyMap<string, string>;
  #written: string | undefined;

  constructor(configDir: string, dbPath: string) {
    const fileOf = (path: string) => join(configDir, 'paths', `${sha256Hex(path).slice(0, 32)}.json`);
    this.#files = new Map([resolve(dbPath), realPath(dbPath)].map((path) => [fileOf(path), path]));
  }

  /** The origins seen here, each once. More than one only where the name and what it resolves to disagree. */
  seen(): readonly string[] {
    const origins = [...this.#files.keys()].map((file) => readJson(file).origin);
    return [...new Set(origins.filter((origin) => typeof origin === 'string'))];
  }

  /** An origin that was seen here and is not this one. */
  otherThan(origin: string | undefined): string | undefined {
    return this.seen().find((seen) => seen !== origin);
  }

  /** Remembers under both names. Writes only what is new: each write is an fsync. */
  write(origin: string): void {
    if (this.#written === origin) return;
    for (const [file, path] of this.#files) {
      if (readJson(file).origin === origin) continue;
      makePrivateFolder(dirname(file));
      replaceFile(file, `${JSON.stringify({ path, origin })}\n`);
    }
    this.#written = origin;
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
