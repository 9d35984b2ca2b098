import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';

/** A value of a column, as it is stored and hashed. */
export type Fact = string | number | null;

/** A table whose rows the log vouches for. Each row has an integer `id` and the `position` of the call that wrote it last. */
export interface StateTable {
  readonly name: StateTableName;
  /** One row of it, in a sentence. */
  readonly noun: string;
  /** Shown before the number: `T-0001`. */
  readonly prefix: string;
  /** The tool that makes its rows. */
  readonly createdBy: string;
  /** Rows are written once. */
  readonly appendOnly: boolean;
  /** Every column that is hashed. */
  readonly facts: readonly string[];
  /** Which of these hold the digest of a text. */
  readonly texts: readonly string[];
  /** Columns computed from others: in no digest, recomputed by the verifier. */
  readonly derived: readonly string[];
  /** What stands before each fact in the canonical JSON of a row, and behind the last. The name of the table is in there. */
  readonly layout: readonly string[];
  readonly end: string;
}

export type StateTableName = 'tasks' | 'thoughts' | 'sessions' | 'session_records';

export const TASKS = stateTable({
  name: 'tasks',
  noun: 'task',
  prefix: 'T',
  createdBy: 'task_create',
  appendOnly: false,
  facts: `assignee blocked_reason blocked_reason_call created_at created_by depends_on description description_call
    estimate_hours held_by held_process held_since id labels parent_id position priority progress project proof_grade
    sequence status status_by status_since title title_call type updated_at updated_by workflow`,
  texts: ['title', 'description', 'blocked_reason'],
  derived: ['unmet', 'is_final', 'queue'],
});

export const THOUGHTS = stateTable({
  name: 'thoughts',
  noun: 'thought',
  prefix: 'Θ',
  createdBy: 'thought_record',
  appendOnly: true,
  facts: `blockers branch call chain_position commit_sha content hash id metadata observed position previous_hash recorded_at
    recorded_by session_id task_id tests_run type`,
  texts: ['content', 'tests_run', 'blockers', 'metadata'],
});

export const SESSIONS = stateTable({
  name: 'sessions',
  noun: 'session',
  prefix: 'A',
  createdBy: 'audit_session_start',
  appendOnly: false,
  facts: `auditor_id call finalized_at finalized_by id leaf_count merkle_root position reason scope sealed_task_id skills
    started_at started_by status task_id tree_depth`,
  texts: ['reason'],
});

export const SESSION_RECORDS = stateTable({
  name: 'session_records',
  noun: 'session record',
  prefix: 'R',
  createdBy: 'thought_record',
  appendOnly: true,
  facts: 'id kind position ref session_id task_id',
});

/** The column that says by which call a text came: the position of its enter row. */
export function callColumn({ facts }: StateTable, text: string): string {
  return facts.includes(`${text}_call`) ? `${text}_call` : 'call';
}

/** A test compares this list with the schema. */
export const STATE_TABLES: readonly StateTable[] = [TASKS, THOUGHTS, SESSIONS, SESSION_RECORDS];

/** The table of this name. */
export function tableNamed(name: StateTableName): StateTable {
  // The names are closed, so there is one.
  return STATE_TABLES.find((table) => table.name === name)!;
}

const ID_DIGITS = 4;

/** `T-0001`; four digits, growing beyond. */
export function formatId(table: StateTable, id: number): string {
  return `${table.prefix}-${id < 1_000 ? String(id).padStart(ID_DIGITS, '0') : id}`;
}

/** The number inside an id, or undefined for a text that is not an id of this table. */
export function parseId(table: StateTable, text: string): number | undefined {
  if (!text.startsWith(`${table.prefix}-`)) return undefined;
  const digits = text.slice(table.prefix.length + 1);
  const id = Number(digits);
  return Number.isSafeInteger(id) && id > 0 && formatId(table, id) === text ? id : undefined;
}

/** What is hashed of a row: the canonical JSON of its facts and its table's name. Other columns are left out. */
export function rowText(table: StateTable, row: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (let i = 0; i < table.facts.length; i += 1)
    text += table.layout[i] + canonicalJson(row[table.facts[i] ?? ''] ?? null);
  return text + table.end;
}

/** The same of a row whose facts are listed in their order. Sorting them again for each row would take five times as long. */
export function textOfFacts({ layout, end }: StateTable, values: readonly unknown[]): string {
  let text = '';
  for (let i = 0; i < layout.length; i += 1) text += layout[i] + canonicalJson(values[i] ?? null);
  return text + end;
}

export function rowHash(table: StateTable, row: Readonly<Record<string, unknown>>): string {
  return sha256Hex(rowText(table, row));
}

type Said = 'name' | 'noun' | 'prefix' | 'createdBy' | 'appendOnly';

function stateTable(
  table: Pick<StateTable, Said> & Partial<Pick<StateTable, 'texts' | 'derived'>> & { readonly facts: string },
): StateTable {
  const facts = table.facts.split(/\s+/).sort();
  const name = `"table":"${table.name}"`;
  const layout = facts.map((column, i) => {
    const isBehindName = column > 'table' && !((facts[i - 1] ?? '') > 'table');
    return `${i === 0 ? '{' : ','}${isBehindName ? `${name},` : ''}"${column}":`;
  });
  const end = facts.some((column) => column > 'table') ? '}' : `,${name}}`;
  return { texts: [], derived: [], ...table, facts, layout, end };
}
