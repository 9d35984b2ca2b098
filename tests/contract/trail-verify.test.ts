import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import type { Playground } from '../driver/playground.ts';
import { tier } from '../driver/tier.ts';
import { proves } from './proves.ts';
import { type Output, openTrail, type TrailDesk, tamper } from './trail-desk.ts';

type Report = Output<'audit_verify_chain'>;
type Row = Readonly<Record<string, string | number | null>>;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
}

/** A sealed deep session A-0001 over two tasks with something in every column, an open one A-0002, and a bystander. */
async function leaveTrail(colibri: Playground): Promise<TrailDesk> {
  const desk = await openTrail(colibri, { clientName: 'ada' });
  await desk.tasks.create();
  await desk.tasks.create({ parent_id: 'T-0001' });
  await desk.tasks.create();
  await desk.open('T-0001', { scope: 'deep', reason: 'a look' });
  for (let i = 1; i <= 5; i += 1) {
    await desk.think('T-0001', `thought ${i}`, {
      branch: 'main',
      commit_sha: 'abc',
      tests_run: ['a'],
      blockers: ['b'],
      metadata: { i },
    });
    await desk.tasks.update('T-0001', { progress: i });
  }
  await desk.think('T-0002', 'below');
  await desk.ok('merkle_finalize', { session_id: 'A-0001' });
  await desk.open('T-0003');
  for (let i = 1; i <= 3; i += 1) await desk.think('T-0003', `other ${i}`);
  return desk;
}

const SEALED = { session_id: 'A-0001' } as const;
const OPEN = { session_id: 'A-0002' } as const;

function columnsOf(path: string, table: string): Column[] {
  return withDatabase(path, (db) => db.pragma(`table_info(${table})`) as Column[]);
}

function rowOf(path: string, table: string, where: string): Row {
  return withDatabase(path, (db) => db.prepare(`SELECT * FROM ${table} WHERE ${where}`).get() as Row);
}

/** Runs the SQL, looks, and puts every row back. `undo` undoes it. */
async function during(
  colibri: Playground,
  sql: readonly string[],
  undo: readonly string[],
  look: () => Promise<void>,
): Promise<void> {
  tamper(colibri.dbPath, ...sql);
  try {
    await look();
  } finally {
    tamper(colibri.dbPath, ...undo);
  }
}

/** Other values for a column, as SQL. */
function otherValues({ name, type, notnull }: Column, value: unknown): string[] {
  const values =
    type === 'TEXT'
      ? [`'x' || coalesce(${name}, '')`, `coalesce(${name}, 'y') || ' '`, "''", "'not json'"]
      : [`coalesce(${name}, 0) + 1000`, `-7 - coalesce(${name}, 0)`, '9007199254740993'];
  return notnull === 0 && value !== null && name !== 'id' ? [...values, 'NULL'] : values;
}

function literal(value: string | number | Buffer | null | undefined): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value ?? 'NULL');
}

const EDITED = [
  { table: 'sessions', id: 1, record: 'A-0001', columns: 17 },
  { table: 'session_records', id: 3, record: 'R-0003', columns: 6 },
  { table: 'thoughts', id: 2, record: 'Θ-0002', columns: 18 },
] as const;

