import { asError } from '../../errors.ts';
import { type Checkpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { NoKnownKeyError, openNote, type VerifierKey } from '../../integrity/signed-note.ts';
import { headIn, keyId, keyIn, originOfKey, treeIn } from '../../trust/opening.ts';
import { adoptionId, followVouches, isStatedBy } from '../../trust/statement.ts';
import { auditRow, type Finding, type Report, rowFinding } from '../finding.ts';
import type { SourceHead, SourceNote } from '../source.ts';
import type { Checkpointed } from '../verdict.ts';
import type { Filings } from './filings.ts';
import type { Mark } from './links.ts';
import { type JsonObject, objectIn } from './payloads.ts';

/** Who kept a head of the log. `git`, `tsr`, `file` and `against` are anchors: kept where the log is not. */
export type EvidenceSource = 'head' | 'kept' | 'last-signed' | 'git' | 'tsr' | 'file' | 'against';

/** A head somebody kept. Hostile input enters here: whoever changed the log may have changed this too. */
export interface Evidence {
  readonly source: EvidenceSource;
  /** Where it was found, for people. */
  readonly where: string;
  readonly note: string;
  /** Of what this machine signed last: the adoptions it has signed over, by their ids. */
  readonly adoptionsSeen?: readonly string[] | undefined;
  /** And the checkpoints that it has filed for good, by their names. */
  readonly filed?: readonly string[] | undefined;
}

/**
 * What a head of each status is reported as. `consistent`: the log begins with it. `unchecked`: nobody here can tell.
 * `given-up`: it disagrees, and the owner has accepted that. `nothing`: a head of no rows.
 */
const KINDS = {
  ...{ consistent: undefined, unchecked: undefined, 'given-up': undefined, nothing: undefined },
  // Of several, one is reported.
  ...{ cut: undefined, rewritten: undefined },
  'other-log': 'replaced',
  'foreign-key': 'foreign-key',
  malformed: 'bad-checkpoint',
} as const satisfies Record<string, Finding['kind'] | undefined>;

type HeadStatus = keyof typeof KINDS;

export interface Judged extends Evidence {
  readonly status: HeadStatus;
  readonly size: number;
  readonly root: string;
  readonly origin: string;
  /** The key that signed it, in its text form, where it is one that can be told. */
  readonly key?: string;
  /** A whole sentence. */
  readonly message: string;
}

/** An owner's act that bears on heads. */
export interface KeyAct {
  readonly position: number;
  readonly tool: string;
  readonly key: string;
  readonly args: JsonObject;
}

/** What the walk found, as far as heads are concerned. */
export interface WalkedLog {
  readonly whole: boolean;
  readonly origin: string | undefined;
  readonly size: number;
  readonly marks: ReadonlyMap<number, Mark>;
  /** The first row that is missing or altered: no head beyond it can be compared. */
  readonly firstBreak: number;
  readonly acts: readonly KeyAct[];
  /** The rows that filed a checkpoint; undefined where nobody can say which checkpoints were kept. */
  readonly filings: Filings | undefined;
  /** The last row that says that the log goes on elsewhere. */
  readonly transfer?: { readonly position: number; readonly to: string } | undefined;
  /** Whether several machines write to it, so that a key may join by itself. */
  readonly isShared?: boolean | undefined;
}

/** A key that is known, why, and how far its head reaches. */
export interface KnownKey {
  readonly text: string;
  readonly key: VerifierKey;
  /** False for a machine that joined by itself and that nobody has vouched for. */
  readonly vouched: boolean;
}

/**
 * Judges every head: those of the log itself, those it kept, and those kept elsewhere. Reports each cause once. With no
 * trusted key, the key that the log's own name belongs to is believed.
 */
export function judgeHeads(
  heads: readonly SourceHead[],
  kept: readonly SourceNote[],
  evidence: readonly Evidence[],
  trusted: readonly VerifierKey[],
  log: WalkedLog,
  report: Report,
) {
  const known = knownKeys(heads, kept, trusted, log);
  const reach = reachOf(heads, known);
  const believed = agreedReach(heads, known, log);
  const voucher = known.filter((one) => one.vouched);
  // Only who is vouched for can go on after a loss.
  const adoptions = log.acts.filter(
    (act) =>
      act.tool === 'owner_adopt' && act.position <= believed && isStatedBy(keysOf(voucher), log.origin, act),
  );
  const all: readonly Evidence[] = [
    ...heads.map(({ where, note }) => ({ source: 'head' as const, where, note })),
    ...kept.map(({ where, note }) => ({ source: 'kept' as const, where, note })),
    ...evidence,
  ];
  const vouched = agreedReach(heads, voucher, log);
  const news = adoptions.filter(({ position }) => position <= vouched);
  const judged = all.map((one) => judge(one, known, adoptions, news, log));
  for (const [i, place] of [...heads, ...kept].entries()) checkPlace(place, judged[i], log, report);
  reportJudged(judged, log, report);
  const wasNeverSigned = log.origin === undefined && heads.length === 0 && trusted.length === 0;
  if (log.whole && log.size > reach && !wasNeverSigned) report(foreignRows(reach + 1, log.size));
  // Of what no longer agrees with this machine, that was said. Rows before an adoption may have been written unsigned.
  const filed = judged.flatMap((one) => (one.status === 'consistent' ? (one.filed ?? []) : []));
  const after = Math.max(0, ...adoptions.map(({ position }) => position - 1));
  if (log.whole) log.filings?.check(kept, filed, { after, through: reach }, report);
  const remarks = [...remarksOn(judged, known, log, trusted), ...adoptions.map(tellAdoption)];
  return { judged, checkpointed: checkpointedBy(judged, known), remarks };
}

/**
 * Follows trust from key to key: one that is vouched for vouches for another, and a row under the head of a known key
 * makes another key known. The head must agree with the rows: under one that was left from before, whoever rewrote them
 * could have put any row.
 */
function knownKeys(
  heads: readonly SourceHead[],
  kept: readonly SourceNote[],
  trusted: readonly VerifierKey[],
  log: WalkedLog,
): KnownKey[] {
  const known = new Map<string, KnownKey>();
  const add = (text: string, vouched: boolean) => {
    const key = readKey(text, log.origin);
    const before = known.get(text);
    if (key === undefined || before?.vouched === true || (before !== undefined && !vouched)) return false;
    known.set(text, { text, key, vouched });
    return true;
  };
  /** Whether a key has itself signed the row by which it joined. */
  const signsFrom = (text: string, position: number) => {
    const key = readKey(text, log.origin);
    return key !== undefined && agreedReach(heads, [{ text, key, vouched: false }], log) >= position;
  };
  const texts = new Set([...heads, ...kept].flatMap(({ key }) => key ?? []));
  for (const text of texts) if (trusted.some((one) => isSameKey(one, text))) add(text, true);
  // Who signs under this name vouches for the key that the name is made of.
  const mayBelieveName = trusted.length === 0 || [...known.values()].some((one) => reachOf(heads, [one]) > 0);
  for (const text of texts) if (mayBelieveName && originOfKey(text) === log.origin) add(text, true);
  const vouched = new Map([...known.values()].map(({ text, key }) => [text, key]));
  followVouches(vouched, log.origin, log.acts, (text) => readKey(text, log.origin));
  for (const text of vouched.keys()) add(text, true);
  for (let grows = true; grows; ) {
    const reach = agreedReach(heads, [...known.values()], log);
    grows = false;
    for (const { tool, key, position } of log.acts) {
      const isJoining = tool === 'key_join' && log.isShared === true && signsFrom(key, position);
      if ((position <= reach || isJoining) && add(key, false)) grows = true;
    }
  }
  return [...known.values()];
}

function keysOf(known: readonly KnownKey[]): VerifierKey[] {
  return known.map(({ key }) => key);
}

/** By the key itself: its id is four bytes, and whoever wants to can make another key with the same. */
function isSameKey(one: VerifierKey, text: string): boolean {
  const other = readKey(text, one.name);
  const raw = ({ publicKey }: VerifierKey) => publicKey.export({ format: 'jwk' }).x;
  return other !== undefined && raw(other) === raw(one);
}

/** A key in its text form, unless it is malformed or signs for another log. */
function readKey(text: string, origin: string | undefined): VerifierKey | undefined {
  const key = keyIn(text);
  return key?.name === origin ? key : undefined;
}

/** How far the heads of these keys reach, by their signatures alone. */
function reachOf(heads: readonly SourceHead[], keys: readonly KnownKey[]): number {
  let reach = 0;
  for (const { key: text, note } of heads) {
    const known = keys.find((one) => one.text === text);
    const opened = known === undefined ? undefined : openWith(note, [known]);
    if (opened?.head !== undefined) reach = Math.max(reach, opened.head.size);
  }
  return reach;
}

/** The same, of heads that agree with the rows. Of part of a log, those of the tree that the rows are proved to be in. */
function agreedReach(heads: readonly SourceHead[], keys: readonly KnownKey[], log: WalkedLog): number {
  const proved = newestHead(heads);
  const agreeing = heads.filter(({ note }) => {
    const head = headIn(note);
    const root = log.whole ? log.marks.get(head?.size ?? 0)?.root : proved?.root;
    return head !== undefined && head.root === root && (log.whole || head.size === proved?.size);
  });
  return reachOf(agreeing, keys);
}

/** The largest head by what it claims: the one that proofs in part of a log lead to. */
export function newestHead(heads: readonly SourceHead[]): Checkpoint | undefined {
  return heads.flatMap(({ note }) => headIn(note) ?? []).sort((a, b) => b.size - a.size)[0];
}

function judge(
  evidence: Evidence,
  known: readonly KnownKey[],
  adoptions: readonly KeyAct[],
  /** Those under the head of a key that is vouched for. */
  vouched: readonly KeyAct[],
  log: WalkedLog,
): Judged {
  const { where } = evidence;
  const opened = openWith(evidence.note, known);
  const head = opened.head ?? headIn(evidence.note);
  const { origin, size, root } = head ?? { origin: '', size: 0, root: '' };
  const verdict = (status: HeadStatus, message: string): Judged => ({
    ...evidence,
    ...{ status, size, root, origin, message },
    ...(opened.by !== undefined && { key: opened.by.text }),
  });
  if (head === undefined || opened.malformed !== undefined)
    return verdict('malformed', `${where}: ${opened.malformed ?? 'it is signed by another key'}.`);
  if (origin !== log.origin) {
    const name = log.origin === undefined ? 'a log that has no name' : `the log ${log.origin}`;
    const why = 'another database, or one rewritten from its first row';
    return verdict('other-log', `${where} is a head of the log ${origin}, and this is ${name}: ${why}.`);
  }
  if (opened.by === undefined && evidence.source !== 'against')
    return verdict('foreign-key', `${where} is not signed by a known key of this log.`);
  if (size === 0) return verdict('nothing', `${where} is a head of an empty log and proves nothing.`);
  const [status, message] = compare(size, root, log, where);
  const disagrees = status === 'cut' || status === 'rewritten';
  const { adoptionsSeen: seen } = evidence;
  // One adoption serves every machine: one that this machine has not signed over gives up whatever it signed before.
  const isGivenUp =
    adoptions.some(({ args }) => Number(objectIn(args.lost)?.size ?? 0) >= size) ||
    vouched.some((act) => seen?.includes(adoptionId(act)) === false);
  if (disagrees && isGivenUp && evidence.source !== 'against')
    return verdict('given-up', `${message} The owner has accepted that.`);
  return verdict(status, `${message}${opened.by === undefined ? ' (It is not signed by a known key.)' : ''}`);
}

function compare(size: number, root: string, log: WalkedLog, where: string): [HeadStatus, string] {
  if (!log.whole) return ['consistent', `${where} is the signed head of ${size} audit rows.`];
  if (log.marks.get(size)?.root === root)
    return ['consistent', `${where} agrees with the first ${size} audit rows.`];
  const covers = `${where} covers ${size} audit rows`;
  if (log.firstBreak <= size)
    return ['unchecked', `${covers}, of which row ${log.firstBreak} is not as it was written.`];
  if (size > log.size) return ['cut', `${covers}, but only ${log.size} are there.`];
  const message = `The first ${size} audit rows are not the ones that ${where} covers: history was rewritten.`;
  return ['rewritten', message];
}

/** What a note holds and who signed it, or why it is not a checkpoint at all. Neither where no known key signed it. */
function openWith(
  note: string,
  known: readonly KnownKey[],
): { head?: Checkpoint; by?: KnownKey | undefined; malformed?: string } {
  try {
    const { text, verified } = openNote(note, keysOf(known));
    const by = known.find(({ key }) => verified.some(({ id }) => id === key.id));
    return { head: parseCheckpoint(text), by };
  } catch (error) {
    if (error instanceof NoKnownKeyError) return {};
    return { malformed: `it is not a valid checkpoint (${asError(error).message})` };
  }
}

/** What a source keeps beside a signed note must be the same: a size and a key; with a head, also what its rows give. */
function checkPlace(
  place: SourceHead | SourceNote,
  judged: Judged | undefined,
  log: WalkedLog,
  report: Report,
): void {
  if (judged === undefined || judged.status === 'malformed') return;
  const { status, source, size, key, root } = judged;
  const isHead = source === 'head';
  // Of a head that disagrees, that was said.
  if (isHead && status !== 'consistent' && status !== 'unchecked') return;
  const { chainHash, at } = (isHead && log.marks.get(size)) || {};
  const stored = new Map(Object.entries(place));
  const columns = Object.entries({ key, size, chain_hash: chainHash, at })
    .filter(([name, due]) => due !== undefined && (stored.get(name) ?? due) !== due)
    .map(([name]) => name);
  const { frontier } = 'frontier' in place ? place : {};
  if (frontier !== undefined && treeIn(frontier, size)?.root() !== root) columns.push('frontier');
  if (columns.length === 0) return;
  const message = `${place.where} does not agree with the checkpoint it holds: ${columns.join(', ')}.`;
  report({ ...findingOf(judged, 'bad-checkpoint'), columns, message });
}

/** Heads that disagree for one reason are one finding: of those that were cut the largest, of those rewritten the smallest. */
function reportJudged(judged: readonly Judged[], log: WalkedLog, report: Report): void {
  const bySize = [...judged].sort((a, b) => a.size - b.size);
  // Of several that say the same, the log's own head comes first.
  const cut = [...judged].sort((a, b) => b.size - a.size).find(({ status }) => status === 'cut');
  const rewritten = bySize.find(({ status }) => status === 'rewritten');
  // A log that ends with its own signed head was whole once: nothing was cut off, it is an older copy.
  const isOlderCopy = judged.some(
    ({ source, status, size }) => source === 'head' && status === 'consistent' && size === log.size,
  );
  if (cut !== undefined) report(findingOf(cut, isOlderCopy ? 'older-copy' : 'cut-tail', log.size + 1));
  if (rewritten !== undefined) {
    const agreed = bySize.filter(({ status, size }) => status === 'consistent' && size < rewritten.size);
    const finding = findingOf(rewritten, 'rewritten', (agreed.at(-1)?.size ?? 0) + 1);
    report({ ...finding, expected: rewritten.root });
  }
  const others = new Set<string>();
  for (const head of judged) {
    const kind = KINDS[head.status];
    if (kind === undefined || (head.status === 'other-log' && others.has(head.origin))) continue;
    if (head.status === 'other-log') others.add(head.origin);
    report(findingOf(head, kind));
  }
}

const PLACES: Readonly<Partial<Record<EvidenceSource, string>>> = { head: 'log_heads', kept: 'checkpoints' };

function findingOf(head: Judged, kind: Finding['kind'], position?: number): Finding {
  const named = head.source === 'head' && kind === 'bad-checkpoint' ? 'bad-head' : kind;
  const table = PLACES[head.source] ?? 'checkpoint';
  const base = { kind: named, table, record: head.where, message: head.message };
  return position === undefined ? base : { ...base, position };
}

/** Rows behind the newest head of a known key are nobody's. */
function foreignRows(from: number, to: number): Finding {
  const record = from === to ? auditRow(from) : `${auditRow(from)} to ${auditRow(to)}`;
  const message = `No known key of this log has signed a head that covers ${record}.`;
  return rowFinding('foreign', from, message, { record });
}

function checkpointedBy(judged: readonly Judged[], known: readonly KnownKey[]): Checkpointed[] {
  const through = new Map<string, number>();
  for (const { status, key, size } of judged)
    if (status === 'consistent' && key !== undefined) through.set(key, Math.max(through.get(key) ?? 0, size));
  const isVouched = (key: string) => known.some(({ text, vouched }) => vouched && text === key);
  return [...through].map(([key, size]) => ({ key, through: size, vouched: isVouched(key) }));
}

/** What the owner gave up stays worth knowing, even where nothing that contradicts the log is left. */
function tellAdoption({ position, args }: KeyAct): string {
  const lost = objectIn(args.lost);
  return lost === undefined
    ? `The owner adopted the log at ${auditRow(position)}: every change before that is accepted as it is.`
    : `The owner adopted the log at ${auditRow(position)} and gave up the signed head of ${lost.size} audit rows, which it no longer extends.`;
}

function remarksOn(
  judged: readonly Judged[],
  known: readonly KnownKey[],
  log: WalkedLog,
  trusted: readonly VerifierKey[],
): string[] {
  const remarks = judged
    .filter(({ status }) => status === 'given-up' || status === 'unchecked')
    .map(({ message }) => message);
  if (log.origin === undefined && log.size > 0) remarks.push('The log was never signed.');
  if (log.transfer !== undefined && log.transfer.position === log.size)
    remarks.push(
      `The log was transferred to ${log.transfer.to} at ${auditRow(log.size)} and continues there; nothing is added to it here.`,
    );
  if (trusted.length === 0 && known.length > 0)
    remarks.push(
      'No key was given, so the signatures were checked with the key that the log is named after.',
    );
  for (const { text } of known.filter(({ vouched }) => !vouched))
    remarks.push(`The key ${keyId(text)} joined automatically, and nobody has vouched for it.`);
  return remarks;
}
