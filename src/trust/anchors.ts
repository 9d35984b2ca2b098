import { dirname, sep } from 'node:path';
import type { Config } from '../config.ts';
import { readText } from '../private-files.ts';
import { type CommittedCheckpoint, checkpointsInGit, locate } from './anchors-git.ts';
import { type StampedCheckpoint, stampedCheckpoints } from './anchors-tsr.ts';
import { type KeyFolder, realPath } from './key-folder.ts';
import { ANCHOR_REF } from './opening.ts';
import { MissingProgramError, ProgramError } from './programs.ts';

/** A checkpoint found where the database is not. Hostile input enters here: nothing about it is believed yet. */
export type FoundAnchor = { readonly where: string; readonly note: string } & (
  | { readonly source: 'file' }
  | { readonly source: 'git'; readonly commit: CommittedCheckpoint }
  | { readonly source: 'tsr'; readonly stamped: StampedCheckpoint }
);

/** `folder` is what this user knows of the log; undefined for a log without rows. */
type LookingFor = Pick<Config, 'dbPath' | 'workspace'> & { readonly folder: KeyFolder | undefined };

/** Whether a file is in the folder of the database: whoever can change the one can change the other. */
export function isBeside(file: string, dbPath: string): boolean {
  return file.startsWith(`${realPath(dirname(dbPath))}${sep}`);
}

/** Everything that "colibri anchor" left anywhere, and what could not be looked at. The one way to find anchors. */
export function findAnchors(looking: LookingFor) {
  const { dbPath, folder } = looking;
  const { files, git } = folder?.anchors() ?? { files: [], git: [] };
  const remarks: string[] = [];
  const kept = files.flatMap((where): FoundAnchor[] => {
    const note = readText(where);
    if (note === undefined) remarks.push(`The checkpoint kept in ${where} is no longer there.`);
    return note === undefined ? [] : [{ source: 'file', where, note }];
  });
  const { stamps, left } = stampedCheckpoints(dbPath);
  if (left > 0) remarks.push(`${left} older time stamp files next to ${dbPath} were not checked.`);
  // Also those that an authority was asked about and has not answered.
  const stamped = stamps.map(
    (one): FoundAnchor => ({
      source: 'tsr',
      where: one.notePath,
      note: one.note,
      stamped: one,
    }),
  );
  return { anchors: [...kept, ...inGit(looking, git, remarks), ...stamped], remarks };
}

function inGit(looking: LookingFor, remembered: readonly string[], remarks: string[]): FoundAnchor[] {
  const { dbPath, workspace, folder } = looking;
  try {
    const kept = remembered.map((path) => locate(path)?.repository ?? path);
    const here = [dirname(dbPath), workspace].flatMap((path) => locate(path)?.repository ?? []);
    return [...new Set([...here, ...kept])].flatMap((repository): FoundAnchor[] => {
      const where = `${ANCHOR_REF} in ${repository}`;
      const commits = checkpointsInGit(repository);
      if (commits === undefined && kept.includes(repository))
        remarks.push(`${where}, where checkpoints were committed, no longer exists.`);
      // One repository may hold the heads of several logs.
      return (commits ?? [])
        .filter(({ note }) => folder === undefined || note.startsWith(`${folder.origin}\n`))
        .map((commit) => ({ source: 'git', where, note: commit.note, commit }));
    });
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    if (!(error instanceof MissingProgramError) || remembered.length > 0)
      remarks.push(`The checkpoints in git were not checked: ${error.message}`);
    return [];
  }
}
