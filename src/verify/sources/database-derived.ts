import { formatId, parseId, TASKS } from '../../log/tables.ts';
import { BLOCK_ROWS } from '../../log/tree.ts';
import type { Row, SqlList } from '../../storage/engine.ts';
import { listIn } from '../../untrusted.ts';
import { auditRow, type Finding } from '../finding.ts';
import { inPages, isPlain, type Parts, type Rest } from './database-cells.ts';

/** Everything that repeats what the log already says, so that finding is fast. Each must be exactly what it is derived from. */
export const DERIVED: Parts = {
  open_calls: checkOpenCalls,
  processes: checkProcesses,
  log_blocks: checkBlocks,
  task_calls: checkTaskCalls,
  erased_texts: checkErasedTexts,
  tasks: checkTasks,
};

/** How a finding names what a row of a derived table is about. */
interface About extends Pick<Finding, 'record' | 'position'> {
  readonly what: string;
}

/** Compares the columns of a table with what they must be; a key of several columns is their JSON. `isExplained` tells what only follows from another finding. */
async function compare<K extends string | number>(
  { from, report }: Rest,
  [table, key, column]: readonly [table: string, key: string | readonly string[], column: string],
  expected: ReadonlyMap<K, string>,
  about: (key: K) => About,
  isExplained: (key: K, due: string | undefined, actual: string | undefined) => boolean = () => false,
): Promise<void> {
  const rows = await from(table).lists(`SELECT ${column}, ${[key].flat().join(', ')} FROM ${table}`);
  const keyOf = (parts: SqlList) => (typeof key === 'string' ? parts[0] : JSON.stringify(parts)) as K;
  const stored = new Map(rows.map(([value, ...parts]) => [keyOf(parts), value as string]));
  for (const one of new Set([...expected.keys(), ...stored.keys()])) {
    const [due, actual] = [expected.get(one), stored.get(one)];
    if (due === actual || isExplained(one, due, actual)) continue;
    const { what, record, ...place } = about(one);
    if (due === undefined) {
      const message = `${table} has ${what}, but the log does not.`;
      report({ kind: 'stray', table, record, message });
      continue;
    }
    const isMissing = actual === undefined;
    const message = isMissing ? `${table} lacks ${what}.` : `${table} has another ${column} for ${what}.`;
    const found = isMissing
      ? ({ kind: 'missing' } as const)
      : ({ kind: 'altered', columns: [column] } as const);
    report({ ...found, table, record, ...place, message, expected: due, actual: String(actual ?? '') });
  }
}

/** The marks of running calls must be exactly the calls that have no exit row. */
async function checkOpenCalls(rest: Rest): Promise<void> {
  const { open, doubtful, isLost } = rest.walked;
  await compare(
    rest,
    ['open_calls', 'position', 'process'],
    open,
    (position) => ({ record: auditRow(position), position, what: `a running call at ${position}` }),
    (position, due, actual) =>
      due === undefined ? isLost(position) : actual === undefined && doubtful.has(position),
  );
}

async function checkProcesses(rest: Rest): Promise<void> {
  const { lastSeen, isComplete } = rest.walked;
  if (!isComplete || lastSeen === undefined) return;
  const due = new Map<string, string>();
  for (const [process, actor, at] of lastSeen) due.set(JSON.stringify([process, actor]), at);
  const about = (key: string) => {
    const [process, actor] = listIn(key);
    return { record: `${process} ${actor}`, what: 'a process with an actor' };
  };
  await compare(rest, ['processes', ['process', 'actor'], 'last_seen'], due, about);
}

async function checkBlocks(rest: Rest): Promise<void> {
  const { blocks, isComplete } = rest.walked;
  const about = (block: number) => {
    const [first, position] = [block * BLOCK_ROWS + 1, (block + 1) * BLOCK_ROWS];
    return { record: `block ${block}`, position, what: `the root of audit rows ${first} to ${position}` };
  };
  // Over rows that are not as they were written the root is another one, and that was said.
  const isExplained = (_: number, _due: unknown, actual: unknown) => actual !== undefined && !isComplete;
  await compare(rest, ['log_blocks', 'block', 'hash'], new Map(blocks.entries()), about, isExplained);
}

/** Walks two lists in the same order, so that what is in one of them only shows at once. */
async function checkTaskCalls({ from, walked, report }: Rest): Promise<void> {
  const { taskCalls, doubtfulExits } = walked;
  if (taskCalls === undefined) return;
  const tell = (kind: 'missing' | 'stray', task: number, position: number) => {
    if (doubtfulExits.has(position)) return;
    const record = formatId(TASKS, task);
    const call = `the call of audit row ${position} was about ${record}`;
    const message =
      kind === 'missing'
        ? `task_calls does not say that ${call}.`
        : `task_calls says that ${call}, but it was not.`;
    report({ kind, table: 'task_calls', record, message });
  };
  const { tasks, positions } = taskCalls.inOrder();
  let next = 0;
  // Those that come before this one are not stored.
  const isDue = (task: number, position: number) => {
    for (; next < tasks.length; next += 1) {
      const [dueTask = 0, duePosition = 0] = [tasks[next], positions[next]];
      if (dueTask > task || (dueTask === task && duePosition > position)) return false;
      if (dueTask === task && duePosition === position) return true;
      tell('missing', dueTask, duePosition);
    }
    return false;
  };
  const sql =
    'SELECT task_id, position FROM task_calls WHERE (task_id, position) > (?, ?) ORDER BY task_id, position LIMIT 2000';
  let [task, position] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (;;) {
    const before = [task, position] as const;
    for (const row of await from('task_calls').lists(sql, task, position)) {
      // Bytes that only read like a number compare like one, and are none.
      task = typeof row[0] === 'number' ? row[0] : Number.MAX_VALUE;
      position = typeof row[1] === 'number' ? row[1] : Number.MAX_VALUE;
      if (isDue(task, position)) next += 1;
      else tell('stray', task, position);
    }
    if (task === before[0] && position <= before[1]) break;
  }
  isDue(Number.POSITIVE_INFINITY, 0);
}

