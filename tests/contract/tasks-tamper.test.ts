import { copyFileSync } from 'node:fs';
import { expect } from 'vitest';
import { findingsAt } from '../../src/__tests__/tasks/bench.ts';
import type { Finding } from '../../src/verify/finding.ts';
import { withDatabase } from '../driver/audit-file.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { openDesk } from './tasks-desk.ts';

/** What the other program does about Colibri's triggers: nothing, or out of the way while it works, or for good. */
type SeatBelt = 'kept' | 'restored' | 'dropped';

type TaskRow = Readonly<Record<string, string | number | null>>;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly hidden: number;
}

/** A board with something in every column, and the server gone. */
async function leaveBoard(colibri: Playground): Promise<Tampering> {
  const desk = await openDesk(colibri, { clientName: 'ada' });
  await desk.create({ title: 'alpha first', description: 'beta', labels: ['x'] });
  await desk.create({ title: 'alpha second', description: 'gamma', labels: ['x', 'y'] });
  await desk.create({
    title: 'alpha third',
    description: 'delta',
    labels: ['x', 'y'],
    depends_on: ['T-0002'],
    parent_id: 'T-0001',
    type: 'spike',
    estimate_hours: 3,
  });
  await desk.create({ title: 'alpha fourth', workflow: 'pipeline', proof_grade: true });
  await desk.create({ title: 'alpha fifth', parent_id: 'T-0003' });
  await desk.update('T-0003', { depends_on: ['T-0002', 'T-0004'] });
  await desk.move('T-0003', 'todo', 'blocked');
  const before = taskRow(colibri.dbPath, 3);
  await desk.update('T-0003', { progress: 40, assignee: 'bob' });
  await desk.think('T-0003');
  await desk.server.closeInput();
  return new Tampering(colibri, before);
}

/** Works on copies; the board itself stays as the server left it. */
class Tampering {
  /** T-0003 as it was before its last change. */
  readonly before: TaskRow;
  readonly #colibri: Playground;
  #copies = 0;

  constructor(colibri: Playground, before: TaskRow) {
    this.#colibri = colibri;
    this.before = before;
  }

