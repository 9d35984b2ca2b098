import type { Config } from '../config.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { AnchorMemory, findAnchors } from '../trust/anchors.ts';
import { checkStamp } from '../trust/anchors-tsr.ts';
import { KeyFolder } from '../trust/key-folder.ts';
import { readRemembered } from '../trust/memory.ts';
import { keyIn } from '../trust/opening.ts';
import { isOrigin } from '../trust/origin.ts';
import { ownLogIn } from '../trust/own-log.ts';
import { PathMemory } from '../trust/path-memory.ts';
import { RefusalError } from '../trust/refusal.ts';
import type { Finding, Report } from '../verify/finding.ts';
import type { Evidence } from '../verify/rules/heads.ts';

/** A head that is kept outside the database, with the time that an authority stamped on it. */
export interface StampedEvidence extends Evidence {
  readonly time?: string;
}

/** What this machine knows about a log outside its database. */
export interface LogEvidence {
  readonly evidence: readonly StampedEvidence[];
  /** What could not be checked, through nobody's fault. */
  readonly remarks: readonly string[];
}

/**
 * Collects what was signed last and every anchor. Read it before the database: others may sign further rows at any
 * moment. What is lost on this machine is reported.
 */
export function collectEvidence(
  config: Config,
  dbPath: string,
  origin: string | undefined,
  report: Report,
): LogEvidence {
  const folder = folderOf(config, origin);
  checkPath(config, dbPath, origin, folder, report);
  const anchors = anchorEvidence(config, dbPath, folder, report);
  const remembered = folder?.exists === true ? lastSigned(folder, report) : [];
  return { evidence: [...remembered, ...anchors.evidence], remarks: anchors.remarks };
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

/** What this user last saw at the path. It still speaks where nothing else is left. */
function checkPath(
  config: Config,
  dbPath: string,
  origin: string | undefined,
  folder: KeyFolder | undefined,
  report: Report,
): void {
  const paths = new PathMemory(config.configDir, dbPath);
  const before = paths.otherThan(origin);
  if (before !== undefined) {
    const message = `The database at ${dbPath} was the log ${before} and is now ${origin ?? 'an unsigned one'}: it was replaced.`;
    report(outsideFinding('replaced', dbPath, message));
  } else if (folder?.exists === false && paths.seen().length > 0) {
    const message = `The log was signed here before, but its folder ${folder.path} is gone, and with it the key and what was signed last.`;
    report(outsideFinding('lost-key', folder.path, message));
  }
}

function lastSigned(folder: KeyFolder, report: Report): Evidence[] {
  try {
    const { key } = ownLogIn(folder);
    const last = readRemembered(folder.signedPath, key);
    if (last !== undefined)
      return last.size === 0 ? [] : [{ source: 'last-signed', where: last.file, note: last.note }];
    const message = `${folder.signedPath} is missing or damaged: nobody can say what was signed last.`;
    report(outsideFinding('lost-memory', folder.signedPath, message));
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    report(outsideFinding('lost-key', folder.path, error.message));
  }
  return [];
}

function anchorEvidence(
  { workspace }: Config,
  dbPath: string,
  folder: KeyFolder | undefined,
  report: Report,
): LogEvidence {
  const { anchors, remarks } = findAnchors({ dbPath, workspace, folder });
  const all = [...remarks];
  const authorities = folder === undefined ? [] : new AnchorMemory(folder.path).authorities();
  const evidence = anchors.flatMap((anchor): StampedEvidence[] => {
    const { source, where, note } = anchor;
    if (source !== 'tsr') return [{ source, where, note }];
    const stamp = checkStamp(anchor.stamped, authorities);
    if (stamp.state === 'wrong')
      report(outsideFinding('bad-anchor', anchor.stamped.tokenPath, stamp.message));
    if (stamp.state === 'unchecked') all.push(stamp.message);
    if (stamp.state === 'wrong' || stamp.time === undefined) return [];
    // Under an authority that nobody named it is a checkpoint like any other that was kept here.
    const kind = stamp.state === 'valid' ? 'tsr' : 'kept';
    return [{ source: kind, where: `${where} with a time stamp of ${stamp.time}`, note, time: stamp.time }];
  });
  return { evidence, remarks: all };
}
