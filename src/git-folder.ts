import { lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { readWhole, target } from './private-files.ts';

// Hostile input enters here: what `.git` says in a folder that may be anybody's. Git's own files are read, and git is never
// started: a child process costs milliseconds and runs what a stranger's repository configures.

const GITDIR = 'gitdir:';
/** HEAD, a reference, or a pointer to another folder. */
const TEXT_BYTES_MAX = 4_096;
const CONFIG_BYTES_MAX = 65_536;
/** Some checkouts are made of links, and only what is checked out is read there. */
const FOLLOW = true;

/** The git folder of the nearest folder that has one. A further checkout has a file there that says where it is. */
export function findGitFolder(workspace: string): string | undefined {
  const top = findTop(workspace);
  if (top === undefined) return undefined;
  const entry = join(top, '.git');
  if (target(entry)?.isDirectory()) return entry;
  const text = readGitText(entry);
  return text?.startsWith(GITDIR) ? followPointer(top, text.slice(GITDIR.length).trim()) : undefined;
}

/** The nearest folder, at or above this one, with a `.git`. */
function findTop(workspace: string): string | undefined {
  for (let folder = resolve(workspace); ; folder = dirname(folder)) {
    if (target(join(folder, '.git')) !== undefined) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** Where a path that git wrote leads. */
export function followPointer(from: string, target: string): string | undefined {
  // A share on another machine would be asked for, and that machine told who asks.
  if (target === '' || target.startsWith('//') || target.startsWith('\\\\')) return undefined;
  return resolve(from, target);
}

/** The text of one of git's small files. */
export function readGitText(path: string, follow = FOLLOW): string | undefined {
  return readWhole(path, TEXT_BYTES_MAX, follow)?.toString('utf8').trim();
}

/** Whether a workspace is in a worktree, and the folder in the main one that corresponds to it. */
export type Worktree =
  | { readonly kind: 'none' }
  /** `folder` is where the main worktree has what the workspace is here; of a bare repository, the repository itself. */
  | { readonly kind: 'linked'; readonly folder: string }
  /** It says it is a worktree of something that does not know it, or has no such folder. */
  | { readonly kind: 'alone'; readonly reason: string }
  /** It is a worktree whose main one, or which itself, was moved, so that git does not find the other one. */
  | { readonly kind: 'lost'; readonly reason: string };

const NONE = { kind: 'none' } as const;

/**
 * Where the worktree of a workspace belongs. A `.git` file can name any folder of this machine, so nothing is believed that
 * the other side does not confirm: the repository must name this worktree, and its main worktree must be that repository's.
 */
export function findWorktree(workspace: string): Worktree {
  try {
    const top = findTop(workspace);
    return top === undefined ? NONE : examine(realpathSync.native(top), realpathSync.native(workspace));
  } catch (error) {
    // What cannot be read is not believed.
    if (error instanceof Error && 'code' in error) return NONE;
    throw error;
  }
}

function examine(top: string, workspace: string): Worktree {
  const entry = join(top, '.git');
  if (!lstatSync(entry).isFile()) return NONE;
  const text = readGitText(entry, !FOLLOW) ?? '';
  const own = text.startsWith(GITDIR) ? followPointer(top, text.slice(GITDIR.length).trim()) : undefined;
  // A submodule is a project of its own; only a worktree has its folder among those of its repository.
  if (own === undefined || basename(dirname(own)) !== 'worktrees') return NONE;
  const alone = (what: string): Worktree => ({ kind: 'alone', reason: `${entry} names ${own}, ${what}` });
  const lost = (what: string): Worktree => ({ kind: 'lost', reason: `${entry} names ${own}, ${what}` });

  const real = realPath(own);
  if (real === undefined) return lost('which does not exist');
  const back = followPointer(real, readGitText(join(real, 'gitdir'), !FOLLOW) ?? '');
  const common = followPointer(real, readGitText(join(real, 'commondir'), !FOLLOW) ?? '');
  if (back === undefined || common === undefined) return alone('which is not one of git’s');
  if (basename(back) !== '.git' || realPath(dirname(back)) !== top)
    return realPath(back) === undefined
      ? lost(`which expects this worktree at ${dirname(back)}`)
      : alone(`which belongs to ${dirname(back)}`);
  if (realPath(common) !== dirname(dirname(real))) return alone('which is not in its own repository');
  const folder = correspondingFolder(dirname(dirname(real)), relative(top, workspace));
  return folder === undefined ? alone('whose main worktree has no such folder') : { kind: 'linked', folder };
}

/** The folder of the main worktree at this path. It must really be there: what is checked out may hold links. */
function correspondingFolder(repository: string, path: string): string | undefined {
  const main = basename(repository) === '.git' ? dirname(repository) : mainOfSubmodule(repository);
  // Without a main worktree, all worktrees have the repository in common.
  if (main === undefined) return path === '' ? repository : undefined;
  const folder = join(main, path);
  return realPath(folder) === folder && statSync(folder).isDirectory() ? folder : undefined;
}

/** The repository of a submodule is kept by the one around it, and says where it is checked out. */
function mainOfSubmodule(repository: string): string | undefined {
  const config = readWhole(join(repository, 'config'), CONFIG_BYTES_MAX)?.toString('utf8') ?? '';
  const [, core = ''] = config.split(/^\[core\][ \t]*$/m);
  const [, target = ''] = /^[ \t]*worktree[ \t]*=[ \t]*(\S.*)$/m.exec(core.split(/^\[/m)[0] ?? '') ?? [];
  const main = realPath(followPointer(repository, target.trim()));
  if (main === undefined) return undefined;
  const text = readGitText(join(main, '.git'), !FOLLOW) ?? '';
  const back = text.startsWith(GITDIR) ? followPointer(main, text.slice(GITDIR.length).trim()) : undefined;
  return realPath(back) === repository ? main : undefined;
}

/** The path with every link in it resolved; undefined where nothing is. */
function realPath(path: string | undefined): string | undefined {
  if (path === undefined || target(path) === undefined) return undefined;
  return realpathSync.native(path);
}
