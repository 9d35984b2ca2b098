import { existsSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { formatCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { generateNoteKey, type NoteSigner, noteSigner } from '../integrity/note-key.ts';
import { signNote } from '../integrity/signed-note.ts';
import { EMPTY_ROOT } from '../integrity/tree.ts';
import { readIfPresent, replaceFile, syncFolder } from './private-files.ts';

/** A log's name: fixed by its first row, so that it cannot be chosen later. */
export function originOf(firstContentHash: string): string {
  return `colibri/${firstContentHash.slice(0, 16)}`;
}

/**
 * What lies in the per-user folder for one log: the private key, and the newest checkpoint it ever signed. Outside the
 * workspace, so that whoever can change the database cannot also change what is remembered of it.
 */
export class LogFolder {
  readonly path: string;
  readonly origin: string;

  constructor(configDir: string, origin: string) {
    this.origin = origin;
    this.path = join(configDir, 'logs', basename(origin));
  }

  get exists(): boolean {
    return existsSync(this.path);
  }

  /** Lock file for check-and-update; a database of its own, because its locks end with the process that holds them. */
  get lockPath(): string {
    return join(this.path, 'lock');
  }

  /** Makes the key and a first checkpoint of nothing, both or neither: a key without a memory must not look normal. */
  create(): void {
    if (this.exists) return;
    const { privateKeyPem, verifierKey } = generateNoteKey(this.origin);
    const making = `${this.path}.${process.pid}.new`;
    makePrivateFolder(making);
    replaceFile(join(making, 'key.pem'), privateKeyPem);
    replaceFile(join(making, 'key.pub'), `${verifierKey}\n`);
    const nothing = formatCheckpoint({ origin: this.origin, size: 0, root: EMPTY_ROOT });
    replaceFile(join(making, 'last-signed'), signNote(nothing, noteSigner(this.origin, privateKeyPem)));
    try {
      renameSync(making, this.path);
      syncFolder(dirname(this.path));
    } catch (error) {
      rmSync(making, { recursive: true, force: true });
      // Another process was first; its key is as good.
      if (!this.exists) throw error;
    }
  }

  signer(): NoteSigner | undefined {
    const pem = readIfPresent(join(this.path, 'key.pem'));
    return pem === undefined ? undefined : noteSigner(this.origin, pem);
  }

  verifierKey(): string | undefined {
    return readIfPresent(join(this.path, 'key.pub'))?.trim();
  }

  lastSigned(): string | undefined {
    return readIfPresent(join(this.path, 'last-signed'));
  }

  remember(note: string): void {
    replaceFile(join(this.path, 'last-signed'), note);
  }

  /** Puts aside what the owner has decided to give up; it stays readable beside the new. */
  retire(suffix: string): void {
    if (this.exists) renameSync(this.path, `${this.path}${RETIRED}${suffix}`);
  }

  /** Keys of this log that were given up. What they signed is known, and no longer what the log goes on from. */
  retiredKeys(): string[] {
    const [folder, name] = [dirname(this.path), `${basename(this.path)}${RETIRED}`];
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .filter((entry) => entry.startsWith(name))
      .flatMap((entry) => readIfPresent(join(folder, entry, 'key.pub'))?.trim() ?? []);
  }

  /** Says in the folder itself that the log goes on from a state that nothing vouches for, and since when. */
  noteAdoption(entry: { readonly at: string; readonly reason: string; readonly size: number }): void {
    const path = join(this.path, 'adopted');
    replaceFile(path, `${readIfPresent(path) ?? ''}${JSON.stringify(entry)}\n`);
  }
}

const RETIRED = '.retired-';

/** Which log was last seen at a path. Tells a replaced database from a new one. */
export class PathMemory {
  readonly #file: string;
  readonly #path: string;

  constructor(configDir: string, dbPath: string) {
    this.#path = realPath(dbPath);
    this.#file = join(configDir, 'paths', `${sha256Hex(this.#path).slice(0, 16)}.json`);
  }

  /** The origin seen here; null when the path was seen while the log was still empty; undefined when it is new. */
  read(): string | null | undefined {
    const text = readIfPresent(this.#file);
    if (text === undefined) return undefined;
    try {
      const { origin } = JSON.parse(text) as { origin?: unknown };
      return typeof origin === 'string' ? origin : null;
    } catch {
      return undefined;
    }
  }

  write(origin: string | null): void {
    makePrivateFolder(dirname(this.#file));
    replaceFile(this.#file, `${JSON.stringify({ path: this.#path, origin })}\n`);
  }

  retire(suffix: string): void {
    if (existsSync(this.#file)) renameSync(this.#file, `${this.#file}${RETIRED}${suffix}`);
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
