import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readSmallText } from './git-files.ts';
import { hasCommit, type ObjectStore } from './git-objects.ts';
import { readRefFile, resolveRef } from './git-refs.ts';

/** Where the workspace's repository stands. Neither is a promise: a new branch has no commit, a detached head no branch. */
export interface GitEvidence {
  readonly branch?: string;
  readonly commitSha?: string;
}

// Git's own files are read, and git is never started: a child process costs milliseconds and runs what a stranger's
// repository configures. The calls are synchronous and few; there is nothing to remember and nothing to be out of date.

/** The branch and commit that are checked out, or nothing where there is no repository that can be read. */
export async function readGitEvidence(workspace: string): Promise<GitEvidence | undefined> {
  return quietly(() => {
    const repository = findRepository(workspace);
    const head = repository && readRefFile(join(repository.own, 'HEAD'));
    if (repository === undefined || head === undefined) return undefined;
    if ('sha' in head) return { commitSha: head.sha };
    const commitSha = resolveRef(repository.common, head.ref);
    return {
      ...(head.ref.startsWith(BRANCHES) && { branch: head.ref.slice(BRANCHES.length) }),
      ...(commitSha !== undefined && { commitSha }),
    };
  });
}

/**
 * Whether the workspace's repository holds a commit with this id, whole or its first digits (seven or more).
 * Undefined where that cannot be said: no repository, one that is shallow or borrows objects, or too few digits.
 */
export async function commitExists(workspace: string, sha: string): Promise<boolean | undefined> {
  const idStart = sha.toLowerCase();
  if (!/^[0-9a-f]{1,64}$/.test(idStart)) return false;
  if (idStart.length < ID_START_CHARS_MIN) return undefined;
  return quietly(() => {
    const repository = findRepository(workspace);
    if (repository === undefined || readRefFile(join(repository.own, 'HEAD')) === undefined) return undefined;
    const store = objectStore(repository.common);
    if (idStart.length > store.idBytes * 2) return false;
    const found = hasCommit(store, idStart);
    return found === false && isPartial(repository.common) ? undefined : found;
  });
}

const BRANCHES = 'refs/heads/';
const GITDIR = 'gitdir:';
const ID_START_CHARS_MIN = 7;
const POINTER_BYTES_MAX = 4_096;
const CONFIG_BYTES_MAX = 65_536;

interface Repository {
  /** What one checkout has for itself: HEAD. */
  readonly own: string;
  /** What all checkouts of a repository share: references and objects. */
  readonly common: string;
}

/** The repository of the nearest folder at or above the workspace that has one, as git finds it. */
function findRepository(workspace: string): Repository | undefined {
  for (let folder = resolve(workspace); ; folder = dirname(folder)) {
    const entry = join(folder, '.git');
    const stat = statSync(entry, { throwIfNoEntry: false });
    if (stat !== undefined) return stat.isDirectory() ? repositoryAt(entry) : linkedRepository(folder, entry);
    if (dirname(folder) === folder) return undefined;
  }
}

/** A further checkout or a submodule has a file in place of the folder, which says where the folder is. */
function linkedRepository(folder: string, entry: string): Repository | undefined {
  const text = readSmallText(entry, POINTER_BYTES_MAX);
  if (text === undefined || !text.startsWith(GITDIR)) return undefined;
  const own = followPointer(folder, text.slice(GITDIR.length).trim());
  return own === undefined ? undefined : repositoryAt(own);
}

function repositoryAt(own: string): Repository | undefined {
  const pointer = readSmallText(join(own, 'commondir'), POINTER_BYTES_MAX);
  const common = pointer === undefined ? own : followPointer(own, pointer);
  return common === undefined ? undefined : { own, common };
}

function followPointer(from: string, target: string): string | undefined {
  // A share on another machine would be asked for, and that machine told who asks.
  if (target === '' || target.startsWith('//') || target.startsWith('\\\\')) return undefined;
  return resolve(from, target);
}

function objectStore(common: string): ObjectStore {
  const config = readSmallText(join(common, 'config'), CONFIG_BYTES_MAX) ?? '';
  const settings = config.split('\n').map((line) => line.toLowerCase().split(/\s/).join(''));
  return { folder: join(common, 'objects'), idBytes: settings.includes('objectformat=sha256') ? 32 : 20 };
}

function isPartial(common: string): boolean {
  return existsSync(join(common, 'shallow')) || existsSync(join(common, 'objects', 'info', 'alternates'));
}

/** A broken repository is somebody's bad day, not an error of the call that asked: no evidence then. */
function quietly<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
