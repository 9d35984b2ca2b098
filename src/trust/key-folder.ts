import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock } from '../clock.ts';
import { makePrivateFolder } from '../folders.ts';
import { formatCheckpoint } from '../integrity/checkpoint.ts';
import { generateNoteKey, type NoteSigner, noteSigner } from '../integrity/note-key.ts';
import { signNote } from '../integrity/signed-note.ts';
import { EMPTY_ROOT } from '../integrity/tree.ts';
import { GENESIS } from '../log/row.ts';
import { encodeSlot } from './memory.ts';
import { isOrigin, originOfKey } from './origin.ts';
import { readIfPresent, replaceFile, syncFolder } from './private-files.ts';

/** What the last full reading of a log found. */
export interface FullCheck {
  readonly at: number;
  /** Why the log must not be signed over; absent where every row was as signed. */
  readonly finding?: string;
}

/**
 * What the per-user folder holds of one log: the private key, and what was signed last. Outside the workspace, so that
 * whoever can change the database cannot also change what is remembered of it.
 */
export class KeyFolder {
  readonly path: string;
  readonly origin: string;

  constructor(configDir: string, origin: string) {
    if (!isOrigin(origin)) throw new RangeError('not the origin of a log');
    this.origin = origin;
    this.path = join(configDir, 'logs', basename(origin));
  }

  /** A new key, and the folder of the log that is named after it. */
  static create(configDir: string): KeyFolder {
    const { privateKeyPem, verifierKey } = generateNoteKey('new');
    const folder = new KeyFolder(configDir, originOfKey(verifierKey) ?? '');
    folder.#make(privateKeyPem);
    return folder;
  }

  /** A folder with a new key for a log that another key created. Only the owner decides that. */
  static createFor(configDir: string, origin: string): KeyFolder {
    const folder = new KeyFolder(configDir, origin);
    folder.#make(generateNoteKey(origin).privateKeyPem);
    return folder;
  }

  get exists(): boolean {
    return existsSync(this.path);
  }

  /** Where each process remembers what it signed last. */
  get signedPath(): string {
    return join(this.path, 'signed');
  }

  /** The private key as it lies there. */
  privateKeyPem(): string | undefined {
    return readIfPresent(join(this.path, 'key.pem'));
  }

  /** The key that signs, in its public text form. */
  verifierKey(): string | undefined {
    return readIfPresent(join(this.path, 'key.pub'))?.trim();
  }

  /** Keys that signed this log before and were given up. */
  retiredKeys(): readonly string[] {
    return readIfPresent(join(this.path, 'retired.pub'))?.split('\n').filter(Boolean) ?? [];
  }

  /** Every key of this log that this user knows, the one that signs first. */
  keys(): readonly string[] {
    return [this.verifierKey() ?? [], ...this.retiredKeys()].flat();
  }

  retire(verifierKey: string): void {
    const keys = new Set([...this.retiredKeys(), verifierKey]);
    replaceFile(join(this.path, 'retired.pub'), `${[...keys].join('\n')}\n`);
  }

  /** Puts a new key in the place of one that is lost or damaged. What is left of the old one stays beside it. */
  renewKey(suffix: string): void {
    const old = this.verifierKey();
    if (old !== undefined) this.retire(old);
    for (const name of ['key.pem', 'key.pub']) {
      const path = join(this.path, name);
      if (existsSync(path)) renameSync(path, `${path}.retired-${suffix}`);
    }
    this.#writeKey(this.path, generateNoteKey(this.origin).privateKeyPem);
  }

  /** Starts the memory over, after the owner accepted a log that contradicts it. The old one stays beside it. */
  giveUpMemory(suffix: string): void {
    const aside = `${this.signedPath}.given-up-${suffix}-${systemClock.salt()}`;
    if (existsSync(this.signedPath)) renameSync(this.signedPath, aside);
    const pem = this.privateKeyPem();
    if (pem !== undefined) this.#beginMemory(this.path, noteSigner(this.origin, pem));
    syncFolder(this.path);
  }

  /** Says in the folder that the log goes on from what the owner accepted. Changes `adoptionStamp`. */
  noteAdoption(entry: { readonly at: string; readonly reason: string; readonly size: number }): void {
    replaceFile(this.#adoptedPath, `${readIfPresent(this.#adoptedPath) ?? ''}${JSON.stringify(entry)}\n`);
    rmSync(this.#checkedPath, { force: true });
  }

  /** Another text after each adoption, by whichever process. */
  adoptionStamp(): string {
    const { size, mtimeMs, ino } = statSync(this.#adoptedPath, { throwIfNoEntry: false }) ?? {};
    return `${size}:${mtimeMs}:${ino}`;
  }

  noteCheck(check: FullCheck): void {
    replaceFile(this.#checkedPath, `${JSON.stringify(check)}\n`);
  }

  lastCheck(): FullCheck | undefined {
    try {
      const check: unknown = JSON.parse(readIfPresent(this.#checkedPath) ?? 'null');
      if (typeof check !== 'object' || check === null || !('at' in check)) return undefined;
      const finding =
        'finding' in check && typeof check.finding === 'string' ? { finding: check.finding } : {};
      return typeof check.at === 'number' ? { at: check.at, ...finding } : undefined;
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  get #adoptedPath(): string {
    return join(this.path, 'adopted');
  }

  get #checkedPath(): string {
    return join(this.path, 'checked');
  }

  /** Key and memory, both or neither: a key without a memory must not look normal. */
  #make(privateKeyPem: string): void {
    const making = `${this.path}.${systemClock.salt()}.new`;
    makePrivateFolder(making);
    try {
      chmodSync(making, 0o700);
      this.#writeKey(making, privateKeyPem);
      this.#beginMemory(making, noteSigner(this.origin, privateKeyPem));
      renameSync(making, this.path);
      syncFolder(dirname(this.path));
    } catch (error) {
      rmSync(making, { recursive: true, force: true });
      throw error;
    }
  }

  #writeKey(folder: string, privateKeyPem: string): void {
    replaceFile(join(folder, 'key.pem'), privateKeyPem);
    replaceFile(join(folder, 'key.pub'), `${noteSigner(this.origin, privateKeyPem).verifierKey}\n`);
  }

  /** A head of nothing, so that no memory at all is told from a new one. */
  #beginMemory(folder: string, signer: NoteSigner): void {
    const signed = join(folder, 'signed');
    mkdirSync(signed, { mode: 0o700 });
    chmodSync(signed, 0o700);
    const nothing = signNote(formatCheckpoint({ origin: this.origin, size: 0, root: EMPTY_ROOT }), signer);
    replaceFile(join(signed, 'initial'), encodeSlot(GENESIS, nothing).toString('utf8'));
  }
}
