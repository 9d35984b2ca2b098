import type { Config } from '../config.ts';
import type { VerifierKey } from '../integrity/signed-note.ts';
import type { PastCall } from '../report/past-calls.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { headIn, keyIn, openIfValid, originOfKey } from '../trust/opening.ts';
import { type HeadRow, readLogKeys, readView } from '../trust/own-log.ts';
import { signability } from '../trust/signer.ts';
import type { Finding } from '../verify/finding.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import { isPosition } from '../verify/sources/forms.ts';
import { erasingRows, type PartOptions, PartSource, withEnters } from '../verify/sources/part.ts';
import { check, collectEvidence, ownKey, type StampedEvidence } from './evidence.ts';

/**
 * How well a call is proved. `anchored` and `checkpointed`: its rows, their attached data and what they wrote were
 * checked now, under a signed head that is kept elsewhere or in the database. `unsigned`: no head covers it.
 */
export type ProofState = 'anchored' | 'checkpointed' | 'unsigned' | 'wrong';

/** A signed head of the log under which rows can be proved. */
type ProvingHead = Pick<HeadRow, 'key' | 'size'> & { readonly note: string; readonly where: string };

/** What is signed of a log, collected before its rows are read. */
export type SignedLog = Awaited<ReturnType<typeof readSignedLog>>;

export async function readSignedLog(config: Config, storage: StorageEngine) {
  const { origin, last } = await storage.read(readView);
  // What is lost or forged outside the log is for `colibri verify` to report.
  const { evidence, remarks } = collectEvidence(config, config.dbPath, origin);
  const own = ownKey(config, origin);
  // Where machines share a log, any of their keys may have signed its newest rows.
  const signers = storage.isShared === true ? await storage.read(readLogKeys) : [];
  const newest = await storage.read((tx) => newestHead(tx, keyIn(signers[0]?.key) ?? own));
  const key = storage.isShared === true ? keyIn(newest?.key) : (own ?? keyIn(newest?.key));
  const anchors = evidence.flatMap((one) => anchorHead(one, key, newest?.key));
  // What its log was signed with since is elsewhere.
  const isOldCopy =
    last.isTransferred === true && evidence.some(({ note }) => headIn(note)?.size === last.position);
  const { refused: message } = own === undefined || isOldCopy ? {} : await signability(storage, config);
  const refusal: Finding[] =
    message === undefined ? [] : [{ kind: 'bad-head', table: 'log_heads', record: config.dbPath, message }];
  return {
    key,
    /** Which keys signed, where machines share the log. */
    signers,
    /** The newest head of rows that are there. */
    newest,
    /** Heads that are kept elsewhere, the smallest first. */
    anchors: anchors.sort((a, b) => a.size - b.size),
    /** Why a server would not sign this log any more. */
    refusal,
    remarks: own === undefined && newest !== undefined ? [...remarks, STRANGER] : remarks,
  };
}

const STRANGER =
  'This user has no key for this log, so the signatures were checked with the key that the log is named after.';

/** Where the newest rows were cut off, a kept checkpoint still covers older ones. */
async function newestHead(tx: Reader, own: VerifierKey | undefined): Promise<ProvingHead | undefined> {
  const { origin, heads, last } = await readView(tx);
  const trusted = heads.filter(({ key }) => isTrusted(key, own, origin));
  const head = trusted.sort((a, b) => b.size - a.size).at(0);
  if (head === undefined || head.size <= last.position)
    return head && { ...head, note: head.checkpoint, where: 'the newest head' };
  const kept = await tx.get<{ size: number; note: string }>(
    'SELECT size, note FROM checkpoints WHERE key = ? AND size <= ? ORDER BY size DESC LIMIT 1',
    head.key,
    last.position,
  );
  return kept && { key: head.key, size: kept.size, note: kept.note, where: 'a kept checkpoint' };
}

/** The user's own key; without one, the key that the name of the log belongs to. */
function isTrusted(key: string, own: VerifierKey | undefined, origin: string | undefined): boolean {
  if (own !== undefined) return key.startsWith(`${own.name}+${own.id}+`);
  return keyIn(key) !== undefined && originOfKey(key) === origin;
}

