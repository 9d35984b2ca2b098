import { formatId, TASKS } from '../../log/tables.ts';
import { auditRow, type Report } from '../finding.ts';
import { BLOCK_ROWS } from '../rules/links.ts';
import type { Walked } from '../source.ts';
import type { TaskCall } from '../task-calls.ts';
import type { FromTable, Noting } from './database.ts';

const PAGE = 2_000;

/** Everything that repeats what the log already says, so that finding is fast. Each must be exactly what it is derived from. */
export async function checkDerived(
  from: FromTable,
  walked: Walked,
  report: Report,
  noting: Noting,
): Promise<void> {
  const parts: Readonly<Record<string, () => Promise<void>>> = {
    open_calls: () => checkOpenCalls(from, walked, report),
    processes: () => checkProcesses(from, walked, report),
    log_blocks: () => checkBlocks(from, walked, report),
    task_calls: () => checkTaskCalls(from, walked, report),
    task_labels: () => checkLists(from, 'task_labels', 'label', 'labels', walked, report),
    task_dependencies: () =>
      checkLists(from, 'task_dependencies', 'depends_on', 'depends_on', walked, report),
    tasks: () => checkCounters(from, walked, report),
  };
  for (const [table, part] of Object.entries(parts)) await noting(table, report, part);
}

/** The marks of running calls must be exactly the writing calls that have no exit row. */
async function checkOpenCalls(
  from: FromTable,
  { open, doubtful, isLost }: Walked,
  report: Report,
): Promise<void> {
  const marks = await from('open_calls').all<{ position: number; process: string }>(
    'SELECT position, process FROM open_calls',
  );
  const marked = new Map(marks.map((mark) => [mark.position, mark.process]));
  for (const [position, process] of open) {
    const said = marked.get(position);
    marked.delete(position);
    if (said === process || (said === undefined && doubtful.has(position))) continue;
    const message =
      said === undefined
        ? `The call at ${position} never ended, and open_calls does not say so.`
        : `open_calls names another process for the call at ${position} than its row.`;
    const base = { table: 'open_calls', record: auditRow(position), position, message };
    report(
      said === undefined ? { ...base, kind: 'missing' } : { ...base, kind: 'altered', columns: ['process'] },
    );
  }
  for (const position of marked.keys()) {
    if (isLost(position)) continue;
    const message = `open_calls marks ${position} as running, but no running call stands there.`;
    report({ kind: 'stray', table: 'open_calls', record: auditRow(position), message });
  }
}

async function checkProcesses(
  from: FromTable,
  { lastSeen, isComplete }: Walked,
  report: Report,
): Promise<void> {
  if (!isComplete || lastSeen === undefined) return;
  const rows = await from('processes').all<{ process: string; last_seen: string }>(
    'SELECT process, last_seen FROM processes',
  );
  const missing = new Map(lastSeen);
  for (const { process, last_seen } of rows) {
    const expected = missing.get(process);
    missing.delete(process);
    if (expected === last_seen) continue;
    const base = { table: 'processes', record: String(process) };
    if (expected === undefined)
      report({ ...base, kind: 'stray', message: 'processes names a process that never wrote a row.' });
    else
      report({
        ...{ ...base, kind: 'altered', columns: ['last_seen'], expected, actual: String(last_seen) },
        message: 'processes has another time for a process than its last row.',
      });
  }
  for (const process of missing.keys())
    report({
      kind: 'missing',
      table: 'processes',
      record: process,
      message: 'processes does not name a process that wrote rows.',
    });
}

async function checkBlocks(from: FromTable, { blocks, isComplete }: Walked, report: Report): Promise<void> {
  const rows = await from('log_blocks').all<{ block: number; hash: string }>(
    'SELECT block, hash FROM log_blocks ORDER BY block',
  );
  const stored = new Map(rows.map(({ block, hash }) => [block, hash]));
  for (const [block, expected] of blocks.entries()) {
    const actual = stored.get(block);
    stored.delete(block);
    // Over rows that are not as they were written the root is another one, and that was said.
    if (actual === expected || (actual !== undefined && !isComplete)) continue;
    const position = (block + 1) * BLOCK_ROWS;
    const what = actual === undefined ? 'is missing' : 'is wrong';
    const message = `The stored root of audit rows ${block * BLOCK_ROWS + 1} to ${position} ${what}.`;
    const base = { table: 'log_blocks', record: `block ${block}`, position, columns: ['hash'], message };
    report({ ...base, kind: actual === undefined ? 'missing' : 'altered', expected, actual: actual ?? '' });
  }
  for (const block of stored.keys()) {
    if (!isComplete) continue;
    const message = `There is a stored root of block ${block}, which is not full.`;
    report({ kind: 'stray', table: 'log_blocks', record: `block ${block}`, message });
  }
}

