import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { keyIn, openIfValid } from '../trust/opening.ts';
import { originOfKey } from '../trust/origin.ts';
import { readView, signability } from '../trust/own-log.ts';
import type { Finding } from '../verify/finding.ts';
import { verify } from '../verify/verify.ts';
import { collectEvidence, ownKey, type StampedEvidence } from './evidence.ts';
import type { PastCall } from './history.ts';
import { partOfLog } from './log-part.ts';

/**
 * How well a call is proved. `anchored` and `checkpointed`: its rows, what lies beside them and what they wrote were
 * checked now, under a signed head that is kept elsewhere or in the database. `unsigned`: no head covers it.
 */
export type ProofState = 'anchored' | 'checkpointed' | 'unsigned' | 'wrong';

export type AnchorSource = 'git' | 'tsr' | 'file';
const ANCHOR_SOURCES: readonly AnchorSource[] = ['git', 'tsr', 'file'];

/** A signed head of the log under which rows can be proved. */
interface ProvingHead {
  readonly key: string;
  readonly size: number;
  readonly checkpoint: string;
  readonly where: string;
}

export interface AnchorHead extends ProvingHead {
  readonly source: AnchorSource;
  /** What a time-stamping authority says. */
  readonly time?: string;
}

/** What is signed of a log, collected before its rows are read. */
export interface SignedLog {
  readonly key: VerifierKey | undefined;
  /** The newest head of rows that are there. */
  readonly newest: ProvingHead | undefined;
  /** Heads that are kept elsewhere, the smallest first. */
  readonly anchors: readonly AnchorHead[];
  /** Why a server would not sign this log any more. */
  readonly refused: string | undefined;
  readonly remarks: readonly string[];
}

export async function readSignedLog(config: Config, storage: StorageEngine): Promise<SignedLog> {
  const { origin } = await storage.read(readView);
  // What is lost or forged outside the log is for `colibri verify` to report.
  const { evidence, remarks } = collectEvidence(config, config.dbPath, origin, () => undefined);
  const own = ownKey(config, origin);
  const newest = await storage.read((tx) => newestHead(tx, own));
  const key = own ?? keyIn(newest?.key);
  const anchors = evidence.flatMap((one) =>
    key === undefined || newest === undefined ? [] : anchorHead(one, key, newest.key),
  );
  return {
    key,
    newest,
    anchors: anchors.sort((a, b) => a.size - b.size),
    refused: own === undefined ? undefined : (await signability(storage, config)).refused,
    remarks: own === undefined && newest !== undefined ? [...remarks, STRANGER] : remarks,
  };
}

const STRANGER =
  'This user has no key of this log: the signatures are by the key that the name of the log belongs to.';

/** Where the newest rows were cut off, a kept checkpoint still covers older ones. */
async function newestHead(tx: Reader, own: VerifierKey | undefined): Promise<ProvingHead | undefined> {
  const { origin, heads, last } = await readView(tx);
  const head = heads
    .filter(({ key }) => isTrusted(key, own, origin))
    .sort((a, b) => b.size - a.size)
    .at(0);
  if (head === undefined || head.size <= last.position) return head && { ...head, where: 'the newest head' };
  const kept = await tx.get<{ size: number; note: string }>(
    'SELECT size, note FROM checkpoints WHERE key = ? AND size <= ? ORDER BY size DESC LIMIT 1',
    head.key,
    last.position,
  );
  return kept && { key: head.key, size: kept.size, checkpoint: kept.note, where: 'a kept checkpoint' };
}

/** The user's own key; without one, the key that the name of the log belongs to. */
function isTrusted(key: string, own: VerifierKey | undefined, origin: string | undefined): boolean {
  if (own !== undefined) return key.startsWith(`${own.name}+${own.id}+`);
  try {
    return originOfKey(key) === origin;
  } catch {
    return false;
  }
}