for (const { table, id, record, columns } of EDITED) {
  proves(
    'trail.verify.columns',
    `any other value in any column of ${table} is found with record and column`,
    async ({ colibri }) => {
      const desk = await leaveTrail(colibri);
      const all = columnsOf(colibri.dbPath, table);
      const row = rowOf(colibri.dbPath, table, `id = ${id}`);
      expect(all).toHaveLength(columns);
      expect(await desk.verify(SEALED)).toMatchObject({ chain_valid: true, total_records: 11 });

      for (const column of all.filter(({ name }) => name !== 'id')) {
        const { name } = column;
        for (const value of otherValues(column, row[name])) {
          if (value === "''" && row[name] === '') continue;
          const sql = `UPDATE ${table} SET ${name} = ${value} WHERE id = ${id}`;
          const undo = `UPDATE ${table} SET ${name} = ${literal(row[name])} WHERE id = ${id}`;
          await during(colibri, [sql], [undo], async () => {
            const report = await desk.verify(SEALED);
            const links = report.broken_links.filter((link) => link.record === record);
            expect.soft(report.chain_valid, sql).toBe(false);
            expect.soft(report.integrity_score, sql).toBeLessThan(100);
            // A session that names another row than the one that wrote it is not led back to its own.
            if (table === 'sessions' && name === 'position') return;
            expect.soft(new Set(links.flatMap((link) => link.columns ?? [])), sql).toContain(name);
          });
        }
      }
      expect(await desk.verify(SEALED)).toMatchObject({ chain_valid: true, integrity_score: 100 });
    },
  );
}

proves(
  ['trail.verify.columns', 'trail.list.verify'],
  'an edited thought is found from its task and in the listing too',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    const all = columnsOf(colibri.dbPath, 'thoughts').filter(({ name }) => name !== 'id');
    const row = rowOf(colibri.dbPath, 'thoughts', 'id = 2');

    for (const column of all) {
      // All of them are tried above, over the session.
      for (const value of otherValues(column, row[column.name]).slice(0, tier(1, 9))) {
        const sql = `UPDATE thoughts SET ${column.name} = ${value} WHERE id = 2`;
        const undo = `UPDATE thoughts SET ${column.name} = ${literal(row[column.name])} WHERE id = 2`;
        await during(colibri, [sql], [undo], async () => {
          const report = await desk.verify({ task_id: 'T-0001' });
          expect.soft(report.chain_valid, sql).toBe(false);
          expect.soft(report.integrity_score, sql).toBeLessThan(100);
          if (['chain_position', 'task_id'].includes(column.name)) return;
          const links = report.broken_links.filter(({ record }) => record === 'Θ-0002');
          expect.soft(new Set(links.flatMap((link) => link.columns ?? [])), sql).toContain(column.name);
        });
      }
    }
    const broken = ["UPDATE thoughts SET content = 'x' WHERE id IN (2, 4)"];
    const undo = [2, 4].map((id) => {
      const { content } = rowOf(colibri.dbPath, 'thoughts', `id = ${id}`);
      return `UPDATE thoughts SET content = ${literal(content)} WHERE id = ${id}`;
    });
    await during(colibri, broken, undo, async () => {
      const list = { verify_chain: true, limit: 1 };
      const ofTask = await desk.ok('thought_record_list', { task_id: 'T-0001', ...list });
      const ofSession = await desk.ok('thought_record_list', { ...SEALED, ...list });
      const elsewhere = await desk.ok('thought_record_list', { task_id: 'T-0003', ...list });
      expect(ofTask).toMatchObject({ chain_valid: false, invalid_links: [2, 4], thought_count: 5 });
      expect(ofSession).toMatchObject({ chain_valid: false, invalid_links: [3, 7] });
      expect(elsewhere.chain_valid).toBe(true);
      expect(elsewhere).not.toHaveProperty('invalid_links');
    });
  },
);