/** A forged anchor counts as none. */
function anchorHead(evidence: StampedEvidence, opening?: VerifierKey, key?: string) {
  const { source, where, note, time } = evidence;
  const { size = 0 } = (opening && openIfValid(note, [opening])) ?? {};
  const isAnchor = source === 'git' || source === 'tsr' || source === 'file';
  if (!isAnchor || key === undefined || size === 0) return [];
  return [{ source, where, key, size, note, ...(time && { time }) }];
}

/** Lets the verifier check some rows under one head. What it finds concerns these rows and what they wrote. */
export async function proveUnder(
  { key }: SignedLog,
  tx: Reader,
  head: ProvingHead | undefined,
  positions: readonly number[],
  /** A record of which every call is among these rows. */
  complete?: string,
) {
  const covered = positions.filter((position) => position <= (head?.size ?? 0));
  const isCovered = covered.length === positions.length;
  const part = async (rows: readonly number[], options: PartOptions) =>
    rows.length === 0 ? [] : [await check(new PartSource(tx, rows, options), key)];
  const subject = complete === undefined ? {} : { complete };
  // Texts may be absent because the owner erased them: the calls that say so are checked with the others.
  const cells = new Cells(tx);
  const acts = await withEnters(cells, await erasingRows(cells, positions));
  const all = [...new Set([...positions, ...acts])].sort((a, b) => a - b);
  const below = all.filter((position) => position <= (head?.size ?? 0));
  const under = head ? await part(below, { head, ...(isCovered && subject) }) : [];
  // Calls that no head covers are held against each other, and the record against all of them. So is what was erased behind it.
  const isHeld = !isCovered && complete !== undefined;
  const isErasedLater = acts.some((position) => position > (head?.size ?? 0));
  const beyond = await part(isHeld || isErasedLater ? all : [], subject);
  const erased = new Set(
    beyond.flatMap(({ verdict }) => verdict.erased.flatMap(({ texts }) => texts.map(({ digest }) => digest))),
  );
  const isErased = ({ kind, table, expected = '' }: Finding) =>
    kind === 'missing' && table === 'texts' && erased.has(expected);
  const checked = [...under, ...beyond];
  const found = checked.flatMap(({ findings }) =>
    findings.flatMap((one) => (isErased(one) ? [] : [[one.message, one] as const])),
  );
  const findings = [...new Map(found).values()];
  const ofRows = findings.filter(({ table }) => table === 'actions' || table === 'log_heads');
  return {
    /** Rows that hold, with everything they carried and wrote. */
    holds: without(covered, findings),
    /** Rows that are themselves as they were signed, whatever became of the records they wrote. */
    signed: without(covered, ofRows),
    findings,
    remarks: checked.flatMap(({ verdict }) => verdict.remarks),
  };
}

/** A finding without a position, such as a head that does not open, concerns all rows. */
function without(positions: readonly number[], findings: readonly Finding[]): Set<number> {
  const wrong = new Set(findings.map(({ position }) => position));
  return new Set(wrong.has(undefined) ? [] : positions.filter((position) => !wrong.has(position)));
}

export type ProvedCall = PastCall & { readonly proof: ProofState };

/** The calls with the state of each, and everything that is wrong. */
export async function proveCalls(signed: SignedLog, tx: Reader, calls: readonly PastCall[]) {
  // Calls that waited together have their enter rows first: by call, the rows would not be in the order of the log.
  const positions = calls.flatMap(rowsOf).sort((a, b) => a - b);
  const checkpointed = await proveUnder(signed, tx, signed.newest, positions);
  const anchored = await proveUnder(signed, tx, signed.anchors.at(-1), positions);
  const reach = signed.newest?.size ?? 0;
  const stateOf = (call: PastCall): ProofState => {
    const rows = rowsOf(call);
    if (rows.some((position) => position <= reach && !checkpointed.holds.has(position))) return 'wrong';
    if (rows.some((position) => position > reach)) return 'unsigned';
    return rows.every((position) => anchored.holds.has(position)) ? 'anchored' : 'checkpointed';
  };
  const proved = calls.map((call): ProvedCall => ({ ...call, proof: stateOf(call) }));
  return { calls: proved, findings: checkpointed.findings };
}

/** Both rows of a call, as far as it names them. */
export function rowsOf({ row: { sequence_no: enter }, position }: PastCall): number[] {
  return isPosition(enter) ? [enter, position] : [position];
}
