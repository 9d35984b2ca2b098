import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { UnusableStorage } from '../../storage/engine.ts';
import { loadDriver } from '../../storage/sqlite/driver.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import { APPLICATION_ID, SCHEMA_VERSION } from '../../storage/sqlite/schema.ts';
import { fingerprint, openScratch, scratchFolder, scratchPath } from './scratch.ts';

const driver = await loadDriver();
const isWindows = process.platform === 'win32';

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** Makes a database with plain SQL, as another program would. */
function makeDatabase(path: string, sql: string): void {
  const db = driver.open(path, { readOnly: false });
  db.exec(sql);
  db.close();
}

describe.skipIf(isWindows)('under a umask that hides nothing', () => {
  function withoutUmask(): void {
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
  }

  test('the folder is 0700 and every file in it 0600', async () => {
    withoutUmask();
    const path = scratchPath();

    const engine = await openScratch(path);
    await engine.write((tx) => tx.run("INSERT INTO open_calls VALUES (1, 'x')"));

    expect(modeOf(dirname(path))).toBe('700');
    expect(
      Object.fromEntries(
        [path, `${path}-wal`, `${path}-shm`].map((file) => [file.slice(path.length), modeOf(file)]),
      ),
    ).toEqual({ '': '600', '-wal': '600', '-shm': '600' });
    expect(modeOf(join(dirname(path), '.gitignore'))).toBe('600');
  });

  test('every folder that had to be made is 0700', async () => {
    withoutUmask();
    const folder = scratchFolder();

    await openScratch(join(folder, 'a', 'b', 'colibri.db'));

    expect(modeOf(join(folder, 'a'))).toBe('700');
    expect(modeOf(join(folder, 'a', 'b'))).toBe('700');
  });

  test('a file that others could read is closed to them, a folder that was there is left alone', async () => {
    withoutUmask();
    const folder = join(scratchFolder(), 'mine');
    mkdirSync(folder, { mode: 0o755 });
    const path = join(folder, 'colibri.db');
    await (await openSqlite({ path })).close();
    chmodSync(path, 0o644);

    await openScratch(path);

    expect(modeOf(path)).toBe('600');
    expect(modeOf(folder)).toBe('755');
  });
});

describe('.gitignore', () => {
  test('keeps a .colibri folder out of git', async () => {
    const path = scratchPath();

    await openScratch(path);

    expect(readFileSync(join(dirname(path), '.gitignore'), 'utf8')).toBe('*\n');
  });

  test('is not written over', async () => {
    const path = scratchPath();
    mkdirSync(dirname(path));
    writeFileSync(join(dirname(path), '.gitignore'), 'mine\n');

    await openScratch(path);

    expect(readFileSync(join(dirname(path), '.gitignore'), 'utf8')).toBe('mine\n');
  });

  test('is not put into a folder that is not Colibri’s', async () => {
    const folder = scratchFolder();

    await openScratch(join(folder, 'colibri.db'));

    expect(existsSync(join(folder, '.gitignore'))).toBe(false);
  });
});

