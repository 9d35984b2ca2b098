import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { VerifierKey } from '../integrity/signed-note.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { type FoundAnchor, findAnchors, isBeside } from '../trust/anchors.ts';
import { stampChecker } from '../trust/anchors-tsr.ts';
import { KeyFolder, PathMemory } from '../trust/key-folder.ts';
import { readRemembered } from '../trust/memory.ts';
import { headIn, isOrigin, keyIn, openIfValid, PUSH } from '../trust/opening.ts';
import { ownLogIn } from '../trust/own-log.ts';
import { RefusalError } from '../trust/refusal.ts';
import type { Finding } from '../verify/finding.ts';
import type { Evidence } from '../verify/rules/heads.ts';
import type { Source } from '../verify/source.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import { ShortReads } from '../verify/sources/short-reads.ts';
import { type VerifyOptions, verify } from '../verify/verify.ts';
import type { Output } from './output.ts';

/** Lets the verifier read a source and collects what it finds. Without a key, it believes the one that the log is named after. */
export async function check(source: Source, key: VerifierKey | undefined, more: Partial<VerifyOptions> = {}) {
  const findings: Finding[] = [];
  const verdict = await verify(source, {
    report: (finding) => void findings.push(finding),
    now: systemClock.now(),
    keys: { trusted: key === undefined ? [] : [key] },
    ...more,
  });
  return { verdict, findings };
}

/** The same for a database, with what is known about it elsewhere. */
export function checkDatabase(
  storage: StorageEngine,
  key: VerifierKey | undefined,
  evidence: readonly Evidence[],
  out: Output,
) {
  // Many write to what a server holds, and a long snapshot would slow them down.
  const reading = <T>(work: (tx: Reader) => Promise<T>) =>
    storage.isShared === true ? ShortReads.run(storage, work) : storage.read(work);
  return out.progress('verifying', (onProgress) =>
    reading((tx) => check(new DatabaseSource(storage, tx), key, { evidence, onProgress })),
  );
}

/** A head that is kept outside the database, with the time that an authority stamped on it. */
export type StampedEvidence = Evidence & { readonly time?: string };

/**
 * An anchor and what it is worth. `prepared`: it is only here, or beside the database, so it protects nothing yet. `pushed`: a remote is known to
 * have it. `time-stamped`: by an authority that the user named. `kept`: in a file that the user looks after.
 */
export interface AnchorState {
  readonly kind: 'git' | 'tsr' | 'file';
  readonly state: 'prepared' | 'pushed' | 'time-stamped' | 'kept' | 'wrong';
  /** Audit rows of the checkpoint. */
  readonly size: number;
  readonly where: string;
  readonly time?: string;
  readonly commit?: string;
  /** What to do about one that is only prepared. */
  readonly next?: string;
}

/** What this machine knows about a log outside its database. */
export type Outside = ReturnType<typeof collectEvidence>;

/** Collects what was signed last and every anchor. Read it before the database: others may sign further rows at any moment. */
export function collectEvidence(config: Config, dbPath: string, origin: string | undefined) {
  const folder = folderOf(config, origin);
  const evidence: StampedEvidence[] = [];
  /** What is lost on this machine, or is not what it claims to be. */
  const findings: Finding[] = [];
  /** What could not be checked, through nobody's fault. */
  const remarks: string[] = [];
  /** Each anchor as what it is. */
  const anchors: AnchorState[] = [];
  const outside = { folder, evidence, findings, remarks, anchors };
  const id = dbPath === config.dbPath ? config.dbId : dbPath;
  const paths = new PathMemory(config.configDir, id);
  checkPath(paths, dbPath, origin, outside);
  if (folder?.exists === true) addLastSigned(folder, paths, outside);
  addAnchors(config, dbPath, outside);
  const last = paths.endsWith();
  return last === undefined ? outside : { ...outside, evidence: throughTransfer(evidence, last, dbPath) };
}

/** What was signed and anchored since the log was transferred elsewhere is of rows that are only there. */
function throughTransfer(evidence: readonly StampedEvidence[], note: string, dbPath: string) {
  const sizeOf = (text: string) => headIn(text)?.size ?? 0;
  const where = `the head that ${dbPath} ended with when its log was transferred`;
  const before = evidence.filter((one) => sizeOf(one.note) <= sizeOf(note));
  const filed = evidence
    .flatMap((one) => one.filed ?? [])
    .filter((name) => Number.parseInt(name, 10) <= sizeOf(note));
  return [...before, { source: 'last-signed', where, note, filed } satisfies Evidence];
}

/** The key folder that this user has, or would have, for a log. The name may come from a stranger's file. */
export function folderOf({ configDir }: Config, origin: string | undefined): KeyFolder | undefined {
  return origin !== undefined && isOrigin(origin) ? new KeyFolder(configDir, origin) : undefined;
}

/** The key that this user signs a log with, where there is one. */
export function ownKey(config: Config, origin: string | undefined): VerifierKey | undefined {
  return keyIn(folderOf(config, origin)?.verifierKey());
}

