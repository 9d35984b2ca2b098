import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { namesIn, oddity } from '../private-files.ts';
import { shellQuote } from '../untrusted.ts';
import { ANCHOR_REF, TRACKED_REF } from './opening.ts';
import { ProgramError, run } from './programs.ts';

/** How many checkpoints are read back from a reference, the newest first. */
const COMMITS_MAX = 1_000;

/** What a remote has of the reference, as git remembers it: `refs/remotes/origin/colibri/checkpoints`. */
const TRACKED = new RegExp(`^${TRACKED_REF.replace('origin', '[^\\s~^:?*[\\\\]+')}$`);

/** A checkpoint in a commit, with the bytes that the id of the commit is the digest of. */
export interface CommittedCheckpoint {
  readonly commit: string;
  readonly note: string;
  readonly object: Buffer;
  /** Whether a remote is known to have it: git keeps what it last saw there. */
  readonly isPushed: boolean;
}

/**
 * Adds a checkpoint as a commit on the reference for them; `already` where the reference ends in this very one. Only
 * plumbing: neither the index nor the working tree nor HEAD is touched, in whichever worktree it runs, and no hook of
 * the repository is started. `repository` is where it went: a file or a link in the folder may lead to any.
 */
export function anchorInGit(folder: string, note: string, size: number) {
  const { gitFolder, repository } = locate(folder) ?? {};
  if (gitFolder === undefined)
    throw new ProgramError(
      `${folder} is not in a git repository. Run "git init", or keep a copy with --file.`,
    );
  refuseLinks(gitFolder);
  // Not all versions of git that run such hooks can be told not to.
  const hooks = git(folder, ['config', '--show-scope', '--includes', '--get-regexp', '^hook\\.']).text;
  if (/^(?:local|worktree)\t/m.test(hooks))
    throw new ProgramError(`${gitFolder} configures hooks, which git runs. Remove them, or use --file.`);
  const tip = tipIn(folder);
  if (tip !== undefined) {
    const newest = noteIn(git(folder, ['cat-file', 'commit', tip]).stdout);
    if (newest === undefined)
      throw new ProgramError(`${ANCHOR_REF} contains something other than checkpoints. Rename it first.`);
    if (newest === note) return { commit: tip, already: true, repository };
  }
  // The note is the message: the commit holds no files.
  const tree = git(folder, ['mktree']).text;
  const parent = tip === undefined ? [] : ['-p', tip];
  const message = `colibri checkpoint at ${size} audit rows\n\n${note}`;
  const commit = git(folder, [...identityFor(folder), 'commit-tree', tree, ...parent], message).text;
  // With the old value named, two processes cannot lose each other's commit. A reference to a branch leaves the branch alone.
  git(folder, ['update-ref', '--no-deref', ANCHOR_REF, commit, tip ?? '0'.repeat(commit.length)]);
  return { commit, already: false, repository };
}

/** Git appends to its logs, and adds objects and references, through any link: to a file of the user's, if it leads there. */
function refuseLinks(gitFolder: string): void {
  const partsOf = (path: string) => path.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'));
  const objects = namesIn(join(gitFolder, 'objects')).map((name) => `objects/${name}`);
  const shared = ['objects', 'reftable', ...objects.filter((path) => /\/[0-9a-f]{2}$/.test(path))];
  for (const part of [...shared, ...partsOf(ANCHOR_REF), ...partsOf(`logs/${ANCHOR_REF}`)]) {
    const path = join(gitFolder, part);
    const odd = oddity(path, true) ?? 'a folder';
    if (odd !== 'a folder')
      throw new ProgramError(`${path} is ${odd}, and git would write through it. Remove it, or use --file.`);
  }
}