/** Walks two lists in the same order, so that what is in one of them only shows at once. */
async function checkTaskCalls(
  from: FromTable,
  { taskCalls, doubtfulExits }: Walked,
  tell: Report,
): Promise<void> {
  if (taskCalls === undefined) return;
  const report = ({ call, ...finding }: ReturnType<typeof missingCall | typeof strayCall>) => {
    if (!doubtfulExits.has(call)) tell(finding);
  };
  const expected = taskCalls.inOrder();
  let next = expected.next();
  const isBefore = (a: TaskCall, b: TaskCall) =>
    a.task < b.task || (a.task === b.task && a.position < b.position);
  for await (const { task_id: task, position } of storedCalls(from)) {
    // Bytes that only read like a number compare like one, and are none.
    const here = { task, position: typeof position === 'number' ? position : Number.MAX_VALUE };
    for (; next.done !== true && isBefore(next.value, here); next = expected.next())
      report(missingCall(next.value));
    if (next.done !== true && !isBefore(here, next.value)) next = expected.next();
    else report(strayCall(here));
  }
  for (; next.done !== true; next = expected.next()) report(missingCall(next.value));
}

async function* storedCalls(from: FromTable): AsyncGenerator<{ task_id: number; position: number }> {
  let last = { task_id: Number.NEGATIVE_INFINITY, position: Number.NEGATIVE_INFINITY };
  for (;;) {
    const page = await from('task_calls').all<{ task_id: number; position: number }>(
      'SELECT task_id, position FROM task_calls WHERE (task_id, position) > (?, ?) ORDER BY task_id, position LIMIT ?',
      last.task_id,
      last.position,
      PAGE,
    );
    yield* page;
    const end = page.at(-1);
    if (end === undefined || (end.task_id === last.task_id && end.position <= last.position)) return;
    last = end;
  }
}

function missingCall({ task, position }: TaskCall) {
  const record = formatId(TASKS, task);
  const message = `task_calls does not say that the call of audit row ${position} was about ${record}.`;
  return { kind: 'missing', table: 'task_calls', record, message, call: position } as const;
}

function strayCall({ task, position }: TaskCall) {
  const record = formatId(TASKS, task);
  const message = `task_calls says that the call of audit row ${position} was about ${record}, and it was not.`;
  return { kind: 'stray', table: 'task_calls', record, message, call: position } as const;
}

/** Lists inside tasks that are repeated one row an entry. */
async function checkLists(
  from: FromTable,
  table: string,
  entry: string,
  column: string,
  { found }: Walked,
  report: Report,
): Promise<void> {
  const stored = new Map<number, unknown[]>();
  for (const { id, value } of await from(table).all<{ id: number; value: unknown }>(
    `SELECT task_id AS id, ${entry} AS value FROM ${table}`,
  )) {
    const list = stored.get(id);
    if (list === undefined) stored.set(id, [value]);
    else list.push(value);
  }
  const tell = (id: number) => {
    const record = formatId(TASKS, id);
    // A list that follows a row that was changed is no second cause.
    if (found.has(record)) return;
    const message = `${table} disagrees with task ${record}: searching would miss it or find it wrongly.`;
    report({ kind: 'index', table, record, message });
  };
  for await (const { id, list } of tasksWith<{ id: number; list: string }>(from, `id, ${column} AS list`)) {
    if (!isSameSet(entriesOf(list), stored.get(id) ?? [])) tell(id);
    stored.delete(id);
  }
  for (const id of stored.keys()) tell(id);
}

function entriesOf(list: string): unknown[] {
  if (list === '[]') return [];
  try {
    const value: unknown = JSON.parse(list);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function isSameSet(a: readonly unknown[], b: readonly unknown[]): boolean {
  const known = new Set(a);
  return known.size === b.length && b.every((value) => known.has(value));
}

async function checkCounters(from: FromTable, { derivedOf }: Walked, report: Report): Promise<void> {
  const counters = TASKS.derived;
  for await (const row of tasksWith<Readonly<Record<string, number>> & { id: number }>(
    from,
    `id, ${counters.join(', ')}`,
  )) {
    const expected: Readonly<Record<string, number>> | undefined = derivedOf(row.id);
    if (expected === undefined) continue;
    const columns = counters.filter((column) => row[column] !== expected[column]);
    if (columns.length === 0) continue;
    const record = formatId(TASKS, row.id);
    const list = (values: Readonly<Record<string, number>>) =>
      columns.map((column) => `${column} ${values[column]}`).join(', ');
    const message = `In ${record}, ${columns.join(', ')} must be computed from other tasks and was changed.`;
    report({
      kind: 'altered',
      table: 'tasks',
      record,
      columns,
      message,
      expected: list(expected),
      actual: list(row),
    });
  }
}

async function* tasksWith<T extends { readonly id: number }>(
  from: FromTable,
  columns: string,
): AsyncGenerator<T> {
  for (let last = Number.MIN_SAFE_INTEGER; ; ) {
    const page = await from('tasks').all<T>(
      `SELECT ${columns} FROM tasks WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
      last,
      Number.MAX_SAFE_INTEGER,
      PAGE,
    );
    yield* page;
    const end = page.at(-1)?.id;
    if (end === undefined || end <= last) return;
    last = end;
  }
}
