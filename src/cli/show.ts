import type { Config } from '../config.ts';
import { select } from '../export/selection.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader, Row } from '../storage/engine.ts';
import { textFrom } from '../untrusted.ts';
import { auditRow, type Finding } from '../verify/finding.ts';
import { members } from '../verify/sources/forms.ts';
import { effectsOf } from '../verify/sources/rows.ts';
import { parseRecordId } from './brought.ts';
import { command, UsageError } from './command.ts';
import { concerning, newestCalls, type PastCall, restoreTexts } from './history.ts';
import { PROOF_LEGEND, printCall } from './log.ts';
import { withDatabase } from './open.ts';
import type { Colour, Output } from './output.ts';
import { proveCalls, proveUnder, readSignedLog, rowsOf, type SignedLog } from './proof-status.ts';
import { ANCHOR_NAMES } from './verdict.ts';

const HISTORY_MAX = 200;

type Shown = Awaited<ReturnType<typeof collect>>;

/** One record with its history and how well it is proved. */
export const show = command({
  name: 'show',
  usage: 'ID',
  summary: 'show one task (T-…), thought (Θ-…) or session (A-…), its history, and how well it is proved',
  details:
    'A thought may also be written TH-1. The verifier checks the record, the calls behind it, and their proofs under the newest signed head and the oldest anchor of each kind; "colibri verify" checks everything else. Exit 1 when something is not as it was written.',
  positionals: [1, 1],
  async run({ positionals, out, config }) {
    const [table, id] = parseRecordId(positionals[0] ?? '');
    const shown = await withDatabase(config, async (storage) => {
      const signed = await readSignedLog(config, storage);
      return await storage.read((tx) => collect(tx, signed, table, id, config));
    });
    return out.data(shown, () => draw(shown, out), shown.intact);
  },
});

async function collect(tx: Reader, signed: SignedLog, table: StateTable, id: number, { dbPath }: Config) {
  const record = formatId(table, id);
  const columns = [...table.facts, ...table.derived].join(', ');
  const stored = await tx.get<Row>(`SELECT ${columns} FROM ${table.name} WHERE id = ?`, id);
  if (stored === undefined) throw new UsageError(await describeMissing(tx, dbPath, table, record));
  const [row = stored] = await restoreTexts(tx, [[stored, table.texts]]);
  const writer = Number(row.position);
  const concerns = await concerning(tx, record);
  const isBehind = (call: PastCall) =>
    (effectsOf(call.row).length > 0 || call.row.tool === 'owner_erase') && concerns(call);
  // The records of a session need not mention it.
  const calls = await newestCalls(tx, isBehind, HISTORY_MAX, table === SESSIONS ? undefined : record);
  const { calls: history } = await proveCalls(signed, tx, calls);
  const behind = await rowsBehind(tx, record, writer, calls);
  const proved = await proveUnder(signed, tx, signed.newest, behind.positions, record);
  const findings = [...behind.findings, ...proved.findings, ...signed.refusal];
  const anchors = await anchorsOf(tx, signed, behind.positions, writer);
  const checkpoint = proved.signed.has(writer) ? (signed.newest?.size ?? null) : null;
  return {
    id: record,
    /** With its texts. */
    row,
    intact: findings.length === 0,
    checkpointed: checkpoint !== null,
    anchored: anchors.length > 0,
    /** Audit rows that the signed head covers under which it was proved. */
    checkpoint,
    /** The oldest anchor of each kind under which it was proved. */
    anchors,
    findings,
    /** What could not be checked. */
    remarks: [...signed.remarks, ...proved.remarks],
    history,
  };
}

/** Every row that the proof of a record needs. The calls that mention it may tell more than the record admits. */
async function rowsBehind(tx: Reader, record: string, writer: number, calls: readonly PastCall[]) {
  const shown = calls.flatMap(rowsOf);
  try {
    const { positions } = await select(tx, record);
    return { positions: [...new Set([...positions, ...shown])].sort((a, b) => a - b), findings: [] };
  } catch {
    const message = `The calls behind ${record} cannot be read back from audit row ${writer}: rows are missing or damaged.`;
    const finding: Finding = { kind: 'missing', table: 'actions', record: auditRow(writer), message };
    return { positions: shown, findings: [finding] };
  }
}