  columnsOf(table: string): Column[] {
    return columnsIn(this.#colibri.dbPath, table);
  }

  rowOf(id: number): TaskRow {
    return taskRow(this.#colibri.dbPath, id);
  }

  /** What the verifier finds after another program ran this SQL. */
  async findingsAfter(sql: string, seatBelt: SeatBelt = 'restored'): Promise<Finding[]> {
    this.#copies += 1;
    const path = this.#colibri.path(`copy-${this.#copies}.db`);
    copyFileSync(this.#colibri.dbPath, path);
    runAsAnotherProgram(path, sql, seatBelt);
    return await findingsAt(path);
  }
}

function columnsIn(path: string, table: string): Column[] {
  return withDatabase(path, (db) => db.pragma(`table_xinfo(${table})`) as Column[]);
}

function taskRow(path: string, id: number): TaskRow {
  const names = columnsIn(path, 'tasks').filter((column) => column.hidden === 0);
  const sql = `SELECT ${names.map(({ name }) => name).join(', ')} FROM tasks WHERE id = ?`;
  return withDatabase(path, (db) => db.prepare(sql).get(id) as TaskRow);
}

function runAsAnotherProgram(path: string, sql: string, seatBelt: SeatBelt): void {
  const db = openDatabase(path);
  try {
    db.pragma('foreign_keys = OFF');
    const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
      name: string;
      sql: string;
    }[];
    if (seatBelt !== 'kept') for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    const changes = db.prepare('SELECT total_changes() AS n').get() as { n: number };
    db.exec(sql);
    const after = db.prepare('SELECT total_changes() AS n').get() as { n: number };
    if (sql !== '' && after.n === changes.n) throw new Error(`this changes nothing: ${sql}`);
    if (seatBelt === 'restored') for (const trigger of triggers) db.exec(trigger.sql);
  } finally {
    db.close();
  }
}

/** Other values for a column, as SQL: changed, trailing space, no text at all, nothing, something. */
function otherValues({ name, type, notnull }: Column, value: unknown): string[] {
  const byType: Record<string, string[]> = {
    TEXT: [
      `'x' || coalesce(${name}, '')`,
      `coalesce(${name}, 'y') || ' '`,
      `upper(coalesce(${name}, 'y')) || 'Z'`,
      `CAST(x'ff' AS TEXT)`,
    ],
    INTEGER: [`coalesce(${name}, 0) + 10`, `-7 - coalesce(${name}, 0)`, '9007199254740993'],
    REAL: [`coalesce(${name}, 0) + 1`, `coalesce(${name}, 0) + 0.0000001`, '9e999'],
  };
  const isJson = name === 'labels' || name === 'depends_on';
  const values = isJson ? [`'[]'`, `${name} || ' '`, `'[7]'`, `'not json'`] : (byType[type] ?? []);
  return notnull === 0 && value !== null && name !== 'id' ? [...values, 'NULL'] : values;
}

proves(
  'tasks.tamper.columns',
  'what the server left is sound, and so is an untouched copy',
  async ({ colibri }) => {
    const board = await leaveBoard(colibri);

    expect(await board.findingsAfter('', 'kept')).toEqual([]);
    expect(await board.findingsAfter('', 'restored')).toEqual([]);
  },
);

proves(
  'tasks.tamper.columns',
  'any other value in any column of tasks is found, with row and column',
  async ({ colibri }) => {
    const board = await leaveBoard(colibri);
    const row = board.rowOf(3);
    let cases = 0;

    for (const column of board.columnsOf('tasks').filter(({ hidden }) => hidden === 0)) {
      for (const value of otherValues(column, row[column.name])) {
        cases += 1;
        const what = `${column.name} = ${value}`;
        const findings = await board.findingsAfter(`UPDATE tasks SET ${what} WHERE id = 3`);
        const ofRow = findings.find(({ table, record }) => table === 'tasks' && record === 'T-0003');
        expect.soft(ofRow, what).toBeDefined();
        expect.soft(ofRow?.message, what).toContain('T-0003');
        if (column.name !== 'id') expect.soft(ofRow?.columns, what).toContain(column.name);
        expect
          .soft(
            findings.some(({ kind }) => kind === 'schema'),
            what,
          )
          .toBe(false);
      }
    }
    // Twenty-eight columns, two values each at the very least.
    expect(cases).toBeGreaterThanOrEqual(56);
  },
);

proves('tasks.tamper.columns', 'a generated column cannot hold anything of its own', async ({ colibri }) => {
  const board = await leaveBoard(colibri);
  const generated = board.columnsOf('tasks').filter(({ hidden }) => hidden !== 0);

  expect(generated.map(({ name }) => name)).toEqual(['urgency']);
  await expect(board.findingsAfter('UPDATE tasks SET urgency = 0 WHERE id = 3')).rejects.toThrow(
    /generated column/,
  );
});

proves(
  'tasks.tamper.columns',
  'an edit that lets the triggers mend every copy is found all the same',
  async ({ colibri }) => {
    const board = await leaveBoard(colibri);

    for (const change of [
      `title = 'omega'`,
      `description = 'omega'`,
      `labels = '["z"]'`,
      `depends_on = '[2]'`,
      `status = 'done', is_final = 1, queue = 0, progress = 100`,
      `updated_by = 'mallory', status_by = 'mallory'`,
    ]) {
      const findings = await board.findingsAfter(`UPDATE tasks SET ${change} WHERE id = 3`, 'kept');
      const columns = change.split(', ').map((part) => part.split(' ')[0]);
      for (const finding of findings)
        expect.soft(finding, change).toMatchObject({ kind: 'altered', table: 'tasks', record: 'T-0003' });
      expect
        .soft(findings.flatMap((finding) => finding.columns ?? []).toSorted(), change)
        .toEqual(columns.toSorted());
    }
  },
);

proves(
  'tasks.tamper.rows',
  'a task deleted, added, renumbered, swapped or put back to what it was is found',
  async ({ colibri }) => {
    const board = await leaveBoard(colibri);
    const names = board
      .columnsOf('tasks')
      .filter(({ hidden }) => hidden === 0)
      .map(({ name }) => name);
    const others = names.filter((name) => name !== 'id' && name !== 'sequence').join(', ');
    const cases: [sql: string, kind: Finding['kind'], record: string][] = [
      ['DELETE FROM tasks WHERE id = 1', 'missing', 'T-0001'],
      ['DELETE FROM tasks WHERE id = 3', 'missing', 'T-0003'],
      ['DELETE FROM tasks WHERE id = 5', 'missing', 'T-0005'],
      [
        `INSERT INTO tasks (id, sequence, ${others}) SELECT 6, 6, ${others} FROM tasks WHERE id = 4`,
        'unexplained',
        'T-0006',
      ],
      [
        `INSERT INTO tasks (id, sequence, ${others}) SELECT -6, 6, ${others} FROM tasks WHERE id = 4`,
        'unexplained',
        'T-00-6',
      ],
      ['UPDATE tasks SET id = 9 WHERE id = 3', 'missing', 'T-0003'],
      ['UPDATE tasks SET id = 9 WHERE id = 3', 'unexplained', 'T-0009'],
      ['UPDATE tasks SET id = -id; UPDATE tasks SET id = 6 + id', 'stale', 'T-0004'],
      ['UPDATE tasks SET position = position - 1 WHERE id = 3', 'stale', 'T-0003'],
    ];

    const whole = Object.entries(board.before).map(([name, value]) => `${name} = ${literal(value)}`);
    cases.push([`UPDATE tasks SET ${whole.join(', ')} WHERE id = 3`, 'stale', 'T-0003']);

    for (const [sql, kind, record] of cases) {
      const findings = await board.findingsAfter(sql);
      expect.soft(findings, sql).toContainEqual(expect.objectContaining({ table: 'tasks', kind, record }));
    }
  },
);

proves(
  'tasks.tamper.copies',
  'any change to labels, dependencies and words beside their task is found',
  async ({ colibri }) => {
    const board = await leaveBoard(colibri);
    const cases: [table: string, record: string, changes: string[]][] = [
      [
        'task_labels',
        'T-0003',
        [
          `UPDATE task_labels SET label = 'z' WHERE label = 'x' AND task_id = 3`,
          `UPDATE task_labels SET label = 'x ' WHERE label = 'x' AND task_id = 3`,
          `UPDATE task_labels SET label = 'X' WHERE label = 'x' AND task_id = 3`,
          `UPDATE task_labels SET task_id = 4 WHERE label = 'x' AND task_id = 3`,
          `DELETE FROM task_labels WHERE label = 'x' AND task_id = 3`,
          `INSERT INTO task_labels (label, task_id) VALUES ('z', 3)`,
        ],
      ],
      [
        'task_dependencies',
        'T-0003',
        [
          'UPDATE task_dependencies SET depends_on = 1 WHERE task_id = 3 AND depends_on = 2',
          'UPDATE task_dependencies SET task_id = 4 WHERE task_id = 3 AND depends_on = 2',
          'DELETE FROM task_dependencies WHERE task_id = 3',
          'INSERT INTO task_dependencies (task_id, depends_on) VALUES (3, 5)',
          'INSERT INTO task_dependencies (task_id, depends_on) VALUES (3, 3)',
        ],
      ],
      [
        'task_words',
        'T-0003',
        [
          `UPDATE task_words SET title = 'omega' WHERE rowid = 3`,
          `UPDATE task_words SET title = title || ' ' WHERE rowid = 3`,
          `UPDATE task_words SET description = '' WHERE rowid = 3`,
          `UPDATE task_words SET description = NULL WHERE rowid = 3`,
          'UPDATE task_words SET rowid = 9 WHERE rowid = 3',
          'DELETE FROM task_words WHERE rowid = 3',
        ],
      ],
      ['task_words', 'T-0009', [`INSERT INTO task_words (rowid, title, description) VALUES (9, 'a', 'b')`]],
      ['task_labels', 'T-0009', [`INSERT INTO task_labels (label, task_id) VALUES ('x', 9)`]],
      ['task_dependencies', 'T-0009', ['INSERT INTO task_dependencies (task_id, depends_on) VALUES (9, 1)']],
    ];

    for (const [table, record, changes] of cases) {
      for (const sql of changes) {
        const findings = await board.findingsAfter(sql);
        expect.soft(findings, sql).toContainEqual(expect.objectContaining({ kind: 'index', table, record }));
      }
    }
  },
);

proves('tasks.tamper.copies', 'the copies have no column that no case changes', async ({ colibri }) => {
  const board = await leaveBoard(colibri);
  const columns = (table: string) => board.columnsOf(table).map(({ name }) => name);

  expect(columns('task_labels')).toEqual(['label', 'task_id']);
  expect(columns('task_dependencies')).toEqual(['task_id', 'depends_on']);
  expect(columns('task_words')).toEqual(['title', 'description', 'task_words', 'rank']);
  expect(columns('task_words_content')).toEqual(['id', 'c0', 'c1']);
  expect(columns('task_words_data')).toEqual(['id', 'block']);
  expect(columns('task_words_idx')).toEqual(['segid', 'term', 'pgno']);
  expect(columns('task_words_config')).toEqual(['k', 'v']);
});

const LAST_SEGMENT = 'WHERE id = (SELECT max(id) FROM task_words_data)';

proves('tasks.tamper.shadow', 'a change to the tables behind the words is found', async ({ colibri }) => {
  const board = await leaveBoard(colibri);
  const changes = [
    'UPDATE task_words_content SET id = 9 WHERE id = 3',
    `UPDATE task_words_content SET c0 = 'omega' WHERE id = 3`,
    `UPDATE task_words_content SET c0 = c0 || ' ' WHERE id = 3`,
    `UPDATE task_words_content SET c1 = 'omega' WHERE id = 3`,
    'UPDATE task_words_content SET c1 = NULL WHERE id = 3',
    'DELETE FROM task_words_content WHERE id = 3',
    `INSERT INTO task_words_content VALUES (9, 'a', 'b')`,
    `UPDATE task_words_data SET id = id + 1000000 ${LAST_SEGMENT}`,
    `UPDATE task_words_data SET block = x'00' ${LAST_SEGMENT}`,
    `UPDATE task_words_data SET block = block || x'00' ${LAST_SEGMENT}`,
    `DELETE FROM task_words_data ${LAST_SEGMENT}`,
    `UPDATE task_words_data SET block = x'00' WHERE id = 1`,
    `UPDATE task_words_data SET block = x'00' WHERE id = 10`,
    'DELETE FROM task_words_data WHERE id = 1',
    `UPDATE task_words_idx SET term = term || 'z'`,
    'UPDATE task_words_idx SET pgno = pgno + 2',
    'DELETE FROM task_words_data WHERE id = 10',
    'UPDATE task_words_config SET v = NULL',
    `UPDATE task_words_config SET k = 'other'`,
  ];

  for (const sql of changes) expect.soft(await board.findingsAfter(sql), sql).not.toEqual([]);
});

proves('tasks.tamper.seat-belt', 'a file without its triggers is refused', async ({ colibri }) => {
  const board = await leaveBoard(colibri);

  const dropped = board.findingsAfter(`UPDATE tasks SET title = 'omega' WHERE id = 3`, 'dropped');

  await expect(dropped).rejects.toThrow(/was removed from the schema\. .* And \d+ more\./);
});

proves('tasks.tamper.seat-belt', 'the triggers refuse to delete a task', async ({ colibri }) => {
  const board = await leaveBoard(colibri);

  await expect(board.findingsAfter('DELETE FROM tasks WHERE id = 3', 'kept')).rejects.toThrow(
    'tasks are never deleted',
  );
});

for (const sql of [
  'UPDATE task_words_config SET v = 5',
  `INSERT INTO task_words_config VALUES ('secure-delete', 1)`,
]) {
  proves('tasks.tamper.shadow', `the verifier reports ${sql}`, async ({ colibri }) => {
    const board = await leaveBoard(colibri);

    expect(await board.findingsAfter(sql)).not.toEqual([]);
  });
}

function literal(value: string | number | null): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value ?? 'NULL');
}
