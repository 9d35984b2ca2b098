import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';

// A3: agents that work in git worktrees share one backlog. All of it with real git.

const GIT = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ALLOW_PROTOCOL: 'file',
  ...Object.fromEntries(['AUTHOR', 'COMMITTER'].map((who) => [`GIT_${who}_NAME`, 'a'])),
  ...Object.fromEntries(['AUTHOR', 'COMMITTER'].map((who) => [`GIT_${who}_EMAIL`, 'a@example.org'])),
};

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, env: GIT, encoding: 'utf8', stdio: 'pipe' }).trim();
}

/** A repository with one commit, in which there is a folder `sub`. */
function repository(path: string): string {
  mkdirSync(join(path, 'sub'), { recursive: true });
  git(path, 'init', '-q', '-b', 'main');
  writeFileSync(join(path, 'sub', 'file'), 'x');
  git(path, 'add', '.');
  git(path, 'commit', '-qm', 'first');
  return path;
}

async function playing(play: (colibri: Playground, main: string) => Promise<void>): Promise<void> {
  const colibri = new Playground();
  try {
    await play(colibri, repository(colibri.path('main')));
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
}

/** What doctor says of the database that is used in a folder. */
async function database(colibri: Playground, cwd: string) {
  const env = { COLIBRI_DB_PATH: '' };
  const { stdout } = await runColibri(colibri, ['doctor', '--json'], { cwd, env });
  const checks = JSON.parse(stdout) as { what: string; state: string; found: string }[];
  const found = checks.find(({ what }) => what === 'database');
  if (found === undefined) throw new Error(stdout);
  return { ...found, path: found.found.split(' (')[0] };
}

const pathIn = (folder: string) => join(realpathSync(folder), '.colibri', 'colibri.db');

proves(
  'workspace.worktree',
  'agents in worktrees share the backlog of the main worktree, each with its own branch as evidence',
  async ({ colibri }) => {
    const main = repository(colibri.path('main'));
    const folders = [main, colibri.path('a'), colibri.path('b')] as const;
    for (const folder of folders.slice(1)) git(main, 'worktree', 'add', '-q', folder);
    const env = { COLIBRI_DB_PATH: undefined };
    const servers = await Promise.all(folders.map((folder) => colibri.start({ folder, env })));
    const [inMain, inA, inB] = servers;

    await inA?.call('task_create', { title: 'made in a', project: 'demo' });
    await inMain?.call('task_create', { title: 'made in main', project: 'demo' });
    const list = await inB?.call('task_list', { project: 'demo' });
    const branches = [];
    for (const server of servers) {
      await server.call('thought_record', { task_id: 'T-0001', type: 'decision', content: 'why' });
      const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });
      const listed = envelope?.data as { thoughts?: { branch?: string }[] } | undefined;
      branches.push(listed?.thoughts?.at(-1)?.branch);
    }
    const health = await inB?.call('server_health');

    expect(list?.envelope?.data).toMatchObject({ total_count: 2 });
    expect(branches).toEqual(['main', 'a', 'b']);
    expect(health?.envelope?.data).toMatchObject({ status: 'ok', db: { path: pathIn(main) } });
    expect(folders.map((folder) => existsSync(join(folder, '.colibri')))).toEqual([true, false, false]);
    expect(await database(colibri, folders[1])).toMatchObject({
      state: 'ok',
      path: pathIn(main),
      found: expect.stringContaining('this is a git worktree'),
    });
  },
);

