import { ProgramError, run } from './programs.ts';

export const ANCHOR_REF = 'refs/colibri/checkpoints';

/** How many checkpoints are read back from a reference, the newest first. */
const COMMITS_MAX = 1_000;
const FILE = 'checkpoint';

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
  readonly key: string;
  readonly size: number;
}): { readonly commit: string; readonly already: boolean } {
  const { folder, ref, note } = options;
  requireOwnRef(folder, ref);
  const tip = resolve(folder, ref);
  if (tip !== undefined) {
    const newest = tryGit(folder, ['cat-file', 'blob', `${tip}:${FILE}`]);
    if (newest === undefined)
      throw new ProgramError(`${ref} holds something else than checkpoints. Name another with --ref.`);
    if (newest.toString('utf8') === note) return { commit: tip, already: true };
  }
  const blob = (text: string) => git(folder, ['hash-object', '-w', '--stdin'], text);
  const entries = `100644 blob ${blob(note)}\t${FILE}\n100644 blob ${blob(`${options.key}\n`)}\tkey\n`;
  const tree = git(folder, ['mktree'], entries);
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
  const commits = git(folder, ['rev-list', `--max-count=${COMMITS_MAX}`, ref, '--']).split('\n');
  const input = commits.map((commit) => `${commit}\n${commit}:${FILE}\n`).join('');
  const objects = parseBatch(tryGit(folder, ['cat-file', '--batch'], input) ?? Buffer.alloc(0));
  return commits.flatMap((_, i) => {
    const [object, note] = [objects[2 * i], objects[2 * i + 1]];
    return object === undefined || note === undefined ? [] : [{ object, note: note.toString('utf8') }];
  });
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

/** For each name asked for `<id> <type> <bytes>`, the bytes and a newline; or `<name> missing`. */
function parseBatch(output: Buffer): (Buffer | undefined)[] {
  const objects: (Buffer | undefined)[] = [];
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0x0a, at);
    if (end < 0) break;
    const [, type, size] = output.toString('utf8', at, end).split(' ');
    const isThere = type === 'blob' || type === 'commit';
    const next = isThere ? end + 2 + Number(size) : end + 1;
    objects.push(isThere ? output.subarray(end + 1, next - 1) : undefined);
    at = next;
  }
  return objects;
}

/** A branch that somebody has checked out is not ours to move. */
function requireOwnRef(folder: string, ref: string): void {
  if (repositoryOf(folder) === undefined)
    throw new ProgramError(`${folder} is in no git repository. Run "git init", or keep a copy with --file.`);
  if (!ref.startsWith('refs/') || tryGit(folder, ['check-ref-format', ref]) === undefined)
    throw new ProgramError(`${ref} is no full name of a reference, such as ${ANCHOR_REF}.`);
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
  const { isRefused, stdout, stderr } = runGit(folder, args, input);
  if (isRefused) throw new ProgramError(`git failed: ${stderr || 'it does not say why'}`);
  return stdout.toString('utf8').trim();
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