/** A forged anchor counts as none. */
function anchorHead(
  { source, where, note, time }: StampedEvidence,
  opening: VerifierKey,
  key: string,
): AnchorHead[] {
  const kind = ANCHOR_SOURCES.find((one) => one === source);
  const opened = openIfValid(note, [opening]);
  if (kind === undefined || opened === undefined || opened.size === 0) return [];
  const head = { source: kind, where, key, size: opened.size, checkpoint: note };
  return [time === undefined ? head : { ...head, time }];
}

/** Which rows hold under one head, and what is wrong with the others. */
export interface Proved {
  /** Rows that hold, with everything they carried and wrote. */
  readonly holds: ReadonlySet<number>;
  /** Rows that are themselves as they were signed, whatever became of the records they wrote. */
  readonly signed: ReadonlySet<number>;
  readonly findings: readonly Finding[];
  readonly remarks: readonly string[];
}

/** Lets the verifier check some rows under one head. What it finds speaks of these rows and what they wrote. */
export async function proveUnder(
  storage: StorageEngine,
  tx: Reader,
  signed: SignedLog,
  head: ProvingHead | undefined,
  positions: readonly number[],
  /** A record of which every call is among these rows. */
  complete?: string,
): Promise<Proved> {
  const covered = positions.filter((position) => position <= (head?.size ?? 0));
  if (head === undefined || covered.length === 0)
    return { holds: new Set(), signed: new Set(), findings: [], remarks: [] };
  const run = async (rows: readonly number[]) => {
    const findings: Finding[] = [];
    const { remarks } = await verify(partOfLog(storage, tx, head, rows, complete), {
      report: (finding) => void findings.push(finding),
      now: systemClock.now(),
      keys: { trusted: signed.key === undefined ? [] : [signed.key] },
    });
    return { findings, remarks };
  };
  const first = await run(covered);
  // A text may be absent because the owner erased it. Finding the call that says so reads the whole log.
  const isTextAbsent = first.findings.some(({ kind, table }) => kind === 'missing' && table === 'texts');
  const { findings, remarks } = isTextAbsent ? await run([...covered, ...(await erasures(tx))]) : first;
  const isRow = ({ table }: Finding) => table === 'actions' || table === 'log_heads';
  return {
    holds: without(covered, findings),
    signed: without(covered, findings.filter(isRow)),
    findings,
    remarks,
  };
}

/** A finding without a position, such as a head that does not open, speaks of all rows. */
function without(positions: readonly number[], findings: readonly Finding[]): Set<number> {
  const wrong = new Set(findings.map(({ position }) => position));
  return new Set(wrong.has(undefined) ? [] : positions.filter((position) => !wrong.has(position)));
}

async function erasures(tx: Reader): Promise<number[]> {
  const rows = await tx.all<{ position: number }>("SELECT position FROM actions WHERE tool = 'owner_erase'");
  return rows.map(({ position }) => position);
}

/** The state of each call, by the position it ended at, and everything that is wrong. */
export async function proveCalls(
  storage: StorageEngine,
  tx: Reader,
  signed: SignedLog,
  calls: readonly PastCall[],
): Promise<{ readonly states: ReadonlyMap<number, ProofState>; readonly findings: readonly Finding[] }> {
  const positions = calls.flatMap(rowsOf);
  const checkpointed = await proveUnder(storage, tx, signed, signed.newest, positions);
  const anchored = await proveUnder(storage, tx, signed, signed.anchors.at(-1), positions);
  const reach = signed.newest?.size ?? 0;
  const stateOf = (call: PastCall): ProofState => {
    const rows = rowsOf(call);
    if (!rows.every((position) => position <= reach)) return 'unsigned';
    if (!rows.every((position) => checkpointed.holds.has(position))) return 'wrong';
    return rows.every((position) => anchored.holds.has(position)) ? 'anchored' : 'checkpointed';
  };
  return {
    states: new Map(calls.map((call) => [call.position, stateOf(call)])),
    findings: checkpointed.findings,
  };
}

/** Both rows of a call. */
export function rowsOf({ entered, position }: PastCall): number[] {
  return entered === undefined ? [position] : [entered, position];
}
