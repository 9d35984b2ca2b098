import { spawnSync } from 'node:child_process';
import { childEnvironment } from '../config.ts';

export const ANCHOR_REF = 'refs/colibri/checkpoints';

/** How many checkpoints are read back from a reference, the newest first. */
const COMMITS_MAX = 1_000;
const OUTPUT_BYTES_MAX = 64 * 1_048_576;
const FILE = 'checkpoint';

/** Git said no, or is not there. The message is for the user. */
export class GitError extends Error {}

export interface GitAnchor {
  readonly commit: string;
  /** The reference ended in this very checkpoint already. */
  readonly already: boolean;
}

/** A commit that holds a checkpoint, as git keeps it. */
export interface CommittedCheckpoint {
  readonly commit: string;
  readonly note: string;
  /** The bytes that the id is the digest of. */
  readonly object: Buffer;
}

/**
 * Adds a checkpoint as a commit on a reference of its own. Only plumbing: neither the index nor the working tree nor
 * HEAD is touched, in whichever worktree it runs, and no hook of the repository is started.
 */
export function anchorInGit(options: {
  readonly folder: string;
  readonly ref: string;
  readonly note: string;
  readonly key: string;
  readonly size: number;
}): GitAnchor {
  const { folder, ref, note } = options;
  requireOwnRef(folder, ref);
  const tip = resolve(folder, ref);
  if (tip !== undefined) {
    const newest = git(folder, ['cat-file', 'blob', `${tip}:${FILE}`], { mayFail: true });
    if (newest === undefined)
      throw new GitError(`${ref} holds something else than checkpoints. Name another with --ref.`);
    if (newest === note) return { commit: tip, already: true };
  }
  const blob = (text: string) => git(folder, ['hash-object', '-w', '--stdin'], { input: text }).trim();
  const entries = `100644 blob ${blob(note)}\t${FILE}\n100644 blob ${blob(`${options.key}\n`)}\tkey\n`;
  const tree = git(folder, ['mktree'], { input: entries }).trim();
  const commit = git(folder, ['commit-tree', tree, ...(tip === undefined ? [] : ['-p', tip])], {
    input: `colibri checkpoint at ${options.size} audit rows on ${ref}\n\n${note}`,
    env: identityFor(folder),
  }).trim();
  // With the old value named, two processes cannot lose each other's commit.
  git(folder, ['update-ref', ref, commit, tip ?? '0'.repeat(commit.length)]);
  return { commit, already: false };
}

/** The checkpoints on a reference, the newest first; undefined where there is no repository or no such reference. */
export function checkpointsInGit(folder: string, ref: string): CommittedCheckpoint[] | undefined {
  if (resolve(folder, ref) === undefined) return undefined;
  const commits = git(folder, ['rev-list', `--max-count=${COMMITS_MAX}`, ref, '--'])
    .split('\n')
    .filter(Boolean);
  const input = commits.map((commit) => `${commit}\n${commit}:${FILE}\n`).join('');
  const objects = parseBatch(gitBytes(folder, ['cat-file', '--batch'], { input }));
  return commits.flatMap((commit, i) => {
    const [object, note] = [objects[2 * i], objects[2 * i + 1]];
    return object === undefined || note === undefined
      ? []
      : [{ commit, object, note: note.toString('utf8') }];
  });
}

/** Those of these commits that the repository of a folder holds. */
export function commitsHeld(folder: string, commits: readonly string[]): ReadonlySet<string> {
  const input = commits.map((commit) => `${commit}\n`).join('');
  const answers = git(folder, ['cat-file', '--batch-check'], { input, mayFail: true })?.split('\n') ?? [];
  return new Set(answers.flatMap((answer) => /^([0-9a-f]+) commit /.exec(answer)?.[1] ?? []));
}

/** The top folder of the repository a folder belongs to. */
export function repositoryOf(folder: string): string | undefined {
  return git(folder, ['rev-parse', '--show-toplevel'], { mayFail: true })?.trim();
}

/** For each name asked for `<id> <type> <bytes>`, the bytes and a newline; or `<name> missing`. */
function parseBatch(output: Buffer): (Buffer | undefined)[] {
  const objects: (Buffer | undefined)[] = [];
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0x0a, at);
    if (end < 0) break;
    const [, type, size] = output.toString('utf8', at, end).split(' ');
    at = end + 1;
    if (type !== 'blob' && type !== 'commit') {
      objects.push(undefined);
      continue;
    }
    objects.push(output.subarray(at, at + Number(size)));
    at += Number(size) + 1;
  }
  return objects;
}

/** A branch that somebody has checked out is not ours to move. */
function requireOwnRef(folder: string, ref: string): void {
  if (repositoryOf(folder) === undefined)
    throw new GitError(`${folder} is in no git repository. Run "git init", or keep a copy with --file.`);
  if (!ref.startsWith('refs/') || git(folder, ['check-ref-format', ref], { mayFail: true }) === undefined)
    throw new GitError(`${ref} is no full name of a reference, such as ${ANCHOR_REF}.`);
  const checkedOut = git(folder, ['worktree', 'list', '--porcelain']).split('\n');
  if (checkedOut.includes(`branch ${ref}`))
    throw new GitError(
      `${ref} is checked out. Checkpoints need a reference of their own; name another with --ref.`,
    );
}

function resolve(folder: string, ref: string): string | undefined {
  return git(folder, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`], {
    mayFail: true,
  })?.trim();
}

/** The user's own name where git knows it. A machine without one can still anchor. */
function identityFor(folder: string): Record<string, string> {
  if (git(folder, ['var', 'GIT_COMMITTER_IDENT'], { mayFail: true }) !== undefined) return {};
  const [name, email] = ['colibri', 'colibri@localhost'];
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}

interface GitOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A refusal is undefined. Git that is not installed is still an error. */
  readonly mayFail?: boolean;
}

function git(
  folder: string,
  args: readonly string[],
  options: GitOptions & { mayFail: true },
): string | undefined;
function git(folder: string, args: readonly string[], options?: GitOptions): string;
function git(folder: string, args: readonly string[], options: GitOptions = {}): string | undefined {
  return runGit(folder, args, options)?.toString('utf8');
}

function gitBytes(folder: string, args: readonly string[], options: GitOptions): Buffer {
  return runGit(folder, args, options) ?? Buffer.alloc(0);
}

function runGit(folder: string, args: readonly string[], options: GitOptions): Buffer | undefined {
  const safe = [
    '-c',
    'core.hooksPath=/dev/null',
    '-c',
    'core.fsmonitor=false',
    '-c',
    'i18n.commitEncoding=UTF-8',
  ];
  const { status, stdout, stderr, error } = spawnSync('git', ['-C', folder, ...safe, ...args], {
    input: options.input ?? '',
    maxBuffer: OUTPUT_BYTES_MAX,
    env: childEnvironment({ GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', ...options.env }),
  });
  if (error !== undefined) {
    const missing = 'code' in error && error.code === 'ENOENT';
    throw new GitError(
      missing
        ? 'git was not found. Install it, or keep the checkpoint with --file.'
        : `git failed: ${error.message}`,
    );
  }
  if (status === 0) return stdout;
  if (options.mayFail === true) return undefined;
  throw new GitError(`git ${args[0]} failed: ${stderr.toString('utf8').trim() || `exit ${status}`}`);
}