export function outsideFinding(kind: Finding['kind'], record: string, message: string): Finding {
  return { kind, table: 'checkpoint', record, message };
}

/** What this user last saw at the path: it is known even where nothing else is left. */
function checkPath(paths: PathMemory, dbPath: string, origin: string | undefined, outside: Outside): void {
  const { folder, findings } = outside;
  const before = paths.otherThan(origin);
  if (before !== undefined) {
    const message = `The database at ${dbPath} was the log ${before} and is now ${origin ?? 'an unsigned one'}: it was replaced.`;
    findings.push(outsideFinding('replaced', dbPath, message));
  } else if (folder?.exists === false && paths.seen().length > 0) {
    const message = `The log was signed here before, but its folder ${folder.path} is gone, and with it the key and what was signed last.`;
    findings.push(outsideFinding('lost-key', folder.path, message));
  }
}

function addLastSigned(folder: KeyFolder, paths: PathMemory, { evidence, findings }: Outside): void {
  try {
    const { key } = ownLogIn(folder);
    const last = readRemembered(folder.signedPath, key);
    const message = `${folder.signedPath} is missing or damaged, so it is not known what was signed last.`;
    if (last === undefined) findings.push(outsideFinding('lost-memory', folder.signedPath, message));
    else if (last.size > 0) {
      const adoptionsSeen = folder.adoptionsSeen();
      // A copy that lies elsewhere may have been made before some of them.
      const filed = paths.seen().includes(folder.origin) ? folder.kept() : [];
      evidence.push({ source: 'last-signed', where: last.file, note: last.note, adoptionsSeen, filed });
      // What another process remembers may have been lost, and signed past by this one.
      for (const { file, size, note } of last.older)
        if (file !== last.file && size > 0 && openIfValid(note, [key]) !== undefined)
          evidence.push({ source: 'last-signed', where: file, note, adoptionsSeen, filed: [] });
    }
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    findings.push(outsideFinding('lost-key', folder.path, error.message));
  }
}

function addAnchors(config: Config, path: string, outside: Outside): void {
  const { folder } = outside;
  const { workspace } = config;
  const dbPath = path === config.dbPath ? config.besideDb : path;
  const { anchors, remarks } = findAnchors({ dbPath, workspace, folder });
  outside.remarks.push(...remarks);
  const checkStamp = stampChecker(folder?.authorities() ?? []);
  for (const anchor of anchors) {
    const { source, where, note } = anchor;
    const size = headIn(note)?.size ?? 0;
    const add = (one: Omit<AnchorState, 'size' | 'where' | 'kind'>) =>
      outside.anchors.push({ kind: source, size, where, ...one });
    if (source === 'file') {
      // The files of a database on a server are not on this machine.
      const isOutside = dbPath !== path || !isBeside(where, dbPath);
      outside.evidence.push({ source: isOutside ? source : 'kept', where, note });
      add(isOutside ? { state: 'kept' } : { state: 'prepared', next: ELSEWHERE });
    } else if (source === 'git') {
      const { isPushed, commit } = anchor.commit;
      // One that only this repository has is a checkpoint like any other that was kept here.
      outside.evidence.push({
        source: isPushed ? source : 'kept',
        where: `${where}, commit ${commit.slice(0, 12)}`,
        note,
      });
      add(isPushed ? { state: 'pushed', commit } : { state: 'prepared', commit, next: PUSH });
    } else if (anchor.stamped.token === undefined) {
      add({
        state: 'prepared',
        next: 'send the request, then store the reply: colibri anchor --tsr FILE --ca FILE',
      });
    } else addStamp(checkStamp(anchor.stamped), anchor, add, outside);
  }
}

/** What to do with a checkpoint in the folder of the database. */
const ELSEWHERE = 'copy it elsewhere: colibri anchor --file PATH, outside the folder of the database';

type Stamped = Extract<FoundAnchor, { readonly source: 'tsr' }>;

function addStamp(
  stamp: ReturnType<ReturnType<typeof stampChecker>>,
  { where, note, stamped }: Stamped,
  add: (one: Omit<AnchorState, 'size' | 'where' | 'kind'>) => void,
  outside: Outside,
): void {
  if (stamp.state === 'wrong') {
    outside.findings.push(outsideFinding('bad-anchor', stamped.tokenPath, stamp.message));
    add({ state: 'wrong' });
    return;
  }
  // Of too many, the same is said of each.
  if (stamp.state === 'unchecked' && !outside.remarks.includes(stamp.message))
    outside.remarks.push(stamp.message);
  const { time } = stamp;
  if (time === undefined) return;
  // Under an authority that nobody named it is a checkpoint like any other that was kept here.
  const isValid = stamp.state === 'valid';
  const found = `${where} with a time stamp of ${time}`;
  outside.evidence.push({ source: isValid ? 'tsr' : 'kept', where: found, note, time });
  const next = 'name its authority: colibri anchor --tsr FILE --ca FILE';
  add(isValid ? { state: 'time-stamped', time } : { state: 'prepared', time, next });
}
