import * as fs from 'node:fs';
import { sha256Hex } from '../integrity/digest.ts';
import { openPrivate, WARILY } from '../private-files.ts';
import { HEAD_COLUMNS, type HeadRow } from './own-log.ts';

const HASH_CHARS = 64;

/**
 * What a process of this user signed last, whichever it was. A head that is found here needs no check of its signature, which
 * takes ten times as long, and under the write lock: whoever can write into the key folder can sign. Any other head may be an
 * older one that somebody brought back: everything is checked then. So nothing here has to last, or to be whole.
 */
export class LastSigned {
  readonly #path: string;
  #fd: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  note(row: HeadRow): void {
    try {
      fs.writeSync(this.#file(), hashOf(row), 0);
    } catch {
      // Then everything is checked.
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
    if (this.#fd !== undefined) fs.closeSync(this.#fd);
    this.#fd = undefined;
  }

  #file(): number {
    this.#fd ??= openPrivate(this.#path, fs.constants.O_RDWR | fs.constants.O_CREAT | WARILY);
    return this.#fd;
  }
}

function hashOf(row: HeadRow): string {
  return sha256Hex(JSON.stringify(HEAD_COLUMNS.map((column) => row[column])));
}
