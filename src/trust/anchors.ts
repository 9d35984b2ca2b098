import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { makePrivateFolder } from '../folders.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { ANCHOR_REF, type CommittedCheckpoint, checkpointsInGit, repositoryOf } from './anchors-git.ts';
import { AnchorFiles, type StampedCheckpoint } from './anchors-tsr.ts';
import type { KeyFolder } from './key-folder.ts';
import { readIfPresent, readJson, replaceFile } from './private-files.ts';
import { ProgramError } from './programs.ts';

interface Places {
  /** Files the user keeps checkpoints in. */
  readonly files: readonly string[];
  readonly git: readonly { readonly repository: string; readonly ref: string }[];
}

/** Where else heads of a log were put. Kept in its per-user folder, which a change of the database does not reach. */
export class AnchorMemory {
  readonly #file: string;
  readonly #authorities: string;

  constructor(logFolder: string) {
    this.#file = join(logFolder, 'anchors.json');
    this.#authorities = join(logFolder, 'authorities');
  }

  read(): Places {
    const { files = [], git = [] } = readJson(this.#file) as Partial<Places>;
    return { files, git };
  }

  /** Remembers a file, or a reference in a repository, once. */
  add<Kind extends keyof Places>(kind: Kind, place: Places[Kind][number]): void {
    const places = this.read();
    if (places[kind].some((known) => isDeepStrictEqual(known, place))) return;
    replaceFile(this.#file, `${JSON.stringify({ ...places, [kind]: [...places[kind], place] }, null, 2)}\n`);
  }

  /** Keeps the certificate an authority is trusted by, so that its tokens can be checked again. */
  addAuthority(pem: string): void {
    makePrivateFolder(this.#authorities);
    replaceFile(join(this.#authorities, `${sha256Hex(pem).slice(0, 16)}.pem`), pem);
  }

  /** Paths of the trusted certificates. */
  authorities(): string[] {
    const names = existsSync(this.#authorities) ? readdirSync(this.#authorities) : [];
    return names.filter((name) => name.endsWith('.pem')).map((name) => join(this.#authorities, name));
  }
}

/** A checkpoint found where the database is not. Hostile input enters here: nothing about it is believed yet. */
export type FoundAnchor = {
  /** Where it was found, for people. */
  readonly where: string;
  readonly note: string;
} & (
  | { readonly source: 'file' }
  | { readonly source: 'git'; readonly commit: CommittedCheckpoint }
  | { readonly source: 'tsr'; readonly stamped: StampedCheckpoint }
);

export interface LookingFor {
  readonly dbPath: string;
  readonly workspace: string;
  /** What this user knows of the log; undefined for a log without rows. */
  readonly folder: KeyFolder | undefined;
}

/** Everything that "colibri anchor" left anywhere, and what could not be looked at. The one way to find anchors. */
export function findAnchors(looking: LookingFor): {
  readonly anchors: readonly FoundAnchor[];
  readonly remarks: readonly string[];
} {
  const { dbPath, folder } = looking;
  const { files, git } = folder === undefined ? { files: [], git: [] } : new AnchorMemory(folder.path).read();
  const remarks: string[] = [];
  const kept = files.flatMap((where): FoundAnchor[] => {
    const note = readQuietly(where);
    if (note === undefined) remarks.push(`The checkpoint kept in ${where} is not there now.`);
    return note === undefined ? [] : [{ source: 'file', where, note }];
  });
  const stamped = new AnchorFiles(dbPath).all().flatMap((one): FoundAnchor[] => {
    return one.hasToken ? [{ source: 'tsr', where: one.notePath, note: one.note, stamped: one }] : [];
  });
  return { anchors: [...kept, ...inGit(looking, git, remarks), ...stamped], remarks };
}

function inGit(
  { dbPath, workspace, folder }: LookingFor,
  remembered: Places['git'],
  remarks: string[],
): FoundAnchor[] {
  try {
    const here = [dirname(dbPath), workspace].flatMap((path) => repositoryOf(path) ?? []);
    const places = [...here.map((repository) => ({ repository, ref: ANCHOR_REF })), ...remembered];
    const distinct = new Map(places.map((place) => [`${place.repository}\n${place.ref}`, place]));
    return [...distinct.values()].flatMap((place): FoundAnchor[] => {
      const where = `${place.ref} in ${place.repository}`;
      const commits = checkpointsInGit(place.repository, place.ref);
      if (commits === undefined && remembered.includes(place))
        remarks.push(`${where}, where checkpoints were committed, is not there now.`);
      // One repository may hold the heads of several logs.
      return (commits ?? [])
        .filter(({ note }) => folder === undefined || note.startsWith(`${folder.origin}\n`))
        .map((commit) => ({ source: 'git', where, note: commit.note, commit }));
    });
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    if (remembered.length > 0) remarks.push(`The checkpoints in git were not looked at: ${error.message}`);
    return [];
  }
}

function readQuietly(path: string): string | undefined {
  try {
    return readIfPresent(path);
  } catch {
    return undefined;
  }
}
