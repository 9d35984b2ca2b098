import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { oncePerTurn, readGitEvidence } from '../../integrations/git.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'colibri-git-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const ENV = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.org',
};

function git(cwd: string, args: readonly string[], input?: string): string {
  const options = { cwd, env: ENV, encoding: 'utf8', input, stdio: 'pipe' } as const;
  return execFileSync('git', args, { ...options, maxBuffer: 1 << 28 }).trim();
}

/** A repository on branch `main` with one commit. */
function repository(name = 'repo', ...initArgs: string[]): string {
  const path = join(folder, name);
  git(folder, ['init', '-q', '-b', 'main', ...initArgs, path]);
  commit(path, 'first');
  return path;
}

function commit(path: string, message: string): string {
  appendFileSync(join(path, 'file.txt'), `${message}\n`);
  git(path, ['add', 'file.txt']);
  git(path, ['commit', '-q', '-m', message]);
  return head(path);
}

function makePipe(path: string): void {
  if (spawnSync('sh', ['-c', 'mkfifo "$1"', 'sh', path]).status !== 0) throw new Error(`no pipe at ${path}`);
}

const head = (path: string): string => git(path, ['rev-parse', 'HEAD']);

describe('readGitEvidence', () => {
  test('names the branch and its commit', async () => {
    const repo = repository();

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: head(repo) });
  });

  test('sees a commit made after the last look', async () => {
    const repo = repository();
    await readGitEvidence(repo);

    const later = commit(repo, 'second');

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: later });
  });

  test('finds the repository from a folder inside it', async () => {
    const repo = repository();
    mkdirSync(join(repo, 'packages', 'a'), { recursive: true });

    expect(await readGitEvidence(join(repo, 'packages', 'a'))).toEqual({
      branch: 'main',
      commit_sha: head(repo),
    });
  });

  test.each(['feature/ε-skills', 'a/b/c', 'release-1.0'])(
    'takes the branch name %s whole',
    async (branch) => {
      const repo = repository();
      git(repo, ['checkout', '-q', '-b', branch]);

      expect((await readGitEvidence(repo))?.branch).toBe(branch);
    },
  );

  test('reads packed references', async () => {
    const repo = repository();
    git(repo, ['tag', '-a', 'v1', '-m', 'one']);
    git(repo, ['pack-refs', '--all', '--prune']);

    expect(existsSync(join(repo, '.git', 'refs', 'heads', 'main'))).toBe(false);
    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: head(repo) });
  });

  test('finds every branch among thousands of packed ones, tags between them', async () => {
    const repo = repository();
    const shas = [head(repo), commit(repo, 'second'), commit(repo, 'third')];
    git(repo, ['tag', '-a', 'annotated', '-m', 'x']);
    const tag = git(repo, ['rev-parse', 'refs/tags/annotated']);
    const branches = Array.from(
      { length: 1_500 },
      (_, i) => `b/${((i * 7_919) % 100_003).toString(36)}-${i}`,
    );
    const updates = branches.map((name, i) => `create refs/heads/${name} ${shas[i % 3]}`);
    const tags = branches.map((name) => `create refs/tags/${name} ${tag}`);
    git(repo, ['update-ref', '--stdin'], `${[...updates, ...tags].join('\n')}\n`);
    git(repo, ['pack-refs', '--all', '--prune']);

    for (const [i, name] of branches.entries()) {
      if (i % 7 !== 0) continue;
      writeFileSync(join(repo, '.git', 'HEAD'), `ref: refs/heads/${name}\n`);
      expect(await readGitEvidence(repo)).toEqual({ branch: name, commit_sha: shas[i % 3] });
    }
    for (const absent of ['b/', 'b/zzzzzz', 'a', 'zz', 'b/0-00']) {
      writeFileSync(join(repo, '.git', 'HEAD'), `ref: refs/heads/${absent}x\n`);
      expect(await readGitEvidence(repo)).toEqual({ branch: `${absent}x` });
    }
  });

  test('reads packed references of a git that did not sort them', async () => {
    const repo = repository();
    const sha = head(repo);
    rmSync(join(repo, '.git', 'refs', 'heads', 'main'));
    writeFileSync(
      join(repo, '.git', 'packed-refs'),
      `# pack-refs with: peeled \n${'0'.repeat(40)} refs/heads/zeta\n${sha} refs/heads/main\n`,
    );

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: sha });
  });

  test('names the branch that has no commit yet', async () => {
    const repo = join(folder, 'new');
    git(folder, ['init', '-q', '-b', 'main', repo]);

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main' });
  });

  test('names only the commit of a detached head', async () => {
    const repo = repository();
    git(repo, ['checkout', '-q', '--detach']);

    expect(await readGitEvidence(repo)).toEqual({ commit_sha: head(repo) });
  });

  test('names no commit for a branch that is a reference to another', async () => {
    const repo = repository();
    git(repo, ['symbolic-ref', 'refs/heads/alias', 'refs/heads/main']);
    writeFileSync(join(repo, '.git', 'HEAD'), 'ref: refs/heads/alias\n');

    expect(await readGitEvidence(repo)).toEqual({ branch: 'alias' });
  });

  test('tells a further worktree from the first one', async () => {
    const repo = repository();
    const tree = join(folder, 'tree');
    git(repo, ['worktree', 'add', '-q', '-b', 'side', tree]);
    const onSide = commit(tree, 'on the side');

    expect(await readGitEvidence(tree)).toEqual({ branch: 'side', commit_sha: onSide });
    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: head(repo) });
  });

  test('finds a repository kept elsewhere', async () => {
    const repo = repository('repo', '--separate-git-dir', join(folder, 'store.git'));

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: head(repo) });
  });

  test('reads a repository with SHA-256 ids', async () => {
    const repo = repository('repo', '--object-format=sha256');

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main', commit_sha: head(repo) });
    expect(head(repo)).toHaveLength(64);
  });

  test('is nothing where there is no repository', async () => {
    expect(await readGitEvidence(folder)).toBeUndefined();
    expect(await readGitEvidence(join(folder, 'absent'))).toBeUndefined();
  });
});

