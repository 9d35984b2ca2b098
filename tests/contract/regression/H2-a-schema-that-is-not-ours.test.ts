import { expect } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { openDatabase } from '../../driver/database.ts';
import type { Playground } from '../../driver/playground.ts';
import { proves } from '../proves.ts';

/** What somebody plants in the file, and how the server names it. */
const PLANTED: readonly (readonly [what: string, sql: string, said: RegExp])[] = [
  [
    'a trigger that swallows thoughts',
    'CREATE TRIGGER swallow BEFORE INSERT ON thoughts BEGIN SELECT RAISE(IGNORE); END',
    /The trigger swallow is not one of Colibri's/,
  ],
  [
    'a trigger that swallows audit rows',
    'CREATE TRIGGER swallow BEFORE INSERT ON actions BEGIN SELECT RAISE(IGNORE); END',
    /The trigger swallow is not one of Colibri's/,
  ],
  [
    'a trigger that changes what is stored',
    "CREATE TRIGGER change AFTER INSERT ON tasks BEGIN UPDATE tasks SET priority = 'low' WHERE id = new.id; END",
    /The trigger change is not one of Colibri's/,
  ],
  [
    'a view in the place of a table',
    'ALTER TABLE session_records RENAME TO hidden; CREATE VIEW session_records AS SELECT * FROM hidden WHERE 0',
    /definition of the table session_records was changed/,
  ],
  [
    'a view that has no end',
    `DROP TABLE task_labels; CREATE VIEW task_labels AS
     WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS label, x AS task_id FROM n`,
    /definition of the table task_labels was changed/,
  ],
  [
    'another collation',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'origin TEXT NOT NULL', 'origin TEXT NOT NULL COLLATE NOCASE') WHERE name = 'log';
     PRAGMA writable_schema = RESET; CREATE TABLE x (y); DROP TABLE x`,
    /definition of the table log was changed/,
  ],
  [
    'a generated column',
    "ALTER TABLE tasks ADD COLUMN kind TEXT GENERATED ALWAYS AS ('none') VIRTUAL",
    /definition of the table tasks was changed/,
  ],
  [
    'a computed column in the statistics of ANALYZE',
    `ANALYZE; PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = 'CREATE TABLE sqlite_stat1(tbl,idx,stat0,stat AS (1))' WHERE name = 'sqlite_stat1';
     PRAGMA writable_schema = RESET; CREATE TABLE x (y); DROP TABLE x`,
    /The table sqlite_stat1 is not one of Colibri's/,
  ],
  ['a missing index', 'DROP INDEX tasks_by_update', /tasks_by_update was removed from the schema/],
  [
    'a name that is none',
    'CREATE TABLE "\u009b31m\u202egnp" (y)',
    /The table "\\u\{9b\}31m\\u\{202e\}gnp" is not one of Colibri's/,
  ],
];

const TASK = { title: 'a task', project: 'demo' };

for (const [what, sql, said] of PLANTED)
  proves(
    ['boot.own-schema', 'boot.untouched'],
    `H2: ${what} is found by a server that runs and by one that starts; neither answers that anything was stored`,
    async ({ colibri }) => {
      const running = await colibri.start();
      await running.call('task_create', TASK);
      await running.call('task_get', { task_id: 'T-0001' });
      const rows = countRows(colibri);
      plant(colibri, sql);

      const calls = [
        await running.call('task_create', TASK),
        await running.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' }),
        await running.call('task_get', { task_id: 'T-0001' }),
      ];
      const starting = await colibri.start();
      const health = await starting.call('server_health');
      calls.push(await starting.call('task_create', TASK));
      const log = await runColibri(colibri, ['log']);
      const verify = await runColibri(colibri, ['verify', '--json']);

      for (const { envelope, error } of calls) {
        expect(envelope?.ok).toBe(false);
        expect(error?.message).toMatch(/ERR_INIT_FAILED/);
        expect(error?.message).toMatch(said);
      }
      expect(health.envelope?.data).toMatchObject({
        status: 'degraded',
        db: { reason: expect.stringMatching(said) },
      });
      expect(countRows(colibri)).toBe(rows);
      expect(log.code).toBe(1);
      expect(log.stderr).toMatch(said);
      expect(JSON.parse(verify.stdout).findings).toContainEqual(
        expect.objectContaining({ kind: 'schema', message: expect.stringMatching(said) }),
      );
    },
    { concurrent: true },
  );

proves(
  'boot.own-schema',
  'H2: a running server goes on when what was planted is removed, and when another program has only analysed the file',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    plant(colibri, 'CREATE TABLE notes (y)');
    const refused = await server.call('task_create', TASK);
    plant(colibri, 'DROP TABLE notes; ANALYZE');

    const accepted = await server.call('task_create', TASK);

    expect(refused.error?.message).toMatch(/The table notes is not one of Colibri's/);
    expect(accepted.envelope?.data).toMatchObject({ task_id: 'T-0002' });
    expect(colibri.readAudit().findings).toEqual([]);
  },
);

proves(
  'boot.own-schema',
  'H2: what was planted is refused again after the version of the schema was set back to one that had been checked',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('task_get', { task_id: 'T-0001' });
    const db = openDatabase(colibri.dbPath);
    const version = db.prepare('PRAGMA schema_version').pluck().get();
    db.exec("CREATE TRIGGER change AFTER INSERT ON tasks BEGIN UPDATE tasks SET priority = 'low'; END");
    const calls = [
      await server.call('task_create', TASK),
      await server.call('task_get', { task_id: 'T-0001' }),
    ];
    db.exec(`PRAGMA schema_version = ${version}`);
    db.close();

    calls.push(await server.call('task_create', TASK));
    calls.push(await server.call('task_get', { task_id: 'T-0001' }));

    for (const { error } of calls)
      expect(error?.message).toMatch(/ERR_INIT_FAILED.*The trigger change is not one of Colibri's/);
  },
);

function plant({ dbPath }: Playground, sql: string): void {
  const db = openDatabase(dbPath);
  db.exec(sql);
  db.close();
}

function countRows({ dbPath }: Playground): unknown {
  const db = openDatabase(dbPath, { readOnly: true });
  try {
    return db.prepare('SELECT count(*) FROM actions').pluck().get();
  } finally {
    db.close();
  }
}
