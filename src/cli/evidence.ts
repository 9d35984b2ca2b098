import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from '../config.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { AnchorFiles, AnchorMemory } from '../log/anchors.ts';
import { ANCHOR_REF, checkpointsInGit, GitError, repositoryOf } from '../log/anchors-git.ts';
import { OpensslError, readToken, verifyToken } from '../log/anchors-tsr.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, PathMemory } from '../log/log-folder.ts';
import { readIfPresent } from '../log/private-files.ts';
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
  addKeptFiles(into);
  addGit(config, into);
  addTokens(into);
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

function addKeptFiles({ folder, evidence, remarks }: Collecting): void {
  if (folder === undefined) return;
  for (const path of new AnchorMemory(folder.path).read().files) {
    const note = readQuietly(path);
    if (note === undefined) remarks.push(`The checkpoint kept in ${path} is not there now.`);
    else evidence.push({ source: 'file', where: path, note });
  }
}

function addGit(config: Config, { dbPath, folder, evidence, remarks }: Collecting): void {
  const remembered = folder === undefined ? [] : new AnchorMemory(folder.path).read().git;
  try {
    const here = [dirname(dbPath), config.workspace].flatMap((path) => repositoryAt(path) ?? []);
    const places = [...here.map((repository) => ({ repository, ref: ANCHOR_REF })), ...remembered];
    const distinct = new Map(places.map((place) => [`${place.repository}\n${place.ref}`, place]));
    for (const { repository, ref } of distinct.values()) {
      const notes = isFolder(repository) ? checkpointsInGit(repository, ref) : undefined;
      for (const note of notes ?? []) {
        // One repository may hold the heads of several logs.
        if (folder !== undefined && !note.startsWith(`${folder.origin}\n`)) continue;
        evidence.push({ source: 'git', where: `${ref} in ${repository}`, note });
      }
      if (
        notes === undefined &&
        remembered.some((place) => place.repository === repository && place.ref === ref)
      )
        remarks.push(`${ref} in ${repository}, where checkpoints were committed, is not there now.`);
    }
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    if (remembered.length > 0) remarks.push(`The checkpoints in git were not looked at: ${error.message}`);
  }
}

function repositoryAt(path: string): string | undefined {
  return isFolder(path) ? repositoryOf(path) : undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** A token is an anchor only under an authority that was named: anybody can make a token. */
function addTokens({ dbPath, folder, evidence, remarks, report }: Collecting): void {
  const authorities = folder === undefined ? [] : new AnchorMemory(folder.path).authorities();
  for (const stamped of new AnchorFiles(dbPath).all()) {
    if (!stamped.hasToken) continue;
    try {
      const token = readToken(stamped.tokenPath);
      if (token?.imprint !== sha256Hex(stamped.note)) {
        const message = `${stamped.tokenPath} is not a time stamp of ${stamped.notePath}.`;
        report(outsideFinding('bad-anchor', stamped.tokenPath, message));
        continue;
      }
      const where = `${stamped.notePath} with a time stamp of ${token.time}`;
      const reason = verifyToken(stamped.tokenPath, stamped.notePath, authorities);
      if (authorities.length === 0) {
        remarks.push(
          `${stamped.tokenPath}: its digest fits, its authority was not checked. Name one with "colibri anchor --tsr FILE --ca FILE".`,
        );
        evidence.push({ source: 'kept', where, note: stamped.note });
      } else if (reason !== undefined) {
        const message = `${stamped.tokenPath} is by none of the authorities that were named (${reason}).`;
        report(outsideFinding('bad-anchor', stamped.tokenPath, message));
      } else evidence.push({ source: 'tsr', where, note: stamped.note });
    } catch (error) {
      if (!(error instanceof OpensslError)) throw error;
      remarks.push(`${stamped.tokenPath} was not looked at: ${error.message}`);
    }
  }
}

function keyring(folder: LogFolder | undefined, given: VerifierKey | undefined) {
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

function readQuietly(path: string): string | undefined {
  try {
    return readIfPresent(path);
  } catch {
    return undefined;
  }
}

export function outsideFinding(kind: Finding['kind'], record: string, message: string): Finding {
  return { kind, table: 'checkpoint', record, message };
}
