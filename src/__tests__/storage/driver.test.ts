import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NoEngineError } from '../../storage/engine.ts';
import {
  chooseDriver,
  driverOf,
  loadDriver,
  resultOf,
  SQLITE_VERSION_MIN,
  type SqliteConnection,
  type SqliteStatement,
} from '../../storage/sqlite/driver.ts';
import { availableDrivers, ownDriver } from './drivers.ts';
import { scratchFolder } from './scratch.ts';

describe('loadDriver', () => {
  test('takes the SQLite of Node where it can be used, and the package otherwise', async () => {
    const driver = await loadDriver();

    expect(driver.name).toBe(ownDriver instanceof Error ? '@photostructure/sqlite' : 'node:sqlite');
    if (ownDriver instanceof Error)
      expect(ownDriver.message).toMatch(/has no node:sqlite|older than|cuts texts/);
  });

  test.each([
    ['3.53.2', 'second'],
    ['3.9.99', 'second'],
    ['2.99.99', 'second'],
    ['3.53.3', 'first'],
    ['3.53.10', 'first'],
    ['4.0.0', 'first'],
  ])('compares versions by number: SQLite %s in the first driver means the %s', async (version, taken) => {
    const chosen = await chooseDriver([
      () => driverOf('first', aLibrary(version)),
      () => driverOf('second', aLibrary(SQLITE_VERSION_MIN)),
    ]);

    expect(chosen.name).toBe(taken);
  });

  test('takes no library that cuts a text at U+0000', async () => {
    const chosen = await chooseDriver([
      () =>
        driverOf(
          'first',
          aLibrary(SQLITE_VERSION_MIN, (text) => text.split('\0', 1).join()),
        ),
      () => driverOf('second', aLibrary(SQLITE_VERSION_MIN)),
    ]);

    expect(chosen.name).toBe('second');
  });

  test('says of each driver why it will not do, and what would', async () => {
    const choosing = chooseDriver([
      () => {
        throw new Error('there is no node:sqlite');
      },
      () => driverOf('second', aLibrary('3.40.0')),
    ]);

    await expect(choosing).rejects.toThrow(
      /^There is no usable SQLite: there is no node:sqlite, and second has SQLite 3\.40\.0, which is older than 3\.53\.3\. Use Node 24\.19 or newer, or reinstall Colibri: /,
    );
    await expect(choosing).rejects.toBeInstanceOf(NoEngineError);
  });

  /** A library as far as it is probed: with this version, and texts that come back as `read` makes them. */
  function aLibrary(version: string, read = (text: string) => text): Parameters<typeof driverOf>[1] {
    class Answering {
      exec() {}
      close() {}
      function() {}
      prepare() {
        const get = () => ({ version, text: read('a\0b') });
        return { get } as unknown as SqliteStatement;
      }
    }
    return { DatabaseSync: Answering };
  }
});

describe('resultOf', () => {
  test.each([
    [5, 'busy'],
    [6, 'busy'],
    [8, 'read-only'],
    [10, 'io'],
    [11, 'corrupt'],
    [13, 'full'],
    [14, 'cannot-open'],
    [26, 'not-a-database'],
    [19, undefined],
    [0x105, 'busy'],
    [0x20a, 'io'],
  ])('%i is %s, extended or not', (code, result) => {
    expect(resultOf(Object.assign(new Error('?'), { errcode: code }))).toBe(result);
  });
});