describe('which database is used, and doctor says why', () => {
  test('in the main worktree, its own', () =>
    playing(async (colibri, main) => {
      const { path, found } = await database(colibri, main);

      expect(path).toBe(pathIn(main));
      expect(found).toContain('(the default in the workspace)');
    }));

  test('where COLIBRI_DB_PATH names one, that one, in a worktree too', () =>
    playing(async (colibri, main) => {
      const folder = colibri.path('a');
      git(main, 'worktree', 'add', '-q', folder);
      const env = { COLIBRI_DB_PATH: 'mine.db' };
      const { stdout } = await runColibri(colibri, ['doctor'], { cwd: folder, env });

      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
        `${join(realpathSync(folder), 'mine.db')} (COLIBRI_DB_PATH names it)`,
      );
    }));

  test('in a worktree with relative paths, and in a folder of one, what corresponds in the main worktree', () =>
    playing(async (colibri, main) => {
      const folder = colibri.path('a');
      git(main, 'worktree', 'add', '-q', folder);
      // As `worktree.useRelativePaths` writes it.
      writeFileSync(join(folder, '.git'), 'gitdir: ../main/.git/worktrees/a\n');
      writeFileSync(join(main, '.git', 'worktrees', 'a', 'gitdir'), '../../../../a/.git\n');
      mkdirSync(join(folder, 'sub', '.colibri'));

      expect((await database(colibri, folder)).path).toBe(pathIn(main));
      expect((await database(colibri, join(folder, 'sub'))).path).toBe(pathIn(join(main, 'sub')));
    }));

  test('in worktrees of a bare repository, that of the repository', () =>
    playing(async (colibri, main) => {
      const bare = colibri.path('project', '.bare');
      git(colibri.folder, 'clone', '-q', '--bare', main, bare);
      for (const name of ['one', 'two']) git(bare, 'worktree', 'add', '-q', colibri.path('project', name));

      const paths = [];
      for (const name of ['one', 'two'])
        paths.push((await database(colibri, colibri.path('project', name))).path);

      expect(paths).toEqual([pathIn(bare), pathIn(bare)]);
    }));

  test('in a submodule, its own; in a worktree of a submodule, that of the submodule', () =>
    playing(async (colibri, main) => {
      const around = repository(colibri.path('around'));
      git(around, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', main, 'part');
      const submodule = join(around, 'part');
      git(submodule, 'worktree', 'add', '-q', colibri.path('a'));

      expect((await database(colibri, submodule)).path).toBe(pathIn(submodule));
      expect((await database(colibri, colibri.path('a'))).path).toBe(pathIn(submodule));
    }));

  test('where the main worktree was moved, none is created until git is repaired', () =>
    playing(async (colibri, main) => {
      const [folder, moved] = [colibri.path('a'), colibri.path('moved')];
      git(main, 'worktree', 'add', '-q', folder);
      const env = { COLIBRI_DB_PATH: undefined };
      const before = await colibri.start({ folder, env });
      await before.call('task_create', { title: 'before', project: 'demo' });
      await before.closeInput();
      renameSync(main, moved);

      const server = await colibri.start({ folder, env });
      const refused = await server.call('task_list', {});
      const said = await database(colibri, folder);
      await server.closeInput();
      git(moved, 'worktree', 'repair', folder);
      const after = await colibri.start({ folder, env });
      const found = await after.call('task_list', {});

      expect(refused.envelope).toMatchObject({
        ok: false,
        error: { message: expect.stringMatching(/ERR_INIT_FAILED.*git worktree repair/s) },
      });
      expect(said).toMatchObject({ state: 'wrong', found: expect.stringContaining('git worktree repair') });
      expect([existsSync(join(folder, '.colibri')), existsSync(main)]).toEqual([false, false]);
      expect(found.envelope?.data).toMatchObject({ total_count: 1 });
    }));

  test('where the worktree itself was moved, none is created until git is repaired', () =>
    playing(async (colibri, main) => {
      const [folder, moved] = [colibri.path('a'), colibri.path('b')];
      git(main, 'worktree', 'add', '-q', folder);
      renameSync(folder, moved);

      const said = await database(colibri, moved);
      git(moved, 'worktree', 'repair');
      const repaired = await database(colibri, moved);

      expect(said).toMatchObject({ state: 'wrong', found: expect.stringContaining('git worktree repair') });
      expect(repaired.path).toBe(pathIn(main));
    }));

  test('a database that a worktree already had is named as not used', () =>
    playing(async (colibri, main) => {
      const folder = colibri.path('a');
      git(main, 'worktree', 'add', '-q', folder);
      mkdirSync(join(folder, '.colibri'));
      writeFileSync(join(folder, '.colibri', 'colibri.db'), '');

      const { path, found } = await database(colibri, folder);

      expect(path).toBe(pathIn(main));
      expect(found).toContain(`${pathIn(folder)} is not used`);
    }));
});