describe('a broken repository is no error', () => {
  const nothing: [string, (repo: string) => void][] = [
    [
      'an empty .git',
      (repo) => rmSync(join(repo, '.git'), { recursive: true }) ?? mkdirSync(join(repo, '.git')),
    ],
    ['an empty HEAD', (repo) => writeFileSync(join(repo, '.git', 'HEAD'), '')],
    [
      'a HEAD of noise',
      (repo) => writeFileSync(join(repo, '.git', 'HEAD'), Buffer.from([0, 255, 254, 10, 0])),
    ],
    ['a HEAD of 1 MB', (repo) => writeFileSync(join(repo, '.git', 'HEAD'), 'a'.repeat(1 << 20))],
    [
      'a HEAD that is a folder',
      (repo) => rmSync(join(repo, '.git', 'HEAD')) ?? mkdirSync(join(repo, '.git', 'HEAD')),
    ],
    [
      'a HEAD that is a pipe',
      (repo) => {
        rmSync(join(repo, '.git', 'HEAD'));
        makePipe(join(repo, '.git', 'HEAD'));
      },
    ],
    [
      'a name that climbs',
      (repo) => writeFileSync(join(repo, '.git', 'HEAD'), 'ref: refs/heads/../../../x\n'),
    ],
    ['a name from the root', (repo) => writeFileSync(join(repo, '.git', 'HEAD'), 'ref: /etc/hostname\n')],
    [
      'references in a table',
      (repo) => writeFileSync(join(repo, '.git', 'HEAD'), 'ref: refs/heads/.invalid\n'),
    ],
    ['a pointer to nowhere', (repo) => replaceGit(repo, 'gitdir: ../nowhere\n')],
    ['a pointer to another machine', (repo) => replaceGit(repo, 'gitdir: //host/share\n')],
    ['a pointer without a target', (repo) => replaceGit(repo, 'gitdir:\n')],
    ['a .git of noise', (repo) => replaceGit(repo, '\u0000\u0000')],
    [
      'a .git that is a pipe',
      (repo) => {
        rmSync(join(repo, '.git'), { recursive: true });
        makePipe(join(repo, '.git'));
      },
    ],
  ];

  function replaceGit(repo: string, text: string): void {
    rmSync(join(repo, '.git'), { recursive: true });
    writeFileSync(join(repo, '.git'), text);
  }

  test.each(nothing)('%s is no evidence', async (_, damage) => {
    const repo = repository();
    damage(repo);

    expect(await readGitEvidence(repo)).toBeUndefined();
  });

  test.each([
    ['noise', Buffer.alloc(200_000, 7)],
    ['one endless line', Buffer.alloc(200_000, 'a')],
    [
      'a sorted header and noise',
      Buffer.concat([Buffer.from('# pack-refs with: sorted \n'), Buffer.alloc(200_000, 'a')]),
    ],
    [
      'a sorted header and empty lines',
      Buffer.concat([Buffer.from('# pack-refs with: sorted \n'), Buffer.alloc(200_000, '\n')]),
    ],
    ['a header without an end', Buffer.from('# pack-refs with: sorted')],
    ['nothing', Buffer.alloc(0)],
  ])('packed references of %s leave the branch without a commit', async (_, bytes) => {
    const repo = repository();
    rmSync(join(repo, '.git', 'refs', 'heads', 'main'));
    writeFileSync(join(repo, '.git', 'packed-refs'), bytes);

    expect(await readGitEvidence(repo)).toEqual({ branch: 'main' });
  });
});

test('git is never started', () => {
  const sources = join(import.meta.dirname, '..', '..', 'integrations');
  for (const name of readdirSync(sources).filter((file) => file.startsWith('git'))) {
    expect(readFileSync(join(sources, name), 'utf8')).not.toContain('child_process');
  }
});

test('calls that ask in one turn share one look at the repository, and the next turn looks again', async () => {
  let looks = 0;
  const look = oncePerTurn(async () => {
    looks += 1;
    return looks;
  });

  const together = await Promise.all([look(), look(), look()]);
  const later = await look();

  expect(together).toEqual([1, 1, 1]);
  expect(later).toBe(2);
});

test('a file that was remembered is read again once it is another', async () => {
  const path = repository();
  // Only what was not changed in the last second is remembered.
  await sleep(1_100);
  const first = await readGitEvidence(path);
  const again = await readGitEvidence(path);

  const commit_sha = commit(path, 'second');
  const second = await readGitEvidence(path);
  git(path, ['checkout', '-q', '-b', 'other']);
  const other = await readGitEvidence(path);

  expect(again).toEqual(first);
  expect(first?.commit_sha).not.toBe(commit_sha);
  expect(second).toEqual({ branch: 'main', commit_sha });
  expect(other).toEqual({ branch: 'other', commit_sha });
});