proves(
  'trail.verify.audit-rows',
  'an edited audit row behind a thought, a change or the seal is found with row and column',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    const positionOf = (table: string, where: string) =>
      rowOf(colibri.dbPath, table, where).position as number;
    const positions = [
      positionOf('thoughts', 'id = 2'),
      positionOf('session_records', "kind = 'change'"),
      positionOf('sessions', 'id = 1'),
    ];
    const forged = 'text = replace(text, \'"actor":"ada"\', \'"actor":"eve"\')';
    const edits: [column: string, sql: string, named?: string][] = [
      ['text', forged],
      ['text', `text = text || ' '`],
      ['text', `text = '{}'`],
      ['content', `content = x'${'0'.repeat(64)}'`, 'content_hash'],
      ['content', `content = x''`, 'content_hash'],
    ];

    for (const position of positions) {
      const row = rowOf(colibri.dbPath, 'actions', `position = ${position}`);
      for (const [column, set, named = column] of edits) {
        const sql = `UPDATE actions SET ${set} WHERE position = ${position}`;
        const undo = `UPDATE actions SET ${column} = ${literal(row[column])} WHERE position = ${position}`;
        await during(colibri, [sql], [undo], async () => {
          const report = await desk.verify(SEALED);
          const links = report.broken_links.filter(({ record }) => record === `#${position}`);
          expect.soft(report.chain_valid, sql).toBe(false);
          expect.soft(report.integrity_score, sql).toBeLessThan(100);
          expect.soft(new Set(links.flatMap((link) => link.columns ?? [])), sql).toContain(named);
        });
      }
    }
    expect(await desk.verify(SEALED)).toMatchObject({ chain_valid: true });
  },
);

proves('trail.verify.all', 'all breaks are listed at once, each at its place', async ({ colibri }) => {
  const desk = await leaveTrail(colibri);
  const change = rowOf(colibri.dbPath, 'session_records', "kind = 'change' AND ref > 0").ref as number;
  tamper(
    colibri.dbPath,
    "UPDATE thoughts SET content = 'x' WHERE id = 2",
    "UPDATE thoughts SET metadata = NULL, branch = 'y' WHERE id = 4",
    'UPDATE session_records SET task_id = 2 WHERE id = 5',
    "UPDATE sessions SET reason = 'another', auditor_id = 'eve' WHERE id = 1",
    `UPDATE actions SET text = text || ' ' WHERE position = ${change}`,
  );

  const session = await desk.verify(SEALED);
  const task = await desk.verify({ task_id: 'T-0001' });
  const other = await desk.verify(OPEN);

  // One of its rows cannot be read any more, so that what the session must be is not known to the column.
  expect(columnsNamed(session)).toMatchObject({
    'A-0001': [],
    'R-0005': ['task_id'],
    'Θ-0002': ['content'],
    'Θ-0004': ['branch', 'metadata'],
    [`#${change}`]: expect.arrayContaining(['text']),
  });
  expect(session.integrity_score).toBeLessThan(70);
  expect(session.broken_links.map(({ position }) => position)).toEqual(
    session.broken_links.map(({ position }) => position).toSorted((a, b) => a - b),
  );
  expect(columnsNamed(task)).toMatchObject({ 'Θ-0002': ['content'], 'Θ-0004': ['branch', 'metadata'] });
  expect(task).toMatchObject({ chain_valid: false, total_records: 5 });
  expect(task.integrity_score).toBeLessThanOrEqual(60);
  expect(other).toMatchObject({ chain_valid: true, integrity_score: 100 });
});

proves(
  'trail.verify.deleted',
  'numbers forged far away do not keep the verifier on its way for ever',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    for (const far of [9_007_199_254_740_000n, 9_007_199_254_740_995n, 9_223_372_036_854_775_807n])
      tamper(
        colibri.dbPath,
        `UPDATE thoughts SET id = ${far} WHERE id = (SELECT max(id) FROM thoughts WHERE id < 1000 AND task_id = 3)`,
        `INSERT INTO actions (position, text, content, chain) VALUES (${far}, '{}', x'01', x'02')`,
      );

    const reports = [await desk.verify({ task_id: 'T-0001' }), await desk.verify({ task_id: 'T-0003' })];

    expect(reports.map(({ chain_valid }) => chain_valid)).toContain(false);
  },
);

/** Every column named against each record, in order. */
function columnsNamed({ broken_links }: Report): Record<string, string[]> {
  const named: Record<string, string[]> = {};
  for (const { record, columns = [] } of broken_links)
    named[record] = [...new Set([...(named[record] ?? []), ...columns])].toSorted();
  return named;
}