/** Of each kind the oldest anchor that covers the row which wrote the record last. */
async function anchorsOf(tx: Reader, signed: SignedLog, positions: readonly number[], writer: number) {
  const found = new Map<string, Pick<SignedLog['anchors'][number], 'source' | 'where' | 'size' | 'time'>>();
  for (const head of signed.anchors) {
    if (head.size < writer || found.has(head.source)) continue;
    const proved = await proveUnder(signed, tx, head, positions);
    const { source, where, size, time } = head;
    if (proved.signed.has(writer)) found.set(source, { source, where, size, ...(time && { time }) });
  }
  return [...found.values()];
}

/** Says that there is no such record, and which is the newest. */
export async function describeMissing(tx: Reader, dbPath: string, table: StateTable, record: string) {
  const { last } = (await tx.get<{ last: number | null }>(`SELECT max(id) AS last FROM ${table.name}`)) ?? {};
  const others = last == null ? `There is no ${table.noun} yet` : `The newest is ${formatId(table, last)}`;
  return `There is no ${table.noun} ${record} in ${dbPath}. ${others}.`;
}

const HIDDEN: readonly string[] = ['id', 'is_final', 'queue'];

function draw({ id, row, history, findings, checkpoint, anchors, remarks }: Shown, out: Output): void {
  out.line(out.paint('bold', id));
  const entries = Object.entries(row).filter(
    ([column, value]) => !HIDDEN.includes(column) && value !== null && value !== '' && value !== '[]',
  );
  const width = Math.max(...entries.map(([column]) => column.length));
  for (const [column, value] of entries)
    for (const [i, line] of describe(column, value).split('\n').entries()) {
      const name = i === 0 ? out.paint('dim', column.padEnd(width)) : ' '.repeat(width);
      out.line(`  ${name}  ${line}`.trimEnd(), width + 4);
    }
  out.line();
  if (history.length > 0) out.line(out.paint('bold', `History  ${out.paint('dim', PROOF_LEGEND)}`));
  for (const call of history) printCall(call, out, 2);
  out.line();
  for (const finding of findings) out.line(out.paint('red', `✗ ${finding.message}`));
  if (findings.length === 0)
    out.line(`${out.paint('green', '✓ intact')}: as audit row ${row.position} left it`);
  const say = (colour: Colour, mark: string, text: string) => out.line(`${out.paint(colour, mark)}: ${text}`);
  const writer = `audit row ${row.position}`;
  if (checkpoint === null) say('yellow', '○ not signed', `no signed head covers ${writer} as it is`);
  else say('green', '● checkpointed', `${writer} is under the signed head of ${checkpoint} rows`);
  for (const { source, where, size } of anchors) {
    const anchor = `${ANCHOR_NAMES[source]}, the checkpoint of ${size} rows, ${where}`;
    say('green', '◆ anchored', anchor);
  }
  if (anchors.length === 0 && checkpoint !== null)
    say('yellow', '○ not anchored', 'only this machine vouches for it; see "colibri anchor"');
  for (const remark of remarks) out.line(out.paint('yellow', remark));
}

const LISTS: readonly string[] = ['labels', 'depends_on', 'tests_run', 'blockers', 'observed'];

function describe(column: string, value: unknown): string {
  if (column === 'session_id') return formatId(SESSIONS, Number(value));
  if (/^(?:parent|task|sealed_task)_id$/.test(column)) return formatId(TASKS, Number(value));
  if (column === 'proof_grade') return value === 1 ? 'yes' : 'no';
  if (column === 'position') return `audit row ${value}`;
  // Anybody may have changed the file: what is not a list is shown as it is.
  const { list } = members(LISTS.includes(column) ? `{"list":${value}}` : undefined);
  if (!Array.isArray(list)) return String(value);
  return list
    .map((entry) => (typeof entry === 'number' ? formatId(TASKS, entry) : textFrom(entry)))
    .join(', ');
}
