import type { Config } from '../config.ts';
import { formatId, type StateTable } from '../log/state.ts';
import { SESSIONS, TASKS } from '../log/tables.ts';
import type { Finding } from '../log/verify/finding.ts';
import { checkRows, type StateRow } from '../log/verify/state.ts';
import type { Reader } from '../storage/engine.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { concerning, newestCalls, type PastCall, toldOf } from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { ProofDesk, type ProofState, type RowProof } from './proof-status.ts';
import { parseRecordId } from './record-id.ts';
import { readSignedHeads } from './signed-heads.ts';
import { PROOF_LEGEND, tellCall } from './story.ts';
import { printable } from './text.ts';
import { ANCHOR_NAMES } from './verdict.ts';

const HISTORY_MAX = 200;
const HIDDEN: readonly string[] = ['id', 'salt', 'is_final', 'queue'];

type ShownCall = PastCall & { readonly proof: ProofState };

interface Shown {
  readonly id: string;
  readonly row: StateRow;
  readonly findings: readonly Finding[];
  readonly history: readonly ShownCall[];
  readonly proof: RowProof;
  /** What could not be looked at. */
  readonly remarks: readonly string[];
}

/** One record with its history and how well it is proved. */
export const show: Command = {
  name: 'show',
  usage: 'ID',
  summary: 'one task (T-…), thought (Θ-…) or session (A-…), its history, and how well it is proved',
  details:
    'A thought may also be written TH-1. Checked are the record, the audit row that wrote it last, and the way of that row to the oldest checkpoint and the oldest anchor of each kind that cover it; "colibri verify" checks everything else. Exit 1 when the record is not as it was written.',
  options: {},
  positionals: [1, 1],
  async run({ positionals, out, config }) {
    const settings = config();
    const [table, id] = parseRecordId(positionals[0] ?? '');
    const shown = await withDatabase(settings, undefined, async (storage) => {
      const heads = await readSignedHeads(settings, storage);
      return await storage.read(async (tx) =>
        collect(tx, settings, await ProofDesk.open(tx, heads), table, id),
      );
    });
    out.data(asData(shown), () => draw(shown, out));
    return shown.findings.length === 0 ? EXIT.fine : EXIT.found;
  },
};

async function collect(
  tx: Reader,
  config: Config,
  desk: ProofDesk,
  table: StateTable,
  id: number,
): Promise<Shown> {
  const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name)).map(
    (column) => column.name,
  );
  const row = await tx.get<StateRow>(`SELECT ${columns.join(', ')} FROM ${table.name} WHERE id = ?`, id);
  const record = formatId(table, id);
  if (row === undefined) throw new UsageError(await describeMissing(tx, config, table, record));
  const findings: Finding[] = [];
  await checkRows(tx, table, [row], (finding) => findings.push(finding));
  const concerns = await concerning(tx, record);
  const calls = await newestCalls(
    tx,
    (call) => call.row.effects.length > 0 && concerns(call),
    HISTORY_MAX,
    // What belongs to a session need not mention it.
    table === SESSIONS ? undefined : record,
  );
  findings.push(...writtenSince(calls, table, row));
  const proof = await proveWriter(tx, desk, row.position);
  const history: ShownCall[] = [];
  for (const call of calls) history.push({ ...call, proof: await desk.ofCall(call) });
  findings.push(...desk.contradictions.values());
  return { id: record, row, findings, history, proof, remarks: desk.remarks };
}

/** A record that was put back as it once was agrees with the audit row of that time; a later one tells. */
function writtenSince(calls: readonly PastCall[], table: StateTable, row: StateRow): Finding[] {
  const record = formatId(table, row.id);
  const last = calls.findLast(({ row: { effects } }) => effects.some(({ id }) => id === record));
  if (last === undefined || last.position <= row.position) return [];
  const message = `${record} is older than audit row ${last.position}, which changed it.`;
  return [
    { kind: 'stale', table: table.name, record, position: last.position, columns: ['position'], message },
  ];
}

/** How well the audit row is proved that wrote the record last. */
async function proveWriter(tx: Reader, desk: ProofDesk, position: number): Promise<RowProof> {
  const writer = await tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', position);
  return typeof writer?.text === 'string'
    ? await desk.prove(position, writer.text, 'oldest')
    : { state: 'wrong', anchors: [] };
}

function asData({ id, row, findings, history, proof, remarks }: Shown): object {
  return {
    id,
    row,
    intact: findings.length === 0,
    checkpointed: proof.checkpoint !== undefined,
    anchored: proof.anchors.length > 0,
    checkpoint: proof.checkpoint ?? null,
    anchors: proof.anchors,
    findings,
    remarks,
    history: history.map((call) => ({ ...toldOf(call), proof: call.proof })),
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

function draw(shown: Shown, out: Output): void {
  out.line(out.paint('bold', shown.id));
  const entries = Object.entries(shown.row).filter(
    ([column, value]) => !HIDDEN.includes(column) && value !== null && value !== '' && value !== '[]',
  );
  const width = Math.max(...entries.map(([column]) => column.length));
  for (const [column, value] of entries)
    out.line(`  ${out.paint('dim', column.padEnd(width))}  ${printable(describe(column, value))}`, width + 4);
  out.line();
  if (shown.history.length > 0) out.line(out.paint('bold', `History  ${out.paint('dim', PROOF_LEGEND)}`));
  for (const call of shown.history) for (const line of tellCall(call, call.proof, out, 2)) out.line(line);
  out.line();
  for (const finding of shown.findings) out.line(out.paint('red', `✗ ${printable(finding.message)}`));
  if (shown.findings.length === 0)
    out.line(`${out.paint('green', '✓ intact')}: as audit row ${shown.row.position} left it`);
  drawProof(shown, out);
  for (const remark of shown.remarks) out.line(out.paint('yellow', printable(remark)));
}

/** What was checked of the audit row behind the record, and what was not. */
function drawProof({ row, proof }: Shown, out: Output): void {
  const writer = `audit row ${row.position}`;
  if (proof.state === 'unchecked') {
    out.line(`${out.paint('yellow', '? not checked')}: no key of this log is known here`);
    return;
  }
  if (proof.checkpoint !== undefined)
    out.line(
      `${out.paint('green', '● checkpointed')}: ${writer} is in the log that the checkpoint at ${proof.checkpoint} rows signs`,
    );
  else if (proof.state === 'unsigned')
    out.line(`${out.paint('yellow', '○ not signed yet')}: colibri checkpoint signs it now`);
  for (const { source, where, size, time } of proof.anchors)
    out.line(
      `${out.paint('green', '◆ anchored')}: ${ANCHOR_NAMES[source]}, the checkpoint at ${size} rows, ${printable(where)}${time === undefined ? '' : `, stamped ${time}`}`,
    );
  if (proof.anchors.length === 0 && proof.checkpoint !== undefined)
    out.line(
      `${out.paint('yellow', '○ not anchored')}: only this machine vouches for it; see colibri anchor`,
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