/** Each text that an owner_erase lists, and nothing else. */
async function checkErasedTexts({ from, walked, report }: Rest): Promise<void> {
  const { erasedTexts, isComplete } = walked;
  const table = 'erased_texts';
  const stored = new Set<unknown>();
  const select = 'SELECT digest, task_id, position FROM erased_texts WHERE';
  for await (const { digest, task_id, position } of inPages<Row>(from(table), select, 'digest', [], '')) {
    stored.add(digest);
    const due = erasedTexts.get(String(digest));
    const record = /^[0-9a-f]{16}/.exec(String(digest))?.[0] ?? 'without a digest';
    if (due === undefined) {
      const message = `erased_texts says that the text ${record} was erased, but no row of the log says so.`;
      if (isComplete) report({ kind: 'stray', table, record, message });
      continue;
    }
    const task = due.task === undefined ? null : (parseId(TASKS, due.task) ?? null);
    const columns = [
      ...(task === task_id ? [] : ['task_id']),
      ...(due.position === position ? [] : ['position']),
    ];
    const message = `erased_texts has another ${columns.join(', ')} for the text ${record} than the log.`;
    if (columns.length > 0) report({ kind: 'altered', table, record, columns, message });
  }
  for (const digest of erasedTexts.keys()) {
    const record = digest.slice(0, 16);
    const message = `erased_texts does not say that the text ${record} was erased.`;
    if (!stored.has(digest)) report({ kind: 'missing', table, record, message });
  }
}

/** Lists of a task, each with the table that has a row for each of its entries. */
const LISTS = [
  { column: 'labels', table: 'task_labels', entry: 'label' },
  { column: 'depends_on', table: 'task_dependencies', entry: 'depends_on' },
];

/** What of a task is repeated elsewhere, one row an entry of a list, or computed from others. */
async function checkTasks(rest: Rest): Promise<void> {
  const stored: { table: string; column: string; entries: Map<unknown, Set<unknown>> }[] = [];
  for (const { table, column, entry } of LISTS)
    stored.push({ table, column, entries: await entriesIn(rest, table, entry) });
  const columns = ['id', ...LISTS.map(({ column }) => column), ...TASKS.derived].join(', ');
  const select = `SELECT ${columns} FROM tasks WHERE id <= ${Number.MAX_SAFE_INTEGER} AND`;
  for await (const row of inPages<Row>(rest.from('tasks'), select, 'id')) {
    const id = Number(row.id);
    for (const { table, column, entries } of stored) {
      const [list, there] = [String(row[column]), entries.get(id) ?? NOTHING];
      const due = list === '[]' ? NOTHING : new Set(listIn(list));
      if (due.size !== there.size || [...there].some((value) => !due.has(value))) tellList(rest, table, id);
      if (there !== NOTHING) entries.delete(id);
    }
    checkCounters(rest, id, row);
  }
  for (const { table, entries } of stored) for (const id of entries.keys()) tellList(rest, table, id);
}

async function entriesIn({ from }: Rest, table: string, entry: string): Promise<Map<unknown, Set<unknown>>> {
  // Bytes that only read like a number are no number, and so are left over.
  const stored = new Map<unknown, Set<unknown>>();
  for (const [id, value] of await from(table).lists(`SELECT task_id, ${entry} FROM ${table}`)) {
    // Bytes that are not UTF-8 may read like a label that is one. The engine compares bytes.
    const sql = `SELECT 1 AS same FROM ${table} WHERE task_id = ? AND ${entry} = ?`;
    const isSure = typeof value !== 'string' || isPlain(value);
    const isRead = isSure || (await from(table).get(sql, id ?? null, value)) !== undefined;
    const list = stored.get(id) ?? new Set();
    stored.set(id, list.add(isRead ? value : undefined));
  }
  return stored;
}

function tellList({ walked: { found }, report }: Rest, table: string, id: unknown): void {
  const isNumber = typeof id === 'number' && Number.isInteger(id);
  const record = isNumber ? formatId(TASKS, id) : `task_id ${id instanceof Uint8Array ? 'of bytes' : id}`;
  // A list that follows a row that was changed is no second cause.
  if (found.has(record)) return;
  const message = `${table} disagrees with task ${record}: searching would miss it or find it wrongly.`;
  report({ kind: 'index', table, record, message });
}

const NOTHING: ReadonlySet<unknown> = new Set();

function checkCounters({ walked, report }: Rest, id: number, row: Row): void {
  const expected: Readonly<Record<string, number>> | undefined = walked.derivedOf(id);
  if (expected === undefined) return;
  const columns = TASKS.derived.filter((column) => row[column] !== expected[column]);
  if (columns.length === 0) return;
  const record = formatId(TASKS, id);
  const message = `In ${record}, ${columns.join(', ')} must be computed from other tasks and was changed.`;
  const said = (values: Row) => columns.map((column) => `${column} ${values[column]}`).join(', ');
  const found = { columns, expected: said(expected), actual: said(row) };
  report({ kind: 'altered', table: 'tasks', record, message, ...found });
}
