import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { NOTE_BYTES_MAX } from '../integrity/signed-note.ts';
import { readIfPresent, readRegular, replaceFile } from './private-files.ts';

/** A checkpoint that a time-stamping authority was asked about, with the token where there is one. */
export interface StampedCheckpoint {
  readonly size: number;
  readonly note: string;
  readonly notePath: string;
  readonly tokenPath: string;
  readonly hasToken: boolean;
}

/** Time-stamp tokens beside the database, each with the exact checkpoint it speaks of. */
export class AnchorFiles {
  readonly folder: string;

  constructor(dbPath: string) {
    this.folder = `${dbPath}.anchors`;
  }

  /** Files a checkpoint, so that a token that comes tomorrow still finds the bytes it is about. */
  keep(size: number, note: string): StampedCheckpoint {
    makePrivateFolder(this.folder);
    const kept = this.#at(size, note);
    replaceFile(kept.notePath, note);
    return kept;
  }

  /** All of them, the smallest first. */
  all(): StampedCheckpoint[] {
    if (!existsSync(this.folder)) return [];
    const sizes = readdirSync(this.folder).flatMap((name) => /^(\d{1,15})\.note$/.exec(name)?.[1] ?? []);
    return sizes
      .map(Number)
      .sort((a, b) => a - b)
      .map((size) => this.#at(size, noteIn(join(this.folder, `${size}.note`))));
  }

  #at(size: number, note: string): StampedCheckpoint {
    const tokenPath = join(this.folder, `${size}.tsr`);
    const notePath = join(this.folder, `${size}.note`);
    return { size, note, notePath, tokenPath, hasToken: existsSync(tokenPath) };
  }
}

/** The folder lies beside the database: whoever can write there may have put anything under this name. */
function noteIn(path: string): string {
  return readRegular(path, NOTE_BYTES_MAX)?.toString('utf8') ?? '';
}

interface Places {
  /** Files the user keeps checkpoints in. */
  readonly files: readonly string[];
  readonly git: readonly { readonly repository: string; readonly ref: string }[];
}

/** Where else heads of a log were put. Kept in its per-user folder: whoever cuts the log must not also make us forget to look. */
export class AnchorMemory {
  readonly #folder: string;

  constructor(logFolder: string) {
    this.#folder = logFolder;
  }

  read(): Places {
    try {
      const { files, git } = JSON.parse(readIfPresent(this.#file) ?? '{}') as Partial<Places>;
      return { files: files ?? [], git: git ?? [] };
    } catch {
      return { files: [], git: [] };
    }
  }

  addFile(path: string): void {
    const { files, git } = this.read();
    this.#write({ files: [...new Set([...files, path])], git });
  }

  addGit(repository: string, ref: string): void {
    const { files, git } = this.read();
    const others = git.filter((place) => place.repository !== repository || place.ref !== ref);
    this.#write({ files, git: [...others, { repository, ref }] });
  }

  /** Keeps the certificate an authority is trusted by, so that its tokens can be checked again. */
  addAuthority(pem: string): void {
    makePrivateFolder(this.#authorities);
    replaceFile(join(this.#authorities, `${sha256Hex(pem).slice(0, 16)}.pem`), pem);
  }

  /** Paths of the trusted certificates. */
  authorities(): string[] {
    if (!existsSync(this.#authorities)) return [];
    return readdirSync(this.#authorities)
      .filter((name) => name.endsWith('.pem'))
      .map((name) => join(this.#authorities, name));
  }

  #write(places: Places): void {
    replaceFile(this.#file, `${JSON.stringify(places, null, 2)}\n`);
  }

  get #file(): string {
    return join(this.#folder, 'anchors.json');
  }

  get #authorities(): string {
    return join(this.#folder, 'authorities');
  }
}
