import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { select } from '../export/selection.ts';
import { callColumn, formatId, SESSIONS, type StateTable } from '../log/tables.ts';
import { concerning, namesOf, newestCalls, type PastCall, restoreTexts } from '../report/past-calls.ts';
import type { Reader, Row } from '../storage/engine.ts';
import { keyId } from '../trust/opening.ts';
import { textFrom } from '../untrusted.ts';
import { auditRow, type Finding } from '../verify/finding.ts';
import type { JsonObject } from '../verify/rules/payloads.ts';
import { effectsOf } from '../verify/sources/rows.ts';
import { normalRecordId, parseRecordId } from './brought.ts';
import { command, UsageError } from './command.ts';
import { PROOF_LEGEND, printCall } from './log.ts';
import { withLog } from './open.ts';
import type { Colour, Output } from './output.ts';
import { proveCalls, proveUnder, readSignedLog, rowsOf, type SignedLog } from './proof-status.ts';
import { plural, shownBy } from './text.ts';
import { ANCHOR_NAMES } from './verdict.ts';
import { TRUST_OPTIONS, verifyFile } from './verify.ts';
import { viewRow } from './views.ts';

const HISTORY_MAX = 200;

type Shown = Awaited<ReturnType<typeof collect>>;

/** One record with its history and how well it is proved. */
export const show = command({
  name: 'show',
  usage: 'ID|FILE',
  summary:
    'show one task (T-…), thought (Θ-…) or session (A-…), its history, and how well it is proved; or a certificate',
  details:
    'You can also write a thought as TH-1. For a file from "colibri prove", it prints what was done, by whom and why, the gate, the seal and what the proof rests on, if the verifier finds nothing wrong. The verifier checks the record, the calls behind it, and their proofs under the newest signed head and the oldest anchor of each kind; "colibri verify" checks everything else. Exit 1 if something is not as it was written.',
  options: TRUST_OPTIONS,
  positionals: [1, 1],
  async run({ values, positionals: [given = ''], out, config }) {
    const file = resolve(given);
    if (normalRecordId(given) === given && !/^[TAΘ]-\d{4,}$/u.test(given) && existsSync(file))
      return await verifyFile(file, values, config, out);
    const [table, id] = parseRecordId(given);
    const shown = await withLog(config, out, async (storage) => {
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
  const callOf = (column: string) => stored[callColumn(table, column)];
  const [row = stored] = await restoreTexts(tx, [[stored, table.texts, callOf]]);
  const writer = Number(row.position);
  const concerns = await concerning(tx, record);
  // What was written, what was refused, and what the owner erased.
  const isBehind = (call: PastCall) => {
    const { row } = call;
    const isTold = effectsOf(row).length > 0 || row.outcome !== 'ok' || row.tool === 'owner_erase';
    return isTold && concerns(call);
  };
  // The records of a session need not mention it.
  const ids = table === SESSIONS ? undefined : await namesOf(tx, record);
  const { calls, more } = await newestCalls(tx, isBehind, { limit: HISTORY_MAX, ids });
  const { calls: history } = await proveCalls(signed, tx, calls);
  const behind = await rowsBehind(tx, record, writer, calls);
  const proved = await proveUnder(signed, tx, signed.newest, behind.positions, record);
  const findings = [...behind.findings, ...proved.findings, ...signed.refusal];
  const anchors = await anchorsOf(tx, signed, behind.positions, writer);
  const checkpoint = proved.signed.has(writer) ? (signed.newest?.size ?? null) : null;
  return {
    id: record,
    /** As agents see it. */
    record: viewRow(table, row),
    intact: findings.length === 0,
    checkpointed: checkpoint !== null,
    anchored: anchors.length > 0,
    /** Audit rows that the signed head covers under which it was proved. */
    checkpoint,
    /** The keys that signed the row that wrote it, where machines share the log. */
    ...(signed.signers.length > 0 && {
      signed_by: signed.signers.filter(({ through }) => through >= writer),
    }),
    /** The oldest anchor of each kind under which it was proved. */
    anchors,
    findings,
    /** What could not be checked. */
    remarks: [...signed.remarks, ...proved.remarks],
    history,
    /** Calls before these. */
    earlier: more,
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

/** What a reader looks for first. The rest follows as it comes. */
const FIRST = [
  'status',
  'priority',
  'project',
  'assignee',
  'labels',
  'type',
  'content',
  'description',
  'task_id',
];

function draw(shown: Shown, out: Output): void {
  const { id, record, history, earlier, findings, checkpoint, anchors, remarks } = shown;
  const { title, audit_row } = record;
  out.line(`${out.paint('bold', id)} ${title === undefined ? '' : textFrom(title)}`.trimEnd(), id.length + 1);
  printFields(record, id, out);
  out.line();
  if (earlier > 0) {
    const all = `colibri log --${id.startsWith('A-') ? 'session' : 'task'} ${id.replace('Θ-', 'TH-')} --all`;
    out.line(out.paint('dim', `${plural(earlier, 'earlier call')} not shown: ${shownBy(all, earlier)}`));
  }
  if (history.length > 0) out.line(out.paint('bold', `History  ${out.paint('dim', PROOF_LEGEND)}`));
  for (const call of history) printCall(call, out, { indent: 2, known: id });
  out.line();
  for (const finding of findings) out.line(out.paint('red', `✗ ${finding.message}`));
  const writer = `audit row ${textFrom(audit_row)}`;
  if (findings.length === 0) out.line(`${out.paint('green', '✓ intact')}: as ${writer} left it`);
  const say = (colour: Colour, mark: string, text: string) => out.line(`${out.paint(colour, mark)}: ${text}`);
  if (checkpoint === null) say('yellow', '○ not signed', `no signed head covers ${writer} as it is`);
  else say('green', '● checkpointed', `${writer} is under the signed head of ${checkpoint} rows`);
  for (const { key, vouched } of shown.signed_by ?? [])
    if (vouched) say('green', '● signed', `by key ${keyId(key)}, which is vouched for`);
    else say('yellow', '○ signed', `by key ${keyId(key)}, which nobody has vouched for`);
  for (const { source, where, size } of anchors) {
    const anchor = `${ANCHOR_NAMES[source]}, the checkpoint of ${size} rows, ${where}`;
    say('green', '◆ anchored', anchor);
  }
  if (anchors.length === 0 && checkpoint !== null)
    say('yellow', '○ not anchored', 'only this machine vouches for it; see "colibri anchor"');
  for (const remark of remarks) out.line(out.paint('yellow', remark));
}

/** Each field that has something to say, with the line breaks of its text. */
function printFields({ title: _, ...record }: JsonObject, own: string, out: Output): void {
  const names = [...FIRST.filter((name) => name in record), ...Object.keys(record)];
  const texts = [...new Set(names)]
    .map((name) => [name, describe(record[name])] as const)
    .filter(([, text]) => text !== '' && text !== own);
  const width = Math.max(...texts.map(([name]) => name.length));
  for (const [name, text] of texts)
    for (const [i, line] of text.split('\n').entries()) {
      const label = i === 0 ? out.paint('dim', name.padEnd(width)) : ' '.repeat(width);
      out.line(`  ${label}  ${line}`.trimEnd(), width + 4);
    }
}

/** Anybody may have changed the file: a value may be anything. */
function describe(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return Array.isArray(value) ? value.map(textFrom).join(', ') : textFrom(value);
}
