import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openConnection } from '../../storage/sqlite/connection.ts';
import { loadDriver } from '../../storage/sqlite/driver.ts';
import { createSchema } from '../../storage/sqlite/engine.ts';
import { APPLICATION_ID, SCHEMA_VERSION } from '../../storage/sqlite/schema.ts';
import { OBJECTS, SCHEMA_DIGEST, schemaDigest } from '../../storage/sqlite/self-check.ts';
import { openScratch, scratchFolder, scratchPath } from './scratch.ts';

const driver = await loadDriver();

/** Everything the schema consists of, in a fixed order. */
const schemaOf = (path: string) =>
  openScratch(path).then((engine) =>
    engine.read((tx) => tx.all('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name')),
  );

describe('a new file', () => {
  test('is marked as Colibri’s, with the version of its schema', async () => {
    const engine = await openScratch();

    const marks = await engine.read(async (tx) => [
      await tx.get('PRAGMA application_id'),
      await tx.get('PRAGMA user_version'),
    ]);

    expect(marks).toMatchObject([{ application_id: APPLICATION_ID }, { user_version: SCHEMA_VERSION }]);
    expect(Buffer.from(APPLICATION_ID.toString(16), 'hex').toString()).toBe('Coli');
  });

  test('has the schema whose digest a start compares, so that a start builds none', async () => {
    const engine = await openScratch();

    const objects = await engine.read((tx) => tx.all(OBJECTS));

    expect(schemaDigest(objects)).toBe(SCHEMA_DIGEST);
  });

  test('keeps every value in the type it was hashed with', async () => {
    const engine = await openScratch();

    const loose = await engine.read((tx) =>
      tx.all("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0"),
    );

    expect(
      loose
        .map((row) => String(row.name))
        .filter((name) => !name.startsWith('sqlite_') && !name.startsWith('task_words')),
    ).toEqual([]);
  });

  test.each([
    [
      "INSERT INTO actions VALUES (1, '{}', x'0a', x'0b')",
      'UPDATE actions SET chain = content',
      'append-only',
    ],
    ["INSERT INTO actions VALUES (1, '{}', x'0a', x'0b')", 'DELETE FROM actions', 'append-only'],
    [
      "INSERT INTO action_payloads VALUES (1, 'a', 'b')",
      "UPDATE action_payloads SET body = 'c'",
      'append-only',
    ],
    ["INSERT INTO action_payloads VALUES (1, 'a', 'b')", 'DELETE FROM action_payloads', 'append-only'],
    ["INSERT INTO texts VALUES (8, 'a', 'b', 'c')", "UPDATE texts SET text = 'd'", 'never changes'],
    ["INSERT INTO texts VALUES (8, 'a', 'b', 'c')", 'DELETE FROM texts', 'only the owner'],
    ["INSERT INTO erased_texts VALUES ('a', 1, 2)", 'UPDATE erased_texts SET position = 3', 'append-only'],
    ["INSERT INTO erased_texts VALUES ('a', 1, 2)", 'DELETE FROM erased_texts', 'append-only'],
    ["INSERT INTO log VALUES (1, 'a')", "UPDATE log SET origin = 'b'", 'never changes'],
    ["INSERT INTO log VALUES (1, 'a')", 'DELETE FROM log', 'never changes'],
    ["INSERT INTO log VALUES (1, 'a')", "INSERT INTO log VALUES (2, 'b')", 'CHECK constraint'],
  ])('with %s refuses %s', async (first, sql, message) => {
    const engine = await openScratch();
    await engine.write((tx) => tx.run(first));

    await expect(engine.write((tx) => tx.run(sql))).rejects.toThrow(message);
  });

  test('lets a text be deleted once its erasure is written down', async () => {
    const engine = await openScratch();
    await engine.write((tx) => tx.run("INSERT INTO texts VALUES (8, 'a', 'b', 'c')"));
    await engine.write((tx) => tx.run("INSERT INTO erased_texts VALUES ('a', NULL, 2)"));

    const { changes } = await engine.write((tx) => tx.run("DELETE FROM texts WHERE digest = 'a'"));

    expect(changes).toBe(1);
  });
});

describe('createSchema', () => {
  async function connect(path: string) {
    const connection = await openConnection(driver, path, { writable: true });
    onTestFinished(() => connection.close());
    return connection;
  }

  test.each([1, SCHEMA_VERSION + 1])(
    'refuses a file that another Colibri has marked with version %i in the meantime',
    async (version) => {
      const connection = await connect(join(scratchFolder(), 'colibri.db'));
      connection.script(`PRAGMA user_version = ${version}`);

      await expect(createSchema(connection)).rejects.toThrow('another version of Colibri');

      expect(connection.pragma('user_version')).toBe(version);
      expect(await connection.all('SELECT name FROM sqlite_schema')).toEqual([]);
    },
  );

  test('that fails half-way leaves an empty file, whole', async () => {
    const connection = await connect(join(scratchFolder(), 'colibri.db'));
    connection.script('CREATE TABLE open_calls (theirs)');

    await expect(createSchema(connection)).rejects.toThrow('open_calls');

    expect(connection.pragma('user_version')).toBe(0);
    expect(await connection.all('SELECT name FROM sqlite_schema')).toMatchObject([{ name: 'open_calls' }]);
  });
});

describe('several starts at once on no file', () => {
  const home = mkdtempSync(join(tmpdir(), 'colibri-'));
  const program = join(home, 'open.mjs');

  beforeAll(async () => {
    const engine = fileURLToPath(new URL('../../storage/sqlite/engine.ts', import.meta.url));
    symlinkSync(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(home, 'node_modules'));
    await build({
      stdin: {
        contents: `
          import { openSqlite } from ${JSON.stringify(engine)};
          const engine = await openSqlite({ path: process.argv[2] });
          await engine.write((tx) => tx.run('INSERT INTO open_calls VALUES (?, ?)', process.pid, 'x'));
          console.log(engine.facts.schemaVersion);
          await engine.close();`,
        resolveDir: home,
      },
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      external: ['@photostructure/sqlite'],
      logLevel: 'error',
    });
  });

  afterAll(() => rmSync(home, { recursive: true, force: true }));

  async function openInProcess(path: string): Promise<string> {
    const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return (out + err).trim();
  }

  test('by eight processes end with one schema and a row of each', async () => {
    const path = scratchPath();

    const said = await Promise.all(Array.from({ length: 8 }, () => openInProcess(path)));
    const engine = await openScratch(path);

    expect(said).toEqual(Array.from({ length: 8 }, () => String(SCHEMA_VERSION)));
    expect(await engine.read((tx) => tx.get('SELECT count(*) AS n FROM open_calls'))).toMatchObject({ n: 8 });
    expect(await schemaOf(path)).toEqual(await schemaOf(scratchPath()));
  });

  test('in one process end the same', async () => {
    const path = scratchPath();

    const engines = await Promise.all(Array.from({ length: 8 }, () => openScratch(path)));

    expect(engines.map(({ facts }) => facts.schemaVersion)).toEqual(engines.map(() => SCHEMA_VERSION));
  });
});