/** The checkpoints in a repository, the newest first; undefined where there is no repository, or none in it. */
export function checkpointsInGit(folder: string): CommittedCheckpoint[] | undefined {
  if (tipIn(folder) === undefined) return undefined;
  const commits = git(folder, ['rev-list', `--max-count=${COMMITS_MAX}`, ANCHOR_REF, '--']).text;
  const { stdout } = git(folder, ['cat-file', '--batch'], `${commits}\n`);
  const pushed = commitsPushed(folder);
  const found: CommittedCheckpoint[] = [];
  // For each commit `<id> commit <bytes>`, the bytes and a newline; or `<id> missing`.
  for (let at = 0, end = stdout.indexOf('\n'); end > 0; end = stdout.indexOf('\n', at)) {
    const [commit = '', , length] = stdout.toString('utf8', at, end).split(' ');
    const bytes = Number(length ?? -1);
    const object = stdout.subarray(end + 1, end + 1 + bytes);
    const note = noteIn(object);
    if (note !== undefined) found.push({ commit, object, note, isPushed: pushed.has(commit) });
    at = end + 2 + bytes;
  }
  return found;
}

/** A commit ends with the note, after a subject of ours. */
function noteIn(object: Buffer): string | undefined {
  return /\n\ncolibri checkpoint at [^\n]*\n\n(.*)$/s.exec(object.toString('utf8'))?.[1];
}

/**
 * The newest checkpoints that a remote of the repository is known to have. A commit that is only in this repository shows
 * nothing: whoever changes the database can make one.
 */
function commitsPushed(folder: string): ReadonlySet<string> {
  const refs = tryGit(folder, ['for-each-ref', '--format=%(refname)', 'refs/remotes/'])?.split('\n') ?? [];
  const tips = refs.filter((ref) => TRACKED.test(ref));
  if (tips.length === 0) return new Set();
  const commits = tryGit(folder, ['rev-list', `--max-count=${COMMITS_MAX}`, ...tips, '--']) ?? '';
  return new Set(commits.split('\n'));
}

/** The same of a folder that may be in no repository. Without git none was looked up, and none is found. */
export function pushedFrom(folder: string): ReadonlySet<string> {
  try {
    return commitsPushed(folder);
  } catch (error) {
    if (error instanceof ProgramError) return new Set();
    throw error;
  }
}

/** The repository a folder belongs to, as people name it, and the folder where its references and objects are. */
export function locate(folder: string) {
  const { isRefused, text, stderr } = runGit(folder, ['rev-parse', '--git-common-dir']);
  if (isRefused && /not a git repository|cannot change to/.test(stderr)) return undefined;
  if (isRefused) throw failed(stderr);
  const gitFolder = realpathSync(resolve(folder, text));
  return { gitFolder, repository: basename(gitFolder) === '.git' ? dirname(gitFolder) : gitFolder };
}

function tipIn(folder: string): string | undefined {
  return tryGit(folder, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ANCHOR_REF}^{commit}`]);
}

/** The user's own name where git knows it. A machine without one can still anchor. */
function identityFor(folder: string): string[] {
  if (tryGit(folder, ['var', 'GIT_COMMITTER_IDENT']) !== undefined) return [];
  return ['-c', 'user.name=colibri', '-c', 'user.email=colibri@localhost'];
}

/** What git answers. */
function git(folder: string, args: readonly string[], input?: string) {
  const answer = runGit(folder, args, input);
  if (answer.isRefused) throw failed(answer.stderr);
  return answer;
}

const failed = (why: string) => new ProgramError(`git failed: ${why || 'it gave no reason'}`);

/** The text it answers, where a refusal counts as no answer. */
function tryGit(folder: string, args: readonly string[], input?: string): string | undefined {
  const { isRefused, text } = runGit(folder, args, input);
  return isRefused ? undefined : text;
}

function runGit(folder: string, args: readonly string[], input?: string) {
  const answer = run('git', ['-C', folder, ...args], input);
  // Not the same as "there is none", which most refusals mean.
  if (answer.stderr.includes('attempting to allocate')) throw failed(answer.stderr);
  const [, owned] = /detected dubious ownership in repository at '(.*)'/.exec(answer.stderr) ?? [];
  if (!answer.isRefused || owned === undefined) return answer;
  const remedy = `If you trust it, run: git config --global --add safe.directory ${shellQuote(owned)}`;
  throw new ProgramError(`git refuses to read ${owned}, because it belongs to another user. ${remedy}`);
}