describe.each(await availableDrivers())('%s', (_, driver) => {
  function open(path = ':memory:', readOnly = false): SqliteConnection {
    const db = driver.open(path, { readOnly });
    onTestFinished(() => {
      try {
        db.close();
      } catch {
        // The test closed it.
      }
    });
    return db;
  }

  function codeOf(work: () => unknown): string | undefined {
    try {
      work();
    } catch (error) {
      return resultOf(error);
    }
    throw new Error('nothing was thrown');
  }

  test('tells the version of the SQLite it really runs', () => {
    const row = open().prepare('SELECT sqlite_version() AS version').get();

    expect(row).toMatchObject({ version: driver.sqliteVersion });
  });

  test('keeps each value as it is', () => {
    const db = open();
    db.exec('CREATE TABLE t (a, b, c, d, e)');
    const values = ['é🐦', 2 ** 53 - 1, 0.1, null, new Uint8Array([0, 255])] as const;

    const { changes } = db.prepare('INSERT INTO t VALUES (?, ?, ?, ?, ?)').run(...values);
    const row = db.prepare('SELECT * FROM t').get() as Record<string, unknown>;

    expect(changes).toBe(1);
    expect([row.a, row.b, row.c, row.d]).toEqual(values.slice(0, 4));
    expect(Buffer.from(row.e as Uint8Array)).toEqual(Buffer.from([0, 255]));
  });

  test.each([
    ['a lone surrogate, as another program may store it', 'eda080', '\ufffd\ufffd\ufffd'],
    ['two of them where four bytes belong', 'eda0bdedb09f', '\ufffd'.repeat(6)],
    ['a byte that begins nothing', '61ff62', 'a\ufffdb'],
    ['a character cut short', '61f09f98', 'a\ufffd'],
    ['U+0000 in two bytes', '61c08062', 'a\ufffd\ufffdb'],
    ['U+0000 and more', '610062', 'a\u0000b'],
  ])('reads what is not UTF-8 as the same text everywhere: %s', (_, hex, text) => {
    const read = open().prepare(`SELECT CAST(x'${hex}' AS TEXT) AS text`).get();

    expect(read).toEqual({ text });
  });

  test('gives undefined for no row, and an empty list for none', () => {
    const db = open();

    expect(db.prepare('SELECT 1 WHERE 0').get()).toBeUndefined();
    expect(db.prepare('SELECT 1 WHERE 0').all()).toEqual([]);
  });

  test('counts the rows a statement changed', () => {
    const db = open();
    db.exec('CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)');

    expect(db.prepare('DELETE FROM t WHERE a > ?').run(1).changes).toBe(2);
    expect(db.prepare('DELETE FROM t WHERE a > ?').run(1).changes).toBe(0);
  });

  test('names a lock held by another connection busy, at once', () => {
    const path = join(scratchFolder(), 'a.db');
    const [one, other] = [open(path), open(path)];
    one.exec('CREATE TABLE t (a); BEGIN IMMEDIATE');
    const began = performance.now();

    expect(codeOf(() => other.exec('BEGIN IMMEDIATE'))).toBe('busy');
    expect(performance.now() - began).toBeLessThan(500);
  });

  test('names a file that is no database, a folder, and a read-only connection', () => {
    const folder = scratchFolder();
    const path = join(folder, 'notes.txt');
    writeFileSync(path, 'notes '.repeat(200));
    const database = join(folder, 'a.db');
    open(database).exec('CREATE TABLE t (a)');

    expect(codeOf(() => open(path).exec('SELECT * FROM sqlite_schema'))).toBe('not-a-database');
    expect(codeOf(() => open(folder).exec('CREATE TABLE t (a)'))).toBe('cannot-open');
    expect(codeOf(() => open(database, true).exec('INSERT INTO t VALUES (1)'))).toBe('read-only');
  });

  test('names a full disk', () => {
    const db = open();
    db.exec('CREATE TABLE t (a); PRAGMA max_page_count = 4');

    expect(codeOf(() => db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(100_000)))).toBe('full');
  });

  test('names no other failure of SQLite, and none of anybody else', () => {
    const db = open();

    expect(codeOf(() => db.exec('this is no SQL'))).toBeUndefined();
    expect(resultOf(new Error('SQLITE_BUSY'))).toBeUndefined();
    expect(resultOf(Object.assign(new Error('?'), { code: 'EACCES' }))).toBeUndefined();
    expect(resultOf('SQLITE_BUSY')).toBeUndefined();
    expect(resultOf(undefined)).toBeUndefined();
  });
});
