import { chmodSync, closeSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { asError } from '../../errors.ts';
import { makeDataFolder, oddity, openPrivate, readEnd, readStart, WARILY } from '../../private-files.ts';
import { UnusableStorage } from '../engine.ts';
import type { SqliteDriver } from './driver.ts';
import { APPLICATION_ID, SCHEMA_VERSION } from './schema.ts';

/** The file header and the head of the first page of the schema behind it. */
const HEADER_BYTES = 108;
const JOURNAL_MAGIC = Buffer.from('d9d505f920a163d7', 'hex');
const MAGIC = 'SQLite format 3\0';

/** Creates the folder and the file for their owner only, before SQLite would create them for everybody. */
export function preparePrivateFile(path: string): void {
  refuseOddFile(path, true);
  // What a link leads to is told by the memory of the path (V11), but nothing new is made behind one.
  if (!existsSync(path) || oddity(dirname(path)) === 'a folder') makeDataFolder(dirname(path));
  const { O_RDWR, O_CREAT } = constants;
  closeSync(openPrivate(path, O_RDWR | O_CREAT | WARILY));
  // Not opened: to close them would take away the locks that another connection of this process holds.
  for (const file of [`${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
}

/** For readers: a database that is not there is a mistake, not a reason to make one. */
export function assertPresent(path: string): void {
  if (reach(path) !== undefined) return;
  throw new UnusableStorage(
    `There is no database at ${path} yet. The first call creates it: start a client, or add a task with "colibri add". In a folder that is not a project, run "colibri init" first, or set COLIBRI_DB_PATH.`,
  );
}

/**
 * The files of an open database by what they were when it was opened. What SQLite has open stays open when somebody
 * deletes or replaces it, and takes writes that nobody will ever find; only a look at the path tells.
 */
export class OpenFiles {
  readonly #files: Map<string, Stats>;

  /** `first` is what the first one was before it was opened, if it was there: afterwards it may be another already. */
  constructor(paths: readonly string[], first: Stats | undefined) {
    this.#files = new Map(paths.map((path, i) => [path, (i === 0 ? first : undefined) ?? statSync(path)]));
  }

  /** A file has been made this long: from now on, it may not be shorter. */
  noteBytes(path: string, bytes: number): void {
    const file = this.#files.get(path);
    if (file !== undefined) file.size = Math.max(file.size, bytes);
  }

  /**
   * What happened to one of them, as a sentence; undefined where nothing did. `isCut` is asked about each, and told whether
   * it is shorter than at the last look: SQLite may have done it. Where that cannot be told now, it is asked again.
   */
  whatHappened(isCut: (path: string, shrank: boolean) => boolean | undefined): string | undefined {
    for (const [path, before] of this.#files) {
      const now = lookAt(path);
      if (typeof now === 'string') return `${path} ${now}.`;
      if (now.ino !== before.ino || now.dev !== before.dev) return `${path} was replaced by another file.`;
      if ((before.mode & ~now.mode & 0o200) !== 0) return `${path} was made read-only.`;
      const cut = isCut(path, now.size < before.size);
      if (cut === true) return `${path} was truncated.`;
      if (cut === false) this.#files.set(path, now);
    }
    return undefined;
  }
}

/** What is at the path of a database; undefined where nothing is. A folder that cannot be entered says nothing about what is in it. */
export function reach(path: string): Stats | undefined {
  const found = lookAt(path);
  if (typeof found !== 'string') return found;
  if (found !== GONE) throw new UnusableStorage(`${path} ${found}. Make it reachable, or ${ELSEWHERE}.`);
  return undefined;
}

const GONE = 'is gone: it was deleted or moved away, or its disk was unmounted';

function lookAt(path: string): Stats | string {
  try {
    return statSync(path);
  } catch (thrown) {
    // Not left to `throwIfNoEntry`: from Node 22 on, it takes a file where a folder should be for nothing at all.
    const error: Error & { code?: unknown } = asError(thrown);
    return error.code === 'ENOENT' ? GONE : `cannot be reached (${error.message})`;
  }
}

/** Reads what the file says of itself without changing a byte of it; throws for one that is not ours, too old or too new. */
export function assertUnderstood(driver: SqliteDriver, path: string): void {
  refuseOddFile(path);
  if (!existsSync(path) || statSync(path).size === 0) return;
  const { applicationId, userVersion, empty } = identify(driver, path);
  const versions = `schema ${userVersion}, this one knows ${SCHEMA_VERSION}`;
  if (applicationId !== APPLICATION_ID && !(empty && applicationId === 0))
    throw untouched(`${path} is a database of another program`, ELSEWHERE);
  if (userVersion > SCHEMA_VERSION)
    throw untouched(`${path} was written by a newer Colibri (${versions})`, 'update Colibri');
  if (userVersion < SCHEMA_VERSION && !empty) {
    const what = `was written by a build of Colibri before 0.2.0 (${versions}), and its formats have changed since`;
    throw untouched(`${path} ${what}`, `move it away, or ${ELSEWHERE}`);
  }
}

const ELSEWHERE = 'point COLIBRI_DB_PATH at another file';

function untouched(what: string, remedy: string): UnusableStorage {
  return new UnusableStorage(`${what}. It was left untouched; ${remedy}.`);
}

function identify(driver: SqliteDriver, path: string) {
  const header = readHead(path);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC)
    throw untouched(`${path} is not a SQLite database`, `move it away, or ${ELSEWHERE}`);
  if (statSync(path).size < HEADER_BYTES)
    throw untouched(`${path} is damaged: it ends inside its header`, 'restore a good copy');
  const applicationId = header.readUInt32BE(68);
  // The header may be older than a write-ahead log that was never merged into it. Only SQLite can read the two together.
  if (!existsSync(`${path}-wal`) && !existsSync(`${path}-journal`)) {
    // Looked up here and not by SQLite, which would leave a -wal next to a file of another program.
    // An empty schema is a tree of one leaf page without cells.
    const empty = header[100] === 0x0d && header.readUInt16BE(103) === 0;
    return { applicationId, userVersion: header.readUInt32BE(60), empty };
  }
  // Cut off while it made the file: SQLite will take back what is there, which was nothing, when it next may write.
  if (journalStartsEmpty(`${path}-journal`)) return { applicationId: 0, userVersion: 0, empty: true };
  const db = driver.open(path, { readOnly: true });
  try {
    // All of it from one moment: another process may be making the file, and half of each would be nobody's.
    db.exec('BEGIN');
    const number = (sql: string): number => Number(Object.values(db.prepare(sql).get() ?? {})[0]);
    return {
      applicationId: number('PRAGMA application_id'),
      userVersion: number('PRAGMA user_version'),
      empty: number('SELECT count(*) FROM sqlite_schema') === 0,
    };
  } finally {
    db.close();
  }
}

/** Whether a rollback journal says that its database had no pages when the transaction began. */
function journalStartsEmpty(journal: string): boolean {
  if (!existsSync(journal)) return false;
  const header = readHead(journal);
  return header.subarray(0, JOURNAL_MAGIC.length).equals(JOURNAL_MAGIC) && header.readUInt32BE(16) === 0;
}

function readHead(path: string): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  readStart(path, HEADER_BYTES)?.copy(head);
  return head;
}

/** SQLite itself would write its log through a link beside the database, even where it only reads. */
function refuseOddFile(path: string, isWritten = false): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) {
    const odd = oddity(file, isWritten || file !== path);
    const remedy = file === path ? 'Point COLIBRI_DB_PATH at a regular file' : 'Remove it';
    if (odd !== undefined) throw new UnusableStorage(`${file} is ${odd}. ${remedy}.`);
  }
  if (namesAnotherFile(`${path}-journal`))
    throw new UnusableStorage(`${path}-journal names a file that SQLite would delete. Remove it.`);
}

/**
 * Whether a rollback journal ends with the name of a super-journal, as one of a transaction over several databases does.
 * Colibri never writes one, and SQLite before 3.53.3 deletes whatever file is named there.
 */
function namesAnotherFile(journal: string): boolean {
  return readEnd(journal, JOURNAL_MAGIC.length)?.equals(JOURNAL_MAGIC) === true;
}