proves(
  'trail.verify.deleted',
  'deleted, renumbered, moved and cut-off records are found, sealed or not',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    const dump = withDatabase(colibri.dbPath, (db) =>
      ['thoughts', 'session_records', 'sessions'].map((table) => ({
        table,
        rows: db.prepare(`SELECT * FROM ${table}`).all() as Row[],
      })),
    );
    const restore = dump.flatMap(({ table, rows }) => [
      `DELETE FROM ${table} WHERE true`,
      ...rows.map((row) => `INSERT INTO ${table} VALUES (${Object.values(row).map(literal).join(', ')})`),
    ]);
    const { title } = rowOf(colibri.dbPath, 'tasks', 'id = 1');
    const task = (task_id: string) => ({ task_id });
    const cases: [sql: string, subject: { task_id: string } | { session_id: string }, names: RegExp][] = [
      ['DELETE FROM thoughts WHERE id = 3', task('T-0001'), /Θ-0003/],
      ['DELETE FROM thoughts WHERE id = 3', SEALED, /Θ-0003/],
      ['DELETE FROM thoughts WHERE id = 1', task('T-0001'), /Θ-0001/],
      ['DELETE FROM thoughts WHERE id = 5', task('T-0001'), /Θ-0005/],
      ['DELETE FROM thoughts WHERE id = 5', SEALED, /Θ-0005/],
      ['DELETE FROM thoughts WHERE id = 9', task('T-0003'), /Θ-0009/],
      ['DELETE FROM thoughts WHERE id = 9', OPEN, /Θ-0009/],
      ['DELETE FROM thoughts WHERE task_id = 3', task('T-0003'), /Θ-0007[\s\S]*Θ-0008[\s\S]*Θ-0009/],
      ['DELETE FROM thoughts WHERE id IN (2, 3)', task('T-0001'), /Θ-0002[\s\S]*Θ-0003/],
      ['UPDATE thoughts SET id = 77 WHERE id = 3', task('T-0001'), /Θ-0077/],
      ['UPDATE thoughts SET id = 77 WHERE id = 3', SEALED, /Θ-0003/],
      ['UPDATE thoughts SET task_id = 3, chain_position = 4 WHERE id = 5', task('T-0003'), /Θ-0005.*task_id/],
      ['UPDATE thoughts SET chain_position = -1 WHERE id = 5', task('T-0001'), /Θ-0005.*chain_position/],
      ['UPDATE thoughts SET chain_position = 0 WHERE id = 1', task('T-0001'), /Θ-0001.*chain_position/],
      ['DELETE FROM session_records WHERE id = 4', SEALED, /R-0004/],
      // Of a child's thought only the record told that it is in there: what is left of it is a seal over more.
      ['DELETE FROM session_records WHERE id = 11', SEALED, /A-0001/],
      ['DELETE FROM session_records WHERE id = 13', OPEN, /R-0013/],
      ['DELETE FROM session_records WHERE id = 14', OPEN, /R-0014/],
      ['DELETE FROM session_records WHERE session_id = 2', OPEN, /R-0012[\s\S]*R-0013[\s\S]*R-0014/],
      ['UPDATE session_records SET session_id = 1 WHERE id = 13', OPEN, /R-0013.*session_id/],
      ['UPDATE session_records SET session_id = 2 WHERE id = 4', SEALED, /R-0004.*session_id/],
      ['UPDATE session_records SET id = 77 WHERE id = 4', SEALED, /R-0077/],
      ['UPDATE sessions SET id = 77 WHERE id = 1', { session_id: 'A-0077' }, /A-0077/],
      [
        'INSERT INTO session_records SELECT 77, session_id, task_id, kind, ref, position FROM session_records WHERE id = 4',
        SEALED,
        /R-0077/,
      ],
      [
        `UPDATE sessions SET status = 'open', merkle_root = NULL, finalized_at = NULL WHERE id = 1`,
        SEALED,
        /A-0001.*status/,
      ],
      [`UPDATE tasks SET title = 'x' WHERE id = 1`, task('T-0001'), /T-0001.*title/],
    ];

    for (const [sql, subject, names] of cases) {
      const undo = sql.includes('tasks SET title')
        ? [`UPDATE tasks SET title = ${literal(title)} WHERE id = 1`]
        : restore;
      await during(colibri, [sql], undo, async () => {
        const report = await desk.verify(subject);
        expect.soft(report, sql).toMatchObject({ chain_valid: false });
        expect.soft(report.integrity_score, sql).toBeLessThan(100);
        const said = report.broken_links.map(
          ({ record, what, columns }) => `${record} ${what} ${columns ?? ''}`,
        );
        expect.soft(said.join('\n'), `${sql}: ${JSON.stringify(subject)}`).toMatch(names);
      });
    }
    for (const subject of [SEALED, OPEN, task('T-0001'), task('T-0003')])
      expect(await desk.verify(subject)).toMatchObject({ chain_valid: true, broken_links: [] });
  },
);

