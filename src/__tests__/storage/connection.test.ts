import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Connection, openConnection } from '../../storage/sqlite/connection.ts';
import { loadDriver, type SqliteDriver } from '../../storage/sqlite/driver.ts';
import { availableDrivers } from './drivers.ts';
import { openScratch, scratchPath } from './scratch.ts';

describe.each(await availableDrivers())('a connection of %s', (_, driver) => {
  async function open(path: string, writable: boolean): Promise<Connection> {
    const connection = await openConnection(driver, path, { writable });
    onTestFinished(() => connection.close());
    return connection;
  }

  test('that writes has every setting that durability and safety hang on', async () => {
    const path = scratchPath();
    await openScratch(path);

    const writer = await open(path, true);

    expect(writer.journal).toBe('wal');
    expect(
      Object.fromEntries(
        [
          'synchronous',
          'foreign_keys',
          'trusted_schema',
          'cell_size_check',
          'fullfsync',
          'checkpoint_fullfsync',
        ].map((name) => [name, writer.pragma(name)]),
      ),
    ).toEqual({
      synchronous: 1,
      foreign_keys: 1,
      trusted_schema: 0,
      cell_size_check: 1,
      fullfsync: 1,
      checkpoint_fullfsync: 1,
    });
  });

  test('that reads can do nothing else', async () => {
    const path = scratchPath();
    await openScratch(path);

    const reader = await open(path, false);

    expect(reader.pragma('query_only')).toBe(1);
    expect(reader.pragma('trusted_schema')).toBe(0);
    await expect(reader.run("INSERT INTO open_calls VALUES (1, 'x')")).rejects.toThrow();
  });

  test('keeps what was learned for its next transaction, until somebody else commits or something is taken back', async () => {
    const path = scratchPath();
    await openScratch(path);
    const [writer, other] = [await open(path, true), await open(path, true)];
    const learned = (name: string) => writer.alone(() => void writer.known.set(name, name));
    const known = () => writer.alone(() => [...writer.known.keys()]);

    await learned('a row');
    const kept = await known();
    await other.alone(() => other.run("INSERT INTO open_calls VALUES (1, 'x')"));
    const afterAnother = await known();
    await learned('another row');
    await expect(writer.alone(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const afterRollback = await known();

    expect([kept, afterAnother, afterRollback]).toEqual([['a row'], [], []]);
  });

  test('in memory has a journal in memory', async () => {
    expect((await open(':memory:', true)).journal).toBe('memory');
  });

  test('rejects instead of throwing when a statement is wrong', async () => {
    const connection = await open(':memory:', true);

    await expect(connection.get('SELECT * FROM nowhere')).rejects.toThrow('nowhere');
    await expect(connection.all('SELECT * FROM nowhere')).rejects.toThrow('nowhere');
    await expect(connection.run('INSERT INTO nowhere VALUES (1)')).rejects.toThrow('nowhere');
  });

  test('finds a text with U+0000 by all of it', async () => {
    const connection = await open(':memory:', true);
    connection.script('CREATE TABLE t (a TEXT) STRICT');
    for (const text of ['a', 'a\u0000b', 'a\u0000c']) await connection.run('INSERT INTO t VALUES (?)', text);

    expect(await connection.get('SELECT a FROM t WHERE a = ? AND 1 = ?', 'a\u0000b', 1)).toEqual({
      a: 'a\u0000b',
    });
    expect(await connection.lists('SELECT a FROM t WHERE a > ? ORDER BY a', 'a\u0000b')).toEqual([
      ['a\u0000c'],
    ]);
    expect(await connection.all('SELECT hex(a) AS bytes FROM t ORDER BY a')).toEqual([
      { bytes: '61' },
      { bytes: '610062' },
      { bytes: '610063' },
    ]);
  });

  test('stores each row with its own values, whatever it has in common with those beside it', async () => {
    const connection = await open(':memory:', true);
    const names = Array.from({ length: 13 }, (_, i) => `c${i}`);
    const few = fc.constantFrom(null, 0, 1, 0.5, '', '0', 'a?', 'Θ', 'a\0b');
    const rows = fc.array(fc.array(few, { minLength: 13, maxLength: 13 }), { minLength: 1, maxLength: 40 });
    // Most columns are alike in all rows of a group, as they are in new tasks.
    const group = fc
      .tuple(rows, fc.subarray([...names.keys()]))
      .map(([all, own]) => all.map((row) => row.map((value, i) => (own.includes(i) ? value : all[0]![i]!))));
    let tables = 0;

    await fc.assert(
      fc.asyncProperty(fc.array(group, { minLength: 1, maxLength: 3 }), async (groups) => {
        tables += 1;
        const table = `wide${tables}`;
        connection.script(
          `CREATE TABLE ${table} (id INTEGER PRIMARY KEY, ${names.join(' ANY, ')} ANY) STRICT`,
        );
        const added = groups.map((one, g) => one.map((row, i) => [100 * g + i, ...row]));
        for (const one of added)
          await connection.alone(() => connection.insert(table, ['id', ...names], one));

        expect(await connection.lists(`SELECT * FROM ${table} ORDER BY id`)).toEqual(added.flat());
      }),
      { numRuns: 40 },
    );
  });

  test('rounds the integers that a number cannot hold, and only them', async () => {
    const connection = await open(':memory:', true);
    const sql = "SELECT 9223372036854775807 AS a, 7 AS b, x'01' AS c, 'x' AS d, NULL AS e, 0.5 AS f";
    const values = [2 ** 63, 7, new Uint8Array([1]), 'x', null, 0.5];
    const row = Object.fromEntries(values.map((value, i) => ['abcdef'.charAt(i), value]));

    expect(await connection.get(sql)).toEqual(row);
    expect(await connection.all(sql)).toEqual([row]);
    expect(await connection.lists(sql)).toEqual([values]);
    expect(await connection.get('SELECT -9007199254740993 AS a WHERE ? = 1', 1)).toEqual({ a: -(2 ** 53) });
  });

  test('may roll back when nothing was begun', async () => {
    const connection = await open(':memory:', true);

    expect(() => connection.rollback()).not.toThrow();
  });
});

describe('a setting that does not take', () => {
  /** A driver whose connections quietly drop some statements, as an old SQLite does with a pragma it does not know. */
  async function deafTo(statement: RegExp): Promise<SqliteDriver & { readonly closed: () => number }> {
    const driver = await loadDriver();
    let closed = 0;
    return {
      ...driver,
      closed: () => closed,
      open(path, options) {
        const db = driver.open(path, options);
        return {
          prepare: (sql) => db.prepare(sql),
          function: (...of) => db.function(...of),
          exec: (sql) => (statement.test(sql) ? undefined : db.exec(sql)),
          close: () => {
            closed += 1;
            db.close();
          },
        };
      },
    };
  }

  test.each([
    [/cell_size_check/, 'SQLite did not take PRAGMA cell_size_check = 1 (it reads 0)'],
    [/synchronous/, 'SQLite did not take PRAGMA synchronous = 1 (it reads 2)'],
    [/journal_mode/, 'journal_mode is delete, not wal'],
  ])('is a refusal, and leaves nothing open: %s', async (statement, message) => {
    const driver = await deafTo(statement);

    const opened = openScratch(scratchPath(), { driver });

    await expect(opened).rejects.toThrow(message);
    expect(driver.closed()).toBe(1);
  });
});
