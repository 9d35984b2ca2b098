import type { Config } from '../config.ts';
import { formatId, parseId, type StateTable } from '../log/state.ts';
import { SESSIONS, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Finding } from '../log/verify/finding.ts';
import { checkRows, type StateRow } from '../log/verify/state.ts';
import type { Reader } from '../storage/engine.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { concerns, newestCalls, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import { type Output, printable } from './output.ts';
import { proofReach } from './proof-reach.ts';
import { PROOF_LEGEND, tellCall } from './story.ts';

const HISTORY_MAX = 200;
const HIDDEN: readonly string[] = ['salt', 'is_final', 'queue'];
const SHOWN_TABLES: readonly StateTable[] = [TASKS, THOUGHTS, SESSIONS];

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
  details: 'A thought may also be written TH-0001. Exit 1 when the record is not as it was written.',
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

/** Θ is hard to type on most keyboards. */
function parseRecordId(text: string): [table: StateTable, id: number] {
  const normal = text.replace(/^(TH|Th|th)-/, 'Θ-');
  for (const table of SHOWN_TABLES) {
    const id = parseId(table, normal);
    if (id !== undefined) return [table, id];
  }
  throw new UsageError(
    `"${text}" is no id. Ids look like T-0001 (task), Θ-0001 or TH-0001 (thought), A-0001 (session).`,
  );
}

async function collect(tx: Reader, config: Config, table: StateTable, id: number): Promise<Shown> {
  const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name)).map(
    (column) => column.name,
  );
  const row = await tx.get<StateRow>(`SELECT ${columns.join(', ')} FROM ${table.name} WHERE id = ?`, id);
  const record = formatId(table, id);
  if (row === undefined) throw new UsageError(`There is no ${table.noun} ${record} in ${config.dbPath}.`);
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

function draw(shown: Shown, config: Config, out: Output): void {
  out.line(out.paint('bold', shown.id));
  const entries = Object.entries(shown.row).filter(
    ([column, value]) => !HIDDEN.includes(column) && value !== null && value !== '' && value !== '[]',
  );
  const width = Math.max(...entries.map(([column]) => column.length));
  for (const [column, value] of entries)
    out.line(`  ${out.paint('dim', column.padEnd(width))}  ${printable(describe(column, value))}`);
  out.line();
  if (shown.history.length > 0) out.line(out.paint('bold', `History  ${out.paint('dim', PROOF_LEGEND)}`));
  for (const call of shown.history)
    for (const line of tellCall(call, proofReach(config), out)) out.line(`  ${line}`);
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
  if (column === 'depends_on' && typeof value === 'string')
    return (JSON.parse(value) as number[]).map((id) => formatId(TASKS, id)).join(', ');
  return String(value);
}
