import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { sha256Hex } from '../integrity/digest.ts';
import { AnchorFiles, AnchorMemory, type StampedCheckpoint } from './anchors.ts';
import {
  ANCHOR_REF,
  type CommittedCheckpoint,
  checkpointsInGit,
  GitError,
  repositoryOf,
} from './anchors-git.ts';
import { OpensslError, readToken, verifyToken } from './anchors-tsr.ts';
import type { KeyFolder } from './key-folder.ts';
import { readIfPresent } from './private-files.ts';

/** A checkpoint found where the database is not. Hostile input enters here: nothing about it is believed yet. */
export type FoundAnchor = {
  /** Where it was found, for people. */
  readonly where: string;
  readonly note: string;
} & (
  | { readonly source: 'file' }
  | { readonly source: 'git'; readonly ref: string; readonly commit: CommittedCheckpoint }
  | { readonly source: 'tsr'; readonly stamped: StampedCheckpoint }
);

export interface LookingFor {
  readonly dbPath: string;
  readonly workspace: string;
  /** What this user knows of the log; undefined for a log without rows. */
  readonly folder: KeyFolder | undefined;
}

/** Everything that "colibri anchor" left anywhere, and what could not be looked at. The one way to find anchors. */
export function findAnchors(place: LookingFor): {
  readonly anchors: readonly FoundAnchor[];
  readonly remarks: readonly string[];
} {
  const remarks: string[] = [];
  const anchors = [...keptFiles(place, remarks), ...inGit(place, remarks), ...stamped(place)];
  return { anchors, remarks };
}

function keptFiles({ folder }: LookingFor, remarks: string[]): FoundAnchor[] {
  if (folder === undefined) return [];
  return new AnchorMemory(folder.path).read().files.flatMap((where): FoundAnchor[] => {
    const note = readQuietly(where);
    if (note === undefined) remarks.push(`The checkpoint kept in ${where} is not there now.`);
    return note === undefined ? [] : [{ source: 'file', where, note }];
  });
}

function inGit({ dbPath, workspace, folder }: LookingFor, remarks: string[]): FoundAnchor[] {
  const remembered = folder === undefined ? [] : new AnchorMemory(folder.path).read().git;
  const found: FoundAnchor[] = [];
  try {
    const here = [dirname(dbPath), workspace].flatMap((path) => repositoryAt(path) ?? []);
    const places = [...here.map((repository) => ({ repository, ref: ANCHOR_REF })), ...remembered];
    const distinct = new Map(places.map((place) => [`${place.repository}\n${place.ref}`, place]));
    for (const { repository, ref } of distinct.values()) {
      const commits = isFolder(repository) ? checkpointsInGit(repository, ref) : undefined;
      for (const commit of commits ?? []) {
        // One repository may hold the heads of several logs.
        if (folder !== undefined && !commit.note.startsWith(`${folder.origin}\n`)) continue;
        found.push({ source: 'git', where: `${ref} in ${repository}`, note: commit.note, ref, commit });
      }
      if (
        commits === undefined &&
        remembered.some((place) => place.repository === repository && place.ref === ref)
      )
        remarks.push(`${ref} in ${repository}, where checkpoints were committed, is not there now.`);
    }
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    if (remembered.length > 0) remarks.push(`The checkpoints in git were not looked at: ${error.message}`);
  }
  return found;
}

function stamped({ dbPath }: LookingFor): FoundAnchor[] {
  return new AnchorFiles(dbPath)
    .all()
    .filter(({ hasToken }) => hasToken)
    .map((kept) => ({ source: 'tsr', where: kept.notePath, note: kept.note, stamped: kept }));
}

/** What became of a time stamp. `unchecked`: its digest may fit, but nobody here can say who made it. */
export type StampVerdict =
  | { readonly state: 'valid'; readonly time: string }
  | { readonly state: 'unchecked'; readonly time: string | undefined; readonly message: string }
  | { readonly state: 'wrong'; readonly message: string };

/** A token is an anchor only under an authority that was named: anybody can make a token. */
export function checkStamp(
  { notePath, tokenPath, note }: Pick<StampedCheckpoint, 'notePath' | 'tokenPath' | 'note'>,
  authorities: readonly string[],
): StampVerdict {
  try {
    const token = readToken(tokenPath);
    if (token?.imprint !== sha256Hex(note))
      return { state: 'wrong', message: `${tokenPath} is not a time stamp of ${notePath}.` };
    if (authorities.length === 0) {
      const message = `${tokenPath}: its digest fits, its authority was not checked. Name one with "colibri anchor --tsr FILE --ca FILE".`;
      return { state: 'unchecked', time: token.time, message };
    }
    const reason = verifyToken(tokenPath, notePath, authorities);
    if (reason === undefined) return { state: 'valid', time: token.time };
    const message = `${tokenPath} is by none of the authorities that were named (${reason}).`;
    return { state: 'wrong', message };
  } catch (error) {
    if (!(error instanceof OpensslError)) throw error;
    const message = `${tokenPath} was not looked at: ${error.message}`;
    return { state: 'unchecked', time: undefined, message };
  }
}

function repositoryAt(path: string): string | undefined {
  return isFolder(path) ? repositoryOf(path) : undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function readQuietly(path: string): string | undefined {
  try {
    return readIfPresent(path);
  } catch {
    return undefined;
  }
}