describe('a folder that only says it is a worktree gets a database of its own', () => {
  test.each<[string, (own: string, main: string) => void]>([
    ['a copy of a worktree', (own) => cpSync(join(own, '..', 'a'), own, { recursive: true })],
    [
      'another worktree’s entry',
      (own, main) => writeFileSync(join(own, '.git'), `gitdir: ${main}/.git/worktrees/a\n`),
    ],
    ['a whole repository', (own, main) => writeFileSync(join(own, '.git'), `gitdir: ${main}/.git\n`)],
    ['a share', (own) => writeFileSync(join(own, '.git'), 'gitdir: //host/share/.git/worktrees/a\n')],
    [
      'a pipe',
      (own) => {
        execFileSync('mkfifo', [join(own, '.git')]);
      },
    ],
    [
      'a link to a worktree’s file',
      (own, main) => symlinkSync(join(main, '..', 'a', '.git'), join(own, '.git')),
    ],
    [
      'an entry of its own making, in a repository that it does not belong to',
      (own, main) => {
        const entry = join(own, 'x', 'worktrees', 'own');
        mkdirSync(entry, { recursive: true });
        writeFileSync(join(own, '.git'), `gitdir: ${entry}\n`);
        writeFileSync(join(entry, 'gitdir'), `${own}/.git\n`);
        writeFileSync(join(entry, 'commondir'), `${main}/.git\n`);
      },
    ],
    [
      'an entry behind a link',
      (own, main) => {
        mkdirSync(join(own, 'x', 'worktrees', 'own'), { recursive: true });
        symlinkSync(join(main, '.git', 'worktrees', 'a'), join(own, 'x', 'worktrees', 'a'));
        writeFileSync(join(own, '.git'), `gitdir: ${own}/x/worktrees/a\n`);
      },
    ],
    [
      'a repository that claims another’s folder as its main worktree',
      (own, main) => {
        const entry = join(own, 'x', 'worktrees', 'own');
        mkdirSync(entry, { recursive: true });
        writeFileSync(join(own, '.git'), `gitdir: ${entry}\n`);
        writeFileSync(join(entry, 'gitdir'), `${own}/.git\n`);
        writeFileSync(join(entry, 'commondir'), '../..\n');
        writeFileSync(join(own, 'x', 'config'), `[core]\n\tbare = false\n\tworktree = ${main}\n`);
      },
    ],
  ])('%s', (_, make) =>
    playing(async (colibri, main) => {
      const own = colibri.path('own');
      git(main, 'worktree', 'add', '-q', colibri.path('a'));
      mkdirSync(own);
      make(own, main);

      const { path } = await database(colibri, own);

      expect(path?.startsWith(`${realpathSync(own)}/`)).toBe(true);
    }),
  );

  test('a folder that is a link in the main worktree leads nowhere', () =>
    playing(async (colibri, main) => {
      mkdirSync(colibri.path('elsewhere'));
      git(main, 'worktree', 'add', '-q', colibri.path('a'));
      symlinkSync(colibri.path('elsewhere'), join(main, 'led'));
      mkdirSync(colibri.path('a', 'led', '.colibri'), { recursive: true });

      expect((await database(colibri, colibri.path('a', 'led'))).path).toBe(pathIn(colibri.path('a', 'led')));
    }));
});