/** Enough that others come in between. */
const MANY = tier(1_500, 3_000);

proves(
  ['trail.verify.waiting', 'trail.verify.output'],
  `other calls are answered while ${MANY} thoughts are verified`,
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.open('T-0001');
    await Promise.all(Array.from({ length: MANY }, (_, i) => desk.think('T-0001', `step ${i}`)));
    const waits: number[] = [];

    for (const subject of [{ task_id: 'T-0001' }, { session_id: 'A-0001' }]) {
      let ended = false;
      const began = performance.now();
      const verified = desk.verify(subject).finally(() => {
        ended = true;
      });
      let answered = 0;
      while (!ended) {
        const asked = performance.now();
        await desk.server.call('server_ping');
        waits.push(performance.now() - asked);
        if (!ended) answered += 1;
      }
      const report = await verified;
      expect(report).toMatchObject({ chain_valid: true, total_records: MANY, integrity_score: 100 });
      expect(report.trace).toHaveLength(MANY);
      expect(answered, 'pings answered before the walk ended').toBeGreaterThanOrEqual(1);
      console.error(
        `walk of ${MANY} thoughts: ${(performance.now() - began).toFixed(0)} ms, ${answered} pings answered meanwhile, longest wait ${Math.max(...waits).toFixed(1)} ms`,
      );
    }
  },
);

proves(
  'trail.verify.deleted',
  'the last thought of a task, given to another task, is found from the task it was taken from',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    tamper(colibri.dbPath, 'UPDATE thoughts SET task_id = 3, chain_position = 4 WHERE id = 5');

    const from = await desk.verify({ task_id: 'T-0001' });
    const bystander = await desk.verify({ task_id: 'T-0002' });
    tamper(colibri.dbPath, 'DELETE FROM action_payloads');
    const erased = await desk.verify({ task_id: 'T-0001' });

    for (const report of [from, erased]) {
      expect(report).toMatchObject({ chain_valid: false, total_records: 4 });
      expect(report.broken_links).toContainEqual(expect.objectContaining({ position: 5, record: 'Θ-0005' }));
    }
    // Without what the calls said nothing can be run again, and no column be told.
    expect(columnsNamed(from)['Θ-0005']).toContain('task_id');
    expect(bystander.chain_valid).toBe(true);
  },
);

proves(
  ['trail.verify.deleted', 'proof.pattern-b'],
  'a session with a damaged record is not sealed over, and the answer says where to look',
  async ({ colibri }) => {
    const desk = await leaveTrail(colibri);
    const breaks = ['DELETE FROM thoughts WHERE id = 8', `UPDATE thoughts SET hash = 'x' WHERE id = 9`];

    for (const sql of breaks) {
      tamper(colibri.dbPath, sql);
      for (const tool of ['merkle_root', 'merkle_finalize']) {
        const { error } = await desk.server.call(tool, OPEN);
        expect(error?.message, tool).toContain('audit_verify_chain');
      }
    }
    expect((await desk.verify(OPEN)).chain_valid).toBe(false);
    expect((await desk.server.call('server_ping')).envelope?.ok).toBe(true);
  },
);
