import * as fs from 'node:fs';
import { openPrivate, WARILY } from '../private-files.ts';
import { HEAD_COLUMNS, type HeadRow } from './own-log.ts';

/**
 * What a process of this user signed last, while several of them write. A head that is found here needs no check of its
 * signature, which takes ten times as long, and under the write lock: whoever can write into the key folder can sign. Any
 * other head may be an older one that somebody brought back: everything is checked then. So nothing here has to last, or to
 * be whole, but an older head must never stay here behind a newer one.
 */
export class LastSigned {
  readonly #path: string;
  #fd: number | undefined;
  #isEmpty = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Before the commit, and under the write lock. */
  note(row: HeadRow): void {
    const bytes = bytesOf(row);
    this.#isEmpty = false;
    try {
      if (fs.writeSync(this.#file(), bytes, 0, bytes.length, 0) === bytes.length) return;
    } catch {
      // Everything is checked then.
    }
    this.clear();
  }

  /** The same for a head that nobody else needs to know: what another one left there is gone. */
  clear(): void {
    if (this.#isEmpty) return;
    try {
      fs.ftruncateSync(this.#file());
      this.#isEmpty = true;
    } catch {
      // Where not even that can be written, nothing of what was signed is remembered either.
    }
  }

  has(row: HeadRow): boolean {
    const wanted = bytesOf(row);
    const found = Buffer.alloc(wanted.length);
    try {
      fs.readSync(this.#file(), found, 0, found.length, 0);
    } catch {
      return false;
    }
    return found.equals(wanted);
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd);
    this.#fd = undefined;
  }

  #file(): number {
    this.#fd ??= openPrivate(this.#path, fs.constants.O_RDWR | fs.constants.O_CREAT | WARILY);
    return this.#fd;
  }
}

function bytesOf(row: HeadRow): Buffer {
  return Buffer.from(HEAD_COLUMNS.map((column) => row[column]).join('\n'));
}
