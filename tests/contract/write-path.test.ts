import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { openDatabase, withoutTriggers } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_update', 'thought_record', 'audit_session_start');

const TASK = { title: 'a task', project: 'demo' };

proves(
  'enter.failure',
  'a call that cannot be recorded is not begun',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    const repair = takePlace(colibri, 'open_calls', { position: 3, process: 'x' });

    const { envelope, isError } = await server.call('task_create', TASK);
    repair();

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: 'AUDIT_ENTER_FAILED', message: expect.stringContaining('not started') },
    });
    expect(countOf(colibri, 'tasks')).toBe(0);
    expect((await server.call('task_create', TASK)).error).toBeUndefined();
    expect(colibri.readAudit()).toMatchObject({ findings: [], rows: { length: 4 } });
  },
  { unless: noTasks },
);

proves(
  ['exit.failure-of-write', 'write.whole'],
  'a mutating call whose end cannot be recorded is rolled back and is HANDLER_ERROR',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    const repair = takePlace(colibri, 'task_calls', { task_id: 1, position: 4 });

    const { envelope, isError } = await server.call('task_create', TASK);
    repair();

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({ ok: false, error: { code: 'HANDLER_ERROR' } });
    expect(countOf(colibri, 'tasks')).toBe(0);
    expect(colibri.readAudit().rows.at(-1)).toMatchObject({
      stage: 'exit',
      tool: 'task_create',
      outcome: 'error',
      effects: [],
    });
    expect((await server.call('task_create', TASK)).envelope?.data).toMatchObject({ task_id: 'T-0001' });
    expect(openCalls(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  'exit.failure-of-read',
  'a read whose end cannot be recorded is answered all the same, and logged',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    const repair = takePlace(colibri, 'action_payloads', { position: 3, salt: '', body: '{}' });

    const ping = await server.call('server_ping');
    await server.stderrHolds('could not be recorded');
    repair();

    expect(ping.envelope?.ok).toBe(true);
    expect(server.stderr).toMatch(/server_ping.*could not be recorded/);
    await server.call('server_ping');
    expect(colibri.readAudit()).toMatchObject({ findings: [], rows: { length: 4 } });
  },
);

proves(
  ['write.rolled-back', 'lock.released', 'envelope.no-stack'],
  'when a handler fails half-way nothing it wrote is left, and an exit row says so',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    // Stored by a trigger after the task and its words.
    const repair = colibri.isOnFile
      ? takePlace(colibri, 'task_labels', { label: 'urgent', task_id: 1 })
      : refuseRows(colibri, 'task_labels');

    const { error, isError } = await server.call('task_create', { ...TASK, labels: ['urgent'] });
    repair();

    expect(isError).toBe(true);
    expect(error?.code).toBe('HANDLER_ERROR');
    expect(error?.message).not.toMatch(/\n\s+at /);
    expect(countOf(colibri, 'tasks')).toBe(0);
    expect(colibri.readAudit().rows.at(-1)).toMatchObject({
      outcome: 'error',
      error_code: 'HANDLER_ERROR',
      effects: [],
    });
    expect((await server.call('task_create', { ...TASK, labels: ['urgent'] })).error).toBeUndefined();
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  ['write.rolled-back', 'envelope.pattern-b', 'exit.facts'],
  'a refusal of the domain leaves an exit row with its code and no effects',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);

    const { envelope } = await server.call('task_update', {
      task_id: 'T-0001',
      title: 'other',
      status: 'done',
    });

    expect(envelope).toMatchObject({
      ok: true,
      data: { ok: false, error: { code: 'ERR_INVALID_TRANSITION' } },
    });
    expect(colibri.readAudit().rows.at(-1)).toMatchObject({
      stage: 'exit',
      outcome: 'error',
      error_code: 'ERR_INVALID_TRANSITION',
      effects: [],
      result_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  ['envelope.pattern-a', 'envelope.teaches'],
  'the trail fails with isError and a message that starts with the code',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { envelope, isError } = await server.call('thought_record', {
      task_id: 'T-0001',
      type: 'plan',
      content: 'c',
    });

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_TASK_NOT_FOUND: /) },
    });
  },
  { unless: noTasks },
);

proves(
  ['write.whole', 'log.effects'],
  'after many calls of many kinds every row of state is what some exit row says',
  async ({ colibri }) => {
    const server = await colibri.start();
    for (let i = 1; i <= 12; i += 1) {
      const task_id = `T-${String(i).padStart(4, '0')}`;
      await server.call('task_create', { ...TASK, project: i % 2 ? 'odd' : 'even', labels: ['a', `l${i}`] });
      await server.call('audit_session_start', {
        task_id,
        auditor_id: 'me',
        scope: i % 2 ? 'deep' : 'shallow',
      });
      await server.call('task_update', { task_id, status: 'todo', priority: 'high' });
      await server.call('thought_record', {
        task_id,
        type: 'plan',
        content: `thought ${i}`,
        metadata: { i },
      });
      if (i % 3 === 0)
        await server.call('merkle_finalize', { session_id: `A-${String(i).padStart(4, '0')}` });
    }

    expect(stateFindings(colibri.dbPath)).toEqual([]);
    expect(colibri.readAudit().findings).toEqual([]);
    expect(openCalls(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

/** Puts a row where the server will want to put another, so that its insert fails in the middle of a call. */
function takePlace(
  colibri: Playground,
  table: string,
  row: Readonly<Record<string, string | number>>,
): () => void {
  const db = openDatabase(colibri.dbPath);
  colibri.onDispose(() => db.close());
  const columns = Object.keys(row);
  db.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?')})`).run(...Object.values(row));
  const where = columns.map((column) => `${column} = ?`).join(' AND ');
  return db.transaction(() =>
    withoutTriggers(db, () => {
      db.prepare(`DELETE FROM ${table} WHERE ${where}`).run(...Object.values(row));
    }),
  );
}

/** Lets a trigger of a stranger refuse every row of a table on a server, until the function that is returned is called. */
function refuseRows(colibri: Playground, table: string): () => void {
  const db = openDatabase(colibri.dbPath);
  db.exec(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
    CREATE TRIGGER refused BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION public.refuse()`);
  return () => db.exec('DROP FUNCTION public.refuse() CASCADE');
}

function countOf(colibri: Playground, table: string): unknown {
  return withDatabase(colibri.dbPath, (db) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
}
