import type { Config } from '../config.ts';
import { formatId, type StateTable } from '../log/state.ts';
import { SESSIONS, TASKS } from '../log/tables.ts';
import type { Finding } from '../log/verify/finding.ts';
import { checkRows, type StateRow } from '../log/verify/state.ts';
import type { Reader } from '../storage/engine.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { concerns, newestCalls, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { proofReach } from './proof-reach.ts';
import { parseRecordId } from './record-id.ts';
import { PROOF_LEGEND, tellCall } from './story.ts';
import { printable } from './text.ts';

const HISTORY_MAX = 200;
const HIDDEN: readonly string[] = ['id', 'salt', 'is_final', 'queue'];

interface Shown {
  readonly id: string;
  readonly row: StateRow;
  readonly findings: readonly Finding[];
  readonly history: readonly PastCall[];
  readonly checkpointed: boolean;
  readonly anchored: boolean;
}

/** One record with its history and how well it is proved. */
export const show: Command = {
  name: 'show',
  usage: 'ID',
  summary: 'one task (T-…), thought (Θ-…) or session (A-…), its history, and how well it is proved',
  details: 'A thought may also be written TH-1. Exit 1 when the record is not as it was written.',
  options: {},
  positionals: [1, 1],
  async run({ positionals, out, config }) {
    const settings = config();
    const [table, id] = parseRecordId(positionals[0] ?? '');
    const shown = await withDatabase(settings, undefined, (storage) =>
      storage.read((tx) => collect(tx, settings, table, id)),
    );
    out.data(shown, () => draw(shown, settings, out));
    return shown.findings.length === 0 ? EXIT.fine : EXIT.found;
  },
};

async function collect(tx: Reader, config: Config, table: StateTable, id: number): Promise<Shown> {
  const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name)).map(
    (column) => column.name,
  );
  const row = await tx.get<StateRow>(`SELECT ${columns.join(', ')} FROM ${table.name} WHERE id = ?`, id);
  const record = formatId(table, id);
  if (row === undefined) throw new UsageError(await describeMissing(tx, config, table, record));
  const findings: Finding[] = [];
  await checkRows(tx, table, [row], (finding) => findings.push(finding));
  const history = await newestCalls(
    tx,
    (call) => concerns(call, record) && call.row.effects.length > 0,
    HISTORY_MAX,
  );
  const reach = proofReach(config);
  return {
    id: record,
    row,
    findings,
    history,
    checkpointed: row.position <= reach.checkpointed,
    anchored: row.position <= reach.anchored,
  };
}

async function describeMissing(
  tx: Reader,
  config: Config,
  table: StateTable,
  record: string,
): Promise<string> {
  const { last } = (await tx.get<{ last: number | null }>(`SELECT max(id) AS last FROM ${table.name}`)) ?? {};
  const others =
    last == null ? `There is no ${table.noun} at all yet` : `The newest is ${formatId(table, last)}`;
  return `There is no ${table.noun} ${record} in ${config.dbPath}. ${others}.`;
}

function draw(shown: Shown, config: Config, out: Output): void {
  out.line(out.paint('bold', shown.id));
  const entries = Object.entries(shown.row).filter(
    ([column, value]) => !HIDDEN.includes(column) && value !== null && value !== '' && value !== '[]',
  );
  const width = Math.max(...entries.map(([column]) => column.length));
  for (const [column, value] of entries)
    out.line(`  ${out.paint('dim', column.padEnd(width))}  ${printable(describe(column, value))}`, width + 4);
  out.line();
  if (shown.history.length > 0) out.line(out.paint('bold', `History  ${out.paint('dim', PROOF_LEGEND)}`));
  for (const call of shown.history)
    for (const line of tellCall(call, proofReach(config), out, 2)) out.line(line);
  out.line();
  for (const finding of shown.findings) out.line(out.paint('red', `✗ ${finding.message}`));
  if (shown.findings.length === 0)
    out.line(`${out.paint('green', '✓ intact')}: as audit row ${shown.row.position} left it`);
  out.line(
    shown.checkpointed
      ? `${out.paint('green', '● checkpointed')}: a signed head claims it; colibri verify checks the claim`
      : `${out.paint('yellow', '○ not signed yet')}: colibri checkpoint signs it now`,
  );
}

function describe(column: string, value: unknown): string {
  const table = { parent_id: TASKS, task_id: TASKS, session_id: SESSIONS, sealed_task_id: TASKS }[column];
  if (table !== undefined && typeof value === 'number') return formatId(table, value);
  if (column === 'proof_grade') return value === 1 ? 'yes' : 'no';
  if (column === 'position') return `audit row ${value}`;
  const list = LISTS.includes(column) ? readList(value) : undefined;
  return (
    list?.map((entry) => (typeof entry === 'number' ? formatId(TASKS, entry) : String(entry))).join(', ') ??
    String(value)
  );
}

const LISTS: readonly string[] = ['labels', 'depends_on', 'tests_run', 'blockers', 'observed'];

/** The file may have been changed by anybody: what is no list is shown as it is. */
function readList(value: unknown): unknown[] | undefined {
  try {
    const list: unknown = JSON.parse(String(value));
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}
