import * as fs from 'node:fs';
import { sha256Hex } from '../integrity/digest.ts';
import { openPrivate, target, WARILY } from '../private-files.ts';
import { HEAD_COLUMNS, type HeadRow } from './own-log.ts';

const HASH_CHARS = 64;

/**
 * What a process of this user signed last, whichever it was. A head that is found here needs no check of its signature, which
 * takes ten times as long, and under the write lock: whoever can write into the key folder can sign. Any other head may be an
 * older one that somebody brought back: everything is checked then. So nothing here has to last, or to be whole, but an older
 * head must never stay here behind a newer one.
 */
export class LastSigned {
  readonly #path: string;
  /** The open file and its number, which stays its own for as long as it is open. */
  #open: { readonly fd: number; readonly ino: number } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Before the commit, and under the write lock. */
  note(row: HeadRow): void {
    try {
      if (fs.writeSync(this.#file(), hashOf(row), 0) === HASH_CHARS) return;
    } catch {
      // As where only a part of it was written.
    }
    try {
      fs.ftruncateSync(this.#file());
    } catch {
      // Where not even that can be written, nothing of what was signed is remembered either.
    }
  }

  has(row: HeadRow): boolean {
    const found = Buffer.alloc(HASH_CHARS);
    try {
      fs.readSync(this.#file(), found, 0, HASH_CHARS, 0);
    } catch {
      return false;
    }
    return found.toString('latin1') === hashOf(row);
  }

  close(): void {
    if (this.#open !== undefined) fs.closeSync(this.#open.fd);
    this.#open = undefined;
  }

  /** The file at the path: one that was deleted or moved away since tells nobody anything, and the others may have made another. */
  #file(): number {
    if (this.#open !== undefined && this.#open.ino !== target(this.#path)?.ino) this.close();
    if (this.#open === undefined) {
      const fd = openPrivate(this.#path, fs.constants.O_RDWR | fs.constants.O_CREAT | WARILY);
      this.#open = { fd, ino: fs.fstatSync(fd).ino };
    }
    return this.#open.fd;
  }
}

/** Of all columns: the head that is found here is taken as it is, with a signature that nobody looks at. */
function hashOf(row: HeadRow): string {
  return sha256Hex(JSON.stringify(HEAD_COLUMNS.map((column) => row[column])));
}
