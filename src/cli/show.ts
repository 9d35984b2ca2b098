import type { Config } from '../config.ts';
import { select } from '../export/selection.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import { ERASED, readTexts } from '../log/texts.ts';
import type { Reader, Row, StorageEngine } from '../storage/engine.ts';
import { auditRow, type Finding } from '../verify/finding.ts';
import { callLines, PROOF_LEGEND } from './call-text.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { callData, concerning, newestCalls, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import {
  type AnchorHead,
  type ProofState,
  proveCalls,
  proveUnder,
  readSignedLog,
  rowsOf,
  type SignedLog,
} from './proof-status.ts';
import { parseRecordId } from './record-id.ts';
import { printable } from './text.ts';
import { ANCHOR_NAMES } from './verdict.ts';

const HISTORY_MAX = 200;
const HIDDEN: readonly string[] = ['id', 'is_final', 'queue'];

type ShownCall = PastCall & { readonly proof: ProofState };

interface Shown {
  readonly id: string;
  /** The record with its texts. */
  readonly row: Row;
  /** The audit row that wrote it last. */
  readonly writer: number;
  readonly findings: readonly Finding[];
  readonly history: readonly ShownCall[];
  /** Audit rows that the signed head covers under which it was proved. */
  readonly checkpoint: number | undefined;
  /** The oldest anchor of each kind under which it was proved. */
  readonly anchors: readonly AnchorHead[];
  /** What could not be checked. */
  readonly remarks: readonly string[];
}

/** One record with its history and how well it is proved. */
export const show: Command = {
  name: 'show',
  usage: 'ID',
  summary: 'show one task (T-…), thought (Θ-…) or session (A-…), its history, and how well it is proved',
  details:
    'A thought may also be written TH-1. The verifier checks the record, the calls behind it, and their proofs under the newest signed head and the oldest anchor of each kind; "colibri verify" checks everything else. Exit 1 when something is not as it was written.',
  options: {},
  positionals: [1, 1],
  async run({ positionals, out, config }) {
    const settings = config();
    const [table, id] = parseRecordId(positionals[0] ?? '');
    const shown = await withDatabase(settings, async (storage) => {
      const signed = await readSignedLog(settings, storage);
      return await storage.read((tx) => collect(storage, tx, settings, signed, table, id));
    });
    out.data(asData(shown), () => draw(shown, out));
    return shown.findings.length === 0 ? EXIT.fine : EXIT.found;
  },
};

async function collect(
  storage: StorageEngine,
  tx: Reader,
  config: Config,
  signed: SignedLog,
  table: StateTable,
  id: number,
): Promise<Shown> {
  const record = formatId(table, id);
  const row = await tx.get<Row>(
    `SELECT ${[...table.facts, ...table.derived].join(', ')} FROM ${table.name} WHERE id = ?`,
    id,
  );
  if (row === undefined) throw new UsageError(await describeMissing(tx, config, table, record));
  const writer = Number(row.position);
  const calls = await callsBehind(tx, table, record);
  const { states } = await proveCalls(storage, tx, signed, calls);
  const rows = await rowsBehind(tx, record, writer, calls);
  const proved = await proveUnder(storage, tx, signed, signed.newest, rows.positions, record);
  return {
    id: record,
    row: await withTexts(tx, table, row),
    writer,
    findings: [...rows.findings, ...proved.findings, ...refusal(signed, config)],
    history: calls.map((call) => ({ ...call, proof: states.get(call.position) ?? 'unsigned' })),
    checkpoint: proved.signed.has(writer) ? signed.newest?.size : undefined,
    anchors: await anchorsOf(storage, tx, signed, rows.positions, writer),
    remarks: [...signed.remarks, ...proved.remarks],
  };
}

async function callsBehind(tx: Reader, table: StateTable, record: string): Promise<PastCall[]> {
  const concerns = await concerning(tx, record);
  return await newestCalls(
    tx,
    (call) => call.row.effects.length > 0 && concerns(call),
    HISTORY_MAX,
    // The records of a session need not mention it.
    table === SESSIONS ? undefined : record,
  );
}

