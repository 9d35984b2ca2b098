import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { JsonObject } from '../verify/rules/payloads.ts';

// A row of state as agents see it. The file may be anybody's: a value that is not what it should be is shown as it is.

const IDS: Readonly<Record<string, StateTable>> = {
  task_id: TASKS,
  parent_id: TASKS,
  sealed_task_id: TASKS,
  session_id: SESSIONS,
};

/** Columns that hold a list or an object in JSON. */
const JSON_COLUMNS = ['labels', 'depends_on', 'tests_run', 'blockers', 'observed', 'metadata', 'skills'];

/** Columns that agents do not see: they only make reading fast, or lead to a text that is shown. */
const INNER = ['is_final', 'queue', 'call', 'title_call', 'description_call', 'blocked_reason_call'];

/** What each column is called where agents know it by another name. */
const NAMES: Readonly<Record<string, string>> = { unmet: 'dependencies_unmet', position: 'audit_row' };

/** A row with its texts, as agents see it: ids as ids, lists as lists, without what has no value. */
export function viewRow(table: StateTable, row: JsonObject): JsonObject {
  const id = formatId(table, Number(row.id));
  const entries = Object.entries(row)
    .filter(([column, value]) => column !== 'id' && value !== null && !INNER.includes(column))
    .map(([column, value]) => [NAMES[column] ?? column, viewValue(column, value)] as const);
  return { [`${table.noun}_id`]: id, ...Object.fromEntries(entries) };
}

function viewValue(column: string, value: unknown): unknown {
  const table = IDS[column];
  if (table !== undefined && typeof value === 'number') return formatId(table, value);
  if (column === 'proof_grade') return value === 1;
  if (!JSON_COLUMNS.includes(column) || typeof value !== 'string') return value;
  try {
    const parsed: unknown = JSON.parse(value);
    if (column !== 'depends_on' || !Array.isArray(parsed)) return parsed;
    return parsed.map((id) => (typeof id === 'number' ? formatId(TASKS, id) : id));
  } catch {
    return value;
  }
}
