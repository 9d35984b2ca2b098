import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openConnection } from '../../storage/sqlite/connection.ts';
import { loadDriver } from '../../storage/sqlite/driver.ts';
import { migrate } from '../../storage/sqlite/migrate.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../storage/sqlite/migrations.ts';
import { openScratch, scratchFolder, scratchPath } from './scratch.ts';

/** SHA-256 of each step as it was released. Add a line for a new step; never change one: files out there have run it. */
const RELEASED: readonly string[] = [
  'c256d7933ad85edc15dee6e9228e4de425397d9cfec977688876961d9ffc1bce',
  '8dce457f48d3bc927b1266998527880b3c4cf7b98bc03131d7a44c863dfdc0e2',
  '9d862608e3351d7a14c417cbebf3389a0829ec40da0c4b10eef782bc7a15a856',
  'd57488448c5c8a036aad2121ed2fd2dcf8e56b5d4f7fb3543f5ea1aa3f70f4cc',
];

const driver = await loadDriver();

/** Everything the schema consists of, in a fixed order. */
const schemaOf = (path: string) =>
  openScratch(path).then((engine) =>
    engine.read((tx) => tx.all('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name')),
  );

test('no released step was edited, and no step is missing from the table above', () => {
  expect(MIGRATIONS.map((step) => createHash('sha256').update(step).digest('hex'))).toEqual(RELEASED);
});

describe('a new file', () => {
  test('is marked as Colibri’s, with the version of the last step', async () => {
    const engine = await openScratch();

    const marks = await engine.read(async (tx) => [
      await tx.get('PRAGMA application_id'),
      await tx.get('PRAGMA user_version'),
    ]);

    expect(marks).toMatchObject([{ application_id: APPLICATION_ID }, { user_version: MIGRATIONS.length }]);
    expect(Buffer.from(APPLICATION_ID.toString(16), 'hex').toString()).toBe('Coli');
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
    ['UPDATE actions SET chain_hash = content_hash', 'actions is append-only'],
    ['DELETE FROM actions', 'actions is append-only'],
  ])('refuses: %s', async (sql, message) => {
    const engine = await openScratch();
    await engine.write((tx) => tx.run("INSERT INTO actions VALUES (1, '{}', 'a', 'b')"));

    await expect(engine.write((tx) => tx.run(sql))).rejects.toThrow(message);
  });
});

describe('an older file', () => {
  test.each(MIGRATIONS.map((_, version) => version))(
    'of version %i is brought up to date',
    async (version) => {
      const path = join(scratchFolder(), 'colibri.db');
      const db = driver.open(path, { readOnly: false });
      for (const step of MIGRATIONS.slice(0, version)) db.exec(step);
      if (version > 0) db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version}`);
      db.close();

      expect(await schemaOf(path)).toEqual(await schemaOf(scratchPath()));
    },
  );
});

describe('migrate', () => {
  async function connect(path: string) {
    const connection = await openConnection(driver, path, { writable: true });
    onTestFinished(() => connection.close());
    return connection;
  }

  test('leaves a file alone that a newer Colibri has migrated in the meantime', async () => {
    const connection = await connect(join(scratchFolder(), 'colibri.db'));
    connection.script(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);

    await expect(migrate(connection)).rejects.toThrow('a newer Colibri');

    expect(connection.pragma('user_version')).toBe(MIGRATIONS.length + 1);
  });

  test('that fails half-way leaves the old version, whole', async () => {
    const connection = await connect(join(scratchFolder(), 'colibri.db'));
    connection.script('CREATE TABLE open_calls (theirs)');

    await expect(migrate(connection)).rejects.toThrow('open_calls');

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
      external: ['better-sqlite3'],
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

    expect(said).toEqual(Array.from({ length: 8 }, () => String(MIGRATIONS.length)));
    expect(await engine.read((tx) => tx.get('SELECT count(*) AS n FROM open_calls'))).toMatchObject({ n: 8 });
    expect(await schemaOf(path)).toEqual(await schemaOf(scratchPath()));
  });

  test('in one process end the same', async () => {
    const path = scratchPath();

    const engines = await Promise.all(Array.from({ length: 8 }, () => openScratch(path)));

    expect(engines.map(({ facts }) => facts.schemaVersion)).toEqual(engines.map(() => MIGRATIONS.length));
  });
});
