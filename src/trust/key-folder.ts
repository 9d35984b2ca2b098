import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import { formatCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { generateNoteKey, noteSigner, signNote } from '../integrity/signed-note.ts';
import { EMPTY_ROOT } from '../integrity/tree.ts';
import { GENESIS } from '../log/row.ts';
import {
  closing,
  makePrivateFolder,
  namesIn,
  oddity,
  openPrivate,
  readJson,
  readText,
  replaceFile,
  syncFolder,
  target,
  WARILY,
} from '../private-files.ts';
import { encodeSlot } from './memory.ts';
import { isOrigin, originOfKey } from './opening.ts';

/** Where else heads of a log were put: files that the user keeps, and git repositories. */
type AnchorPlaces = { readonly [K in 'files' | 'git']: readonly string[] };

/** What this user knows of one log. Outside the workspace, so that a change of the database does not reach it. */
export class KeyFolder {
  readonly path: string;
  readonly origin: string;

  constructor(configDir: string, origin: string) {
    if (!isOrigin(origin)) throw new RangeError('not the origin of a log');
    this.origin = origin;
    this.path = join(configDir, 'logs', basename(origin));
  }

  /**
   * A folder with a new key, of the log that is named after the key; or, which only the owner decides, of one that
   * another key created. Key and memory, both or neither: a key without a memory must not look normal.
   */
  static create(configDir: string, origin?: string): KeyFolder {
    const { privateKeyPem, verifierKey } = generateNoteKey(origin ?? 'new');
    const folder = new KeyFolder(configDir, origin ?? originOfKey(verifierKey) ?? '');
    const making = `${folder.path}.${systemClock.salt()}.new`;
    makePrivateFolder(making);
    try {
      folder.#writeKey(making, privateKeyPem);
      folder.#beginMemory(making, privateKeyPem);
      fs.renameSync(making, folder.path);
      syncFolder(dirname(folder.path));
    } catch (error) {
      fs.rmSync(making, { recursive: true, force: true });
      throw error;
    }
    return folder;
  }

  get exists(): boolean {
    return fs.existsSync(this.path);
  }

  /** Where each process remembers what it signed last. */
  get signedPath(): string {
    return this.#file('signed');
  }

  /** Where each process notes the head that it signed last, whichever signed before it. */
  get lastSignedPath(): string {
    return this.#file('last-signed');
  }

  /** The private key, as the file holds it. */
  privateKeyPem(): string | undefined {
    return readText(this.#file('key.pem'));
  }

  /** The key that signs, in its public text form. */
  verifierKey(): string | undefined {
    return readText(this.#file('key.pub'))?.trim();
  }

  /** Keys that signed this log before and were given up. */
  retiredKeys(): readonly string[] {
    return readText(this.#file('retired.pub'))?.split('\n').filter(Boolean) ?? [];
  }

  /** Every key of this log that this user knows, the one that signs first. */
  keys(): readonly string[] {
    return [this.verifierKey() ?? [], ...this.retiredKeys()].flat();
  }

  retire(verifierKey: string): void {
    const keys = new Set([...this.retiredKeys(), verifierKey]);
    replaceFile(this.#file('retired.pub'), `${[...keys].join('\n')}\n`);
  }

  /** Puts a new key in the place of one that is lost or damaged. What is left of the old one is renamed. */
  renewKey(): void {
    const old = this.verifierKey();
    if (old !== undefined) this.retire(old);
    for (const name of ['key.pem', 'key.pub']) this.#putAside(name, 'retired');
    this.#writeKey(this.path, generateNoteKey(this.origin).privateKeyPem);
  }

  /** The checkpoints that this user kept in the log, each as `keptName` calls it. What a power cut left half written is none. */
  kept(): readonly string[] {
    const lines = readText(this.#file('kept'))?.split('\n') ?? [];
    return lines.filter((line) => /^\d+ [0-9a-f]{8}$/.test(line));
  }

  /** Remembers one more. It must be durable in the database: what is remembered and not there was deleted. */
  noteKept(name: string): void {
    const flags = fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT | WARILY;
    // The line break comes first: what was torn before it stays by itself.
    closing(openPrivate(this.#file('kept'), flags), (fd) => fs.writeSync(fd, `\n${name}`));
  }

  /**
   * Starts the memory over once the owner accepted a log that contradicts it; of the kept checkpoints, those that are still
   * there stay remembered. Changes `adoptionStamp`.
   */
  startOver(reason: string, size: number, there: ReadonlySet<string>): void {
    const kept = this.kept().filter((name) => there.has(name));
    for (const name of ['signed', 'kept']) this.#putAside(name, 'given-up');
    replaceFile(this.#file('kept'), kept.map((name) => `\n${name}`).join(''));
    const pem = this.privateKeyPem();
    if (pem !== undefined) this.#beginMemory(this.path, pem);
    const entry = JSON.stringify({ at: new Date(systemClock.now()).toISOString(), reason, size });
    replaceFile(this.#file('adopted'), `${readText(this.#file('adopted')) ?? ''}${entry}\n`);
    fs.rmSync(this.#file('checked'), { force: true });
  }

  /** Another text after each adoption, by whichever process. */
  adoptionStamp(): string {
    const { size, mtimeMs, ino } = target(this.#file('adopted')) ?? {};
    return `${size}:${mtimeMs}:${ino}`;
  }

  /** The adoptions, by whichever machine, that this one has signed over; undefined where it never looked. */
  adoptionsSeen(): readonly string[] | undefined {
    const { seen } = readJson(this.#file('adoptions'));
    return Array.isArray(seen) ? seen.filter((hash) => typeof hash === 'string') : undefined;
  }

  /** Remembers them. Writes only what is new. */
  noteAdoptions(hashes: readonly string[]): void {
    const before = this.adoptionsSeen();
    const seen = [...new Set([...(before ?? []), ...hashes])];
    if (before === undefined || seen.length > before.length)
      replaceFile(this.#file('adoptions'), `${JSON.stringify({ seen })}\n`);
  }

  /** Whether the log has the key of this machine on its record. */
  get hasJoined(): boolean {
    return readText(this.#file('joined'))?.trim() === this.verifierKey();
  }

  /** The row that put it there is gone. */
  forgetJoined(): void {
    fs.rmSync(this.#file('joined'), { force: true });
  }

  noteJoined(): void {
    replaceFile(this.#file('joined'), `${this.verifierKey()}\n`);
  }

  /** What a full reading of the log found: why it must not be signed over, or nothing. */
  noteCheck(at: number, finding?: string): void {
    replaceFile(this.#file('checked'), `${JSON.stringify({ at, finding })}\n`);
  }

  lastCheck(): { readonly at: number; readonly finding: string | undefined } | undefined {
    const { at, finding } = readJson(this.#file('checked'));
    if (typeof at !== 'number') return undefined;
    return { at, finding: typeof finding === 'string' ? finding : undefined };
  }

  anchors(): AnchorPlaces {
    const { files, git } = readJson(this.#file('anchors.json'));
    // No path holds U+0000.
    const isPlace = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0');
    const placesIn = (list: unknown) => (Array.isArray(list) ? list.filter(isPlace) : []);
    return { files: placesIn(files), git: placesIn(git) };
  }

  /** Remembers a file or a repository once. */
  addAnchor(kind: keyof AnchorPlaces, place: string): void {
    const known = this.anchors();
    if (known[kind].includes(place)) return;
    const places = { ...known, [kind]: [...known[kind], place] };
    replaceFile(this.#file('anchors.json'), `${JSON.stringify(places, null, 2)}\n`);
  }

  /** Keeps the certificate an authority is trusted by, so that its tokens can be checked again. */
  addAuthority(pem: string): void {
    makePrivateFolder(this.#file('authorities'));
    replaceFile(join(this.#file('authorities'), `${sha256Hex(pem).slice(0, 16)}.pem`), pem);
  }

  /** Paths of the trusted certificates. */
  authorities(): string[] {
    const folder = this.#file('authorities');
    const files = namesIn(folder).map((name) => join(folder, name));
    return files.filter((file) => file.endsWith('.pem') && oddity(file) === undefined);
  }

  #file(name: string): string {
    return join(this.path, name);
  }

  #putAside(name: string, why: string): void {
    const suffix = `${new Date(systemClock.now()).toISOString().replaceAll(':', '-')}-${systemClock.salt()}`;
    if (fs.existsSync(this.#file(name)))
      fs.renameSync(this.#file(name), this.#file(`${name}.${why}-${suffix}`));
  }

  #writeKey(folder: string, privateKeyPem: string): void {
    replaceFile(join(folder, 'key.pem'), privateKeyPem);
    replaceFile(join(folder, 'key.pub'), `${noteSigner(this.origin, privateKeyPem).verifierKey}\n`);
  }

  /** A head of nothing, so that no memory at all is told from a new one. */
  #beginMemory(folder: string, privateKeyPem: string): void {
    const signed = join(folder, 'signed');
    makePrivateFolder(signed);
    const nothing = formatCheckpoint({ origin: this.origin, size: 0, root: EMPTY_ROOT });
    const note = signNote(nothing, noteSigner(this.origin, privateKeyPem));
    replaceFile(join(signed, 'initial'), encodeSlot(GENESIS, note).toString('utf8'));
  }
}

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
    // A database on a server has no path.
    const paths = dbPath.startsWith('postgres:') ? [dbPath] : [resolve(dbPath), realPath(dbPath)];
    this.#files = new Map(paths.map((path) => [fileOf(path), path]));
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
    this.#replace(origin);
    this.#written = origin;
  }

  /** Remembers that the log was transferred elsewhere: here it ends with this signed head. */
  noteTransferred(origin: string, note: string): void {
    this.#replace(origin, note);
  }

  /** The signed head that the log ends with here, since it was transferred elsewhere. */
  endsWith(): string | undefined {
    const notes = [...this.#files.keys()].map((file) => readJson(file).transferred);
    return notes.find((note) => typeof note === 'string');
  }

  #replace(origin: string, transferred?: string): void {
    for (const [file, path] of this.#files) {
      const known = readJson(file);
      if (known.origin === origin && known.transferred === transferred) continue;
      makePrivateFolder(dirname(file));
      replaceFile(file, `${JSON.stringify({ path, origin, transferred })}\n`);
    }
  }
}

/** Where a path leads; for a file that is not there, where its folder leads. */
export function realPath(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    const above = dirname(resolve(path));
    return above === resolve(path) ? above : join(realPath(above), basename(path));
  }
}