describe('a file that is not Colibri’s is refused and left as it was', () => {
  test.each<[string, (path: string) => void, RegExp]>([
    ['a text', (path) => writeFileSync(path, 'notes\n'.repeat(500)), /is not a SQLite database.*untouched/],
    ['a short text', (path) => writeFileSync(path, 'x'), /is not a SQLite database.*untouched/],
    ['almost a database', (path) => writeFileSync(path, 'SQLite format 4\0'), /is not a SQLite database/],
    [
      'the database of another program',
      (path) => makeDatabase(path, 'CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)'),
      /is a database of another program.*untouched/,
    ],
    [
      'an empty database another program has marked as its own',
      (path) => makeDatabase(path, 'PRAGMA application_id = 1'),
      /is a database of another program/,
    ],
    [
      'a database of another program with a version number',
      (path) => makeDatabase(path, 'PRAGMA user_version = 1; CREATE TABLE theirs (a)'),
      /is a database of another program/,
    ],
    [
      'one of a newer Colibri',
      (path) =>
        makeDatabase(
          path,
          `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION + 1}; CREATE TABLE t (a)`,
        ),
      new RegExp(
        `newer Colibri \\(schema ${SCHEMA_VERSION + 1}, this one knows ${SCHEMA_VERSION}\\).*update`,
      ),
    ],
    [
      'one of a build before 0.2.0',
      (path) =>
        makeDatabase(
          path,
          `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION - 1}; CREATE TABLE t (a)`,
        ),
      new RegExp(
        `before 0\\.2\\.0 \\(schema ${SCHEMA_VERSION - 1}, this one knows ${SCHEMA_VERSION}\\).*untouched; move it away`,
      ),
    ],
  ])('%s', async (_, make, message) => {
    const folder = scratchFolder();
    const path = join(folder, 'colibri.db');
    make(path);
    const before = fingerprint(folder);
    const { mtimeMs, mode } = statSync(path);

    const opened = openSqlite({ path });

    await expect(opened).rejects.toThrow(UnusableStorage);
    await expect(opened).rejects.toThrow(message);
    await expect(opened).rejects.toThrow(path);
    expect(fingerprint(folder)).toEqual(before);
    expect(statSync(path)).toMatchObject({ mtimeMs, mode });
  });

  test('a folder', async () => {
    const path = join(scratchFolder(), 'colibri.db');
    mkdirSync(path);

    await expect(openSqlite({ path })).rejects.toThrow(/is a folder\. Point COLIBRI_DB_PATH/);

    expect(fingerprint(path)).toEqual({});
  });

  test.skipIf(isWindows).each(['to a file', 'to nowhere'])('a symbolic link %s', async (kind) => {
    const folder = scratchFolder();
    const target = join(folder, 'target');
    if (kind === 'to a file') writeFileSync(target, '');
    symlinkSync(target, join(folder, 'colibri.db'));

    await expect(openSqlite({ path: join(folder, 'colibri.db') })).rejects.toThrow(/is a symbolic link/);

    expect(existsSync(target)).toBe(kind === 'to a file');
    if (kind === 'to a file') expect(statSync(target).size).toBe(0);
  });

  test('one whose newer version is only in its write-ahead log', async () => {
    const folder = scratchFolder();
    const source = scratchPath();
    await (await openSqlite({ path: source })).close();
    const db = driver.open(source, { readOnly: false });
    onTestFinished(() => db.close());
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    for (const end of ['', '-wal']) copyFileSync(source + end, join(folder, `colibri.db${end}`));
    const before = fingerprint(folder);

    await expect(openSqlite({ path: join(folder, 'colibri.db') })).rejects.toThrow(/newer Colibri/);

    expect(fingerprint(folder)).toMatchObject(before);
  });

  test('the database of another program in write-ahead mode', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'colibri.db');
    makeDatabase(path, 'PRAGMA journal_mode = WAL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)');
    const before = fingerprint(folder);

    await expect(openSqlite({ path })).rejects.toThrow(/another program/);

    expect(fingerprint(folder)).toMatchObject(before);
  });

  test('one that is damaged', async () => {
    const path = scratchPath();
    await (await openSqlite({ path })).close();
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xaa, 4_096));
    const before = fingerprint(dirname(path))['colibri.db'];

    await expect(openSqlite({ path })).rejects.toThrow(/malformed/);

    expect(fingerprint(dirname(path))['colibri.db']).toBe(before);
  });
});

describe('a file that holds nothing yet becomes the database', () => {
  test.each<[string, (path: string) => void]>([
    ['no file', () => undefined],
    ['an empty file', (path) => writeFileSync(path, '')],
    ['an empty database', (path) => makeDatabase(path, 'CREATE TABLE t (a); DROP TABLE t')],
  ])('%s', async (_, make) => {
    const path = join(scratchFolder(), 'colibri.db');
    make(path);

    const engine = await openScratch(path);

    expect(engine.facts.schemaVersion).toBe(SCHEMA_VERSION);
  });

  test('one that another process holds at that very moment, once it lets go', async () => {
    const path = join(scratchFolder(), 'colibri.db');
    makeDatabase(path, 'CREATE TABLE t (a); DROP TABLE t');
    const holder = driver.open(path, { readOnly: false });
    onTestFinished(() => holder.close());
    holder.exec('BEGIN EXCLUSIVE');

    const opening = openScratch(path);
    await sleep(30);
    holder.exec('ROLLBACK');

    await expect(opening).resolves.toMatchObject({ facts: { schemaVersion: SCHEMA_VERSION } });
  });
});
