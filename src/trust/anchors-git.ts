import { ProgramError, run } from './programs.ts';

export const ANCHOR_REF = 'refs/colibri/checkpoints';

/** How many checkpoints are read back from a reference, the newest first. */
const COMMITS_MAX = 1_000;

/** A commit that holds a checkpoint, as git keeps it. */
export interface CommittedCheckpoint {
  readonly note: string;
  /** The bytes that the id of the commit is the digest of. */
  readonly object: Buffer;
}

/**
 * Adds a checkpoint as a commit on a reference of its own; `already` where the reference ends in this very one. Only
 * plumbing: neither the index nor the working tree nor HEAD is touched, in whichever worktree it runs, and no hook of
 * the repository is started.
 */
export function anchorInGit(options: {
  readonly folder: string;
  readonly ref: string;
  readonly note: string;
  readonly size: number;
}): { readonly commit: string; readonly already: boolean } {
  const { folder, ref, note } = options;
  requireOwnRef(folder, ref);
  const tip = resolve(folder, ref);
  if (tip !== undefined) {
    const newest = noteIn(runGit(folder, ['cat-file', 'commit', tip]).stdout);
    if (newest === undefined)
      throw new ProgramError(`${ref} holds something else than checkpoints. Name another with --ref.`);
    if (newest === note) return { commit: tip, already: true };
  }
  // The note is the message: the commit holds no files.
  const tree = git(folder, ['mktree']);
  const parent = tip === undefined ? [] : ['-p', tip];
  const message = `colibri checkpoint at ${options.size} audit rows on ${ref}\n\n${note}`;
  const commit = git(folder, [...identityFor(folder), 'commit-tree', tree, ...parent], message);
  // With the old value named, two processes cannot lose each other's commit.
  git(folder, ['update-ref', ref, commit, tip ?? '0'.repeat(commit.length)]);
  return { commit, already: false };
}

/** The checkpoints on a reference, the newest first; undefined where there is no repository or no such reference. */
export function checkpointsInGit(folder: string, ref: string): CommittedCheckpoint[] | undefined {
  if (resolve(folder, ref) === undefined) return undefined;
  const input = `${git(folder, ['rev-list', `--max-count=${COMMITS_MAX}`, ref, '--'])}\n`;
  const stdout = gitBytes(folder, ['cat-file', '--batch'], input);
  const found: CommittedCheckpoint[] = [];
  // For each commit `<id> commit <bytes>`, the bytes and a newline; or `<id> missing`.
  for (let at = 0, end = stdout.indexOf('\n'); end > 0; end = stdout.indexOf('\n', at)) {
    const bytes = Number(stdout.toString('utf8', at, end).split(' ')[2] ?? -1);
    const object = stdout.subarray(end + 1, end + 1 + bytes);
    const note = noteIn(object);
    if (note !== undefined) found.push({ object, note });
    at = end + 2 + bytes;
  }
  return found;
}

/** A commit ends with the note, after a subject of ours. */
function noteIn(object: Buffer): string | undefined {
  return /\n\ncolibri checkpoint at [^\n]*\n\n(.*)$/s.exec(object.toString('utf8'))?.[1];
}

/** Those of these commits that the repository of a folder holds. */
export function commitsHeld(folder: string, commits: readonly string[]): ReadonlySet<string> {
  const input = commits.map((commit) => `${commit}\n`).join('');
  const answers = tryGit(folder, ['cat-file', '--batch-check'], input)?.toString('utf8').split('\n') ?? [];
  return new Set(answers.flatMap((answer) => /^([0-9a-f]+) commit /.exec(answer)?.[1] ?? []));
}

/** The top folder of the repository a folder belongs to. */
export function repositoryOf(folder: string): string | undefined {
  return tryGit(folder, ['rev-parse', '--show-toplevel'])?.toString('utf8').trim();
}

/** A branch that somebody has checked out is not ours to move. */
function requireOwnRef(folder: string, ref: string): void {
  if (repositoryOf(folder) === undefined)
    throw new ProgramError(`${folder} is in no git repository. Run "git init", or keep a copy with --file.`);
  if (!ref.startsWith('refs/') || tryGit(folder, ['check-ref-format', ref]) === undefined)
    throw new ProgramError(`${ref} is not the full name of a reference, such as ${ANCHOR_REF}.`);
  if (git(folder, ['worktree', 'list', '--porcelain']).split('\n').includes(`branch ${ref}`))
    throw new ProgramError(
      `${ref} is checked out. Checkpoints need a reference of their own; name another with --ref.`,
    );
}

function resolve(folder: string, ref: string): string | undefined {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
  return tryGit(folder, args)?.toString('utf8').trim();
}

/** The user's own name where git knows it. A machine without one can still anchor. */
function identityFor(folder: string): string[] {
  if (tryGit(folder, ['var', 'GIT_COMMITTER_IDENT']) !== undefined) return [];
  return ['-c', 'user.name=colibri', '-c', 'user.email=colibri@localhost'];
}

/** What git answers, without blanks at its ends. */
function git(folder: string, args: readonly string[], input?: string): string {
  return gitBytes(folder, args, input).toString('utf8').trim();
}

function gitBytes(folder: string, args: readonly string[], input?: string): Buffer {
  const { isRefused, stdout, stderr } = runGit(folder, args, input);
  if (isRefused) throw new ProgramError(`git failed: ${stderr || 'it does not say why'}`);
  return stdout;
}

/** The same where a refusal counts as no answer. */
function tryGit(folder: string, args: readonly string[], input?: string): Buffer | undefined {
  const { isRefused, stdout } = runGit(folder, args, input);
  return isRefused ? undefined : stdout;
}

/** Nothing that a repository is configured to do is done. */
const SAFE = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'i18n.commitEncoding=UTF-8'];

function runGit(folder: string, args: readonly string[], input = '') {
  return run('git', ['-C', folder, ...SAFE.flatMap((setting) => ['-c', setting]), ...args], {
    input,
    env: { GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0' },
  });
}
