import type { Config } from '../config.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { AnchorMemory } from '../log/anchors.ts';
import { checkStamp, findAnchors } from '../log/anchors-found.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, PathMemory } from '../log/log-folder.ts';
import { claimedSize, type Evidence, type Keyring } from '../log/verify/evidence.ts';
import type { Finding, Report } from '../log/verify/finding.ts';

/** Everything about a log that does not lie in its database. Read before the database: heads only grow. */
export interface Outside {
  readonly evidence: readonly Evidence[];
  readonly keys: Keyring;
  /** Where the key came from, for people. */
  readonly keyFrom: string;
  /** What could not be looked at and is nobody's fault. */
  readonly remarks: readonly string[];
}

interface Collecting {
  readonly dbPath: string;
  readonly folder: LogFolder | undefined;
  readonly evidence: Evidence[];
  readonly remarks: string[];
  readonly report: Report;
}

export function collectOutside(
  config: Config,
  dbPath: string,
  origin: string | undefined,
  givenKey: VerifierKey | undefined,
  report: Report,
): Outside {
  const folder = origin === undefined ? undefined : new LogFolder(config.configDir, origin);
  const into: Collecting = { dbPath, folder, evidence: [], remarks: [], report };
  checkMemory(config, dbPath, origin, into);
  if (folder?.exists) addLastSigned(folder, into);
  addFiles(dbPath, into);
  addAnchors(config, into);
  const { keys, keyFrom } = keyring(folder, givenKey);
  return { evidence: into.evidence, keys, keyFrom, remarks: into.remarks };
}

/** What this user last saw at the path. Speaks even where nothing else is left. */
function checkMemory(config: Config, dbPath: string, origin: string | undefined, into: Collecting): void {
  const seen = new PathMemory(config.configDir, dbPath).read();
  if (typeof seen !== 'string') return;
  if (seen !== origin) {
    const message = `The database at ${dbPath} was the log ${seen} and is now ${origin ?? 'an empty one'}: it was replaced, or rewritten from its first row.`;
    into.report(outsideFinding('replaced', dbPath, message));
  } else if (into.folder?.exists === false) {
    const message = `The log was signed here before, but its folder ${into.folder.path} is gone, and with it the key and what was signed last.`;
    into.report(outsideFinding('lost-key', into.folder.path, message));
  }
}

function addLastSigned(folder: LogFolder, into: Collecting): void {
  const where = `${folder.path}/last-signed`;
  const note = folder.lastSigned();
  if (note === undefined)
    into.report(
      outsideFinding('lost-memory', where, `${where} is gone: nobody can say what was signed last.`),
    );
  else into.evidence.push({ source: 'last-signed', where, note });
  if (!hasKey(folder)) {
    const message = `The private key in ${folder.path} is gone or does not belong to key.pub: nothing more can be signed.`;
    into.report(outsideFinding('lost-key', folder.path, message));
  }
}

function hasKey(folder: LogFolder): boolean {
  try {
    return folder.signer()?.verifierKey === folder.verifierKey();
  } catch {
    return false;
  }
}

function addFiles(dbPath: string, into: Collecting): void {
  const files = new CheckpointFiles(dbPath);
  const newest = files.newest();
  if (newest !== undefined) into.evidence.push({ source: 'newest', where: files.newestPath, note: newest });
  for (const { size, note } of files.kept()) {
    const kept: Evidence = { source: 'kept', where: `${files.folder}/${size}`, note };
    into.evidence.push(kept);
    if (claimedSize(kept) !== size) {
      const message = `${kept.where} is not about ${size} audit rows, as its name says.`;
      into.report(outsideFinding('bad-checkpoint', kept.where, message));
    }
  }
}

function addAnchors(config: Config, into: Collecting): void {
  const { dbPath, folder, evidence, remarks, report } = into;
  const found = findAnchors({ dbPath, workspace: config.workspace, folder });
  remarks.push(...found.remarks);
  const authorities = folder === undefined ? [] : new AnchorMemory(folder.path).authorities();
  for (const anchor of found.anchors) {
    const { source, where, note } = anchor;
    if (anchor.source !== 'tsr') {
      evidence.push({ source, where, note });
      continue;
    }
    const verdict = checkStamp(anchor.stamped, authorities);
    if (verdict.state === 'wrong')
      report(outsideFinding('bad-anchor', anchor.stamped.tokenPath, verdict.message));
    else {
      if (verdict.state === 'unchecked') remarks.push(verdict.message);
      if (verdict.time !== undefined)
        evidence.push({
          source: verdict.state === 'valid' ? 'tsr' : 'kept',
          where: `${where} with a time stamp of ${verdict.time}`,
          note,
        });
    }
  }
}

/** The keys to believe: the one given, else those this user's folder holds for the log. */
export function keyring(
  folder: LogFolder | undefined,
  given: VerifierKey | undefined,
): { readonly keys: Keyring; readonly keyFrom: string } {
  if (given !== undefined) return { keys: { current: [given], retired: [] }, keyFrom: '--key' };
  const own = folder?.verifierKey();
  const current = own === undefined ? [] : parseKeys([own]);
  const keyFrom = current.length === 0 ? '' : `${folder?.path}/key.pub`;
  return { keys: { current, retired: parseKeys(folder?.retiredKeys() ?? []) }, keyFrom };
}

function parseKeys(texts: readonly string[]): VerifierKey[] {
  return texts.flatMap((text) => {
    try {
      return [parseVerifierKey(text)];
    } catch {
      return [];
    }
  });
}

export function outsideFinding(kind: Finding['kind'], record: string, message: string): Finding {
  return { kind, table: 'checkpoint', record, message };
}