/** Every row that the proof of a record needs. The calls that mention it may tell more than the record admits. */
async function rowsBehind(
  tx: Reader,
  record: string,
  writer: number,
  calls: readonly PastCall[],
): Promise<{ readonly positions: readonly number[]; readonly findings: readonly Finding[] }> {
  const shown = calls.flatMap(rowsOf);
  try {
    const { positions } = await select(tx, record);
    return { positions: [...new Set([...positions, ...shown])], findings: [] };
  } catch {
    const message = `The calls behind ${record} cannot be read back from audit row ${writer}: rows are missing or damaged.`;
    const finding: Finding = { kind: 'missing', table: 'actions', record: auditRow(writer), message };
    return { positions: shown, findings: [finding] };
  }
}

/** Of each kind the oldest anchor that covers the row which wrote the record last. */
async function anchorsOf(
  storage: StorageEngine,
  tx: Reader,
  signed: SignedLog,
  positions: readonly number[],
  writer: number,
): Promise<AnchorHead[]> {
  const found = new Map<string, AnchorHead>();
  for (const head of signed.anchors) {
    if (head.size < writer || found.has(head.source)) continue;
    const proved = await proveUnder(storage, tx, signed, head, positions);
    if (proved.signed.has(writer)) found.set(head.source, head);
  }
  return [...found.values()];
}

function refusal({ refused }: SignedLog, { dbPath }: Config): Finding[] {
  return refused === undefined
    ? []
    : [{ kind: 'bad-head', table: 'log_heads', record: dbPath, message: refused }];
}

async function withTexts(tx: Reader, table: StateTable, row: Row): Promise<Row> {
  const digests = table.texts.map((column) => row[column]).filter((value) => typeof value === 'string');
  const texts = await readTexts(tx, digests);
  const shown = table.texts
    .filter((column) => typeof row[column] === 'string')
    .map((column) => [column, texts.get(String(row[column])) ?? ERASED]);
  return { ...row, ...Object.fromEntries(shown) };
}

function asData({ id, row, findings, history, checkpoint, anchors, remarks }: Shown): object {
  return {
    id,
    row,
    intact: findings.length === 0,
    checkpointed: checkpoint !== undefined,
    anchored: anchors.length > 0,
    checkpoint: checkpoint ?? null,
    anchors: anchors.map(({ source, where, size, time }) => ({
      source,
      where,
      size,
      ...(time !== undefined && { time }),
    })),
    findings,
    remarks,
    history: history.map((call) => ({ ...callData(call), proof: call.proof })),
  };
}

async function describeMissing(
  tx: Reader,
  config: Config,
  table: StateTable,
  record: string,
): Promise<string> {
  const { last } = (await tx.get<{ last: number | null }>(`SELECT max(id) AS last FROM ${table.name}`)) ?? {};
  const others = last == null ? `There is no ${table.noun} yet` : `The newest is ${formatId(table, last)}`;
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
  for (const call of shown.history) for (const line of callLines(call, call.proof, out, 2)) out.line(line);
  out.line();
  for (const finding of shown.findings) out.line(out.paint('red', `✗ ${printable(finding.message)}`));
  if (shown.findings.length === 0)
    out.line(`${out.paint('green', '✓ intact')}: as audit row ${shown.writer} left it`);
  drawProof(shown, out);
  for (const remark of shown.remarks) out.line(out.paint('yellow', printable(remark)));
}

/** What was proved about the audit row behind the record, and what was not. */
function drawProof({ writer, checkpoint, anchors }: Shown, out: Output): void {
  out.line(
    checkpoint === undefined
      ? `${out.paint('yellow', '○ not signed')}: no signed head covers audit row ${writer} as it is`
      : `${out.paint('green', '● checkpointed')}: audit row ${writer} is in the log that the head of ${checkpoint} rows signs`,
  );
  for (const { source, where, size } of anchors)
    out.line(
      `${out.paint('green', '◆ anchored')}: ${ANCHOR_NAMES[source]}, the checkpoint of ${size} rows, ${printable(where)}`,
    );
  if (anchors.length === 0 && checkpoint !== undefined)
    out.line(
      `${out.paint('yellow', '○ not anchored')}: only this machine vouches for it; see "colibri anchor"`,
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

/** Anybody may have changed the file: what is not a list is shown as it is. */
function readList(value: unknown): unknown[] | undefined {
  try {
    const list: unknown = JSON.parse(String(value));
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}
