import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { timeStampAuthority } from '../../driver/anchor-places.ts';
import { runColibri } from '../../driver/command-line.ts';
import type { Playground } from '../../driver/playground.ts';
import { NODE } from '../../driver/server-process.ts';
import { proves } from '../proves.ts';

const CLI_FILE = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

/** What is at or below these paths and not 0600 or, for a folder, 0700. */
function open(colibri: Playground, ...paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const stat = statSync(path);
    const mode = stat.mode & 0o777;
    const inner = stat.isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [];
    const own =
      mode === (stat.isDirectory() ? 0o700 : 0o600)
        ? []
        : [`${relative(colibri.folder, path)} ${mode.toString(8)}`];
    return [...own, ...open(colibri, ...inner)];
  });
}

for (const umask of ['000', '777']) {
  proves(
    ['files.modes', 'files.private'],
    `H8: under umask ${umask}, whatever is made is for its owner alone`,
    async ({ colibri }) => {
      const [workspace, config] = [colibri.path('workspace'), colibri.path('new-config')];
      mkdirSync(join(workspace, '.git'), { recursive: true });
      mkdirSync(join(workspace, 'vault'));
      mkdirSync(join(workspace, 'tmp'), { mode: 0o700 });
      const env = {
        ...colibri.environment,
        ...{ COLIBRI_DB_PATH: '', CLAUDE_PROJECT_DIR: workspace, XDG_CONFIG_HOME: config },
        TMPDIR: join(workspace, 'tmp'),
      };
      const shell = ['-c', `umask ${umask}; exec "$@"`, 'sh', NODE, CLI_FILE];
      const run = (...args: string[]) => {
        const { status, stderr } = spawnSync('/bin/sh', [...shell, ...args], {
          cwd: workspace,
          env,
          encoding: 'utf8',
        });
        if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
      };
      const authority = timeStampAuthority(colibri, 'authority');
      const at = (name: string) => join(workspace, name);

      run('init');
      chmodSync(at('.mcp.json'), 0o640);
      writeFileSync(at('.mcp.json'), '{}');
      run('init');
      expect(statSync(at('.mcp.json')).mode & 0o777).toBe(0o640);
      rmSync(at('.mcp.json'));
      run('init');
      run('call', 'task_create', '{"title":"a","project":"p"}');
      run('anchor', '--file', at('checkpoint'));
      run('anchor', '--tsq', at('q.tsq'));
      authority.answer(at('q.tsq'), colibri.path('q.tsr'));
      run('anchor', '--tsr', colibri.path('q.tsr'), '--ca', authority.certificate);
      run('export', '-o', at('deep/bundle'));
      run('export', '-o', at('bundle.zip'));
      run('report', '-o', at('report.html'));
      run('prove', 'T-0001', '-o', at('proof.json'));
      run('obsidian', '--vault', at('vault'));
      run('demo');

      const made = [
        '.colibri',
        '.mcp.json',
        'checkpoint',
        'q.tsq',
        'deep',
        'bundle.zip',
        'report.html',
        'proof.json',
      ];
      expect(open(colibri, ...[...made, 'vault/Colibri', 'tmp'].map(at), config)).toEqual([]);
    },
  );
}

proves(
  'files.open-folder',
  'H8: a folder of ours that others can enter is reported and then closed; the user’s own is only reported',
  async ({ colibri }) => {
    const workspace = colibri.path('workspace');
    const [data, config] = [join(workspace, '.colibri'), colibri.path('config', 'colibri')];
    for (const folder of [data, config, join(workspace, 'shared')]) {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o777);
    }
    const inProject = { CLAUDE_PROJECT_DIR: workspace, COLIBRI_DB_PATH: '' };
    const inShared = { CLAUDE_PROJECT_DIR: workspace, COLIBRI_DB_PATH: 'shared/colibri.db' };
    const modeOf = (folder: string) => (statSync(folder).mode & 0o777).toString(8);

    const told = await runColibri(colibri, ['doctor'], { env: inProject });
    const server = await colibri.start({ env: inProject });
    await server.call('server_ping');
    await server.closeInput();
    const after = await runColibri(colibri, ['doctor'], { env: inProject });
    const shared = await colibri.start({ env: inShared });
    await shared.call('server_ping');
    await shared.closeInput();
    const user = await runColibri(colibri, ['doctor'], { env: inShared });

    expect([told.code, after.code, user.code]).toEqual([0, 0, 1]);
    for (const text of [told.stdout, server.stderr])
      for (const folder of [data, config]) expect(text).toContain(`${folder} is open to other users`);
    expect([modeOf(data), modeOf(config)]).toEqual(['700', '700']);
    expect(after.stdout).not.toContain('is open to other users');
    expect(modeOf(join(workspace, 'shared'))).toBe('777');
    for (const text of [shared.stderr, user.stdout])
      expect(text).toContain(`${join(workspace, 'shared')} is open to other users`);
  },
);

proves(
  'files.commands',
  'H8: a command that is recommended holds a path as one word, whatever the folder is called',
  async ({ colibri }) => {
    const workspace = colibri.path("it's; touch RAN #");
    const dbPath = join(workspace, 'colibri.db');
    mkdirSync(workspace);
    chmodSync(workspace, 0o777);
    spawnSync('git', ['init', '-q', workspace]);
    const env = { CLAUDE_PROJECT_DIR: workspace, COLIBRI_DB_PATH: dbPath };
    const run = async (...args: string[]) => {
      const { stdout, stderr } = await runColibri(colibri, args, { env });
      return `${stdout}${stderr}`;
    };
    const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`;

    const server = await colibri.start({ env });
    await server.call('task_create', { title: 'a', project: 'p' });
    await server.closeInput();
    const asked = await run('anchor', '--tsq', join(workspace, 'q.tsq'));
    const exported = await run('export', '-o', join(workspace, 'bundle'));
    chmodSync(dbPath, 0o644);
    const doctor = await run('doctor');
    if (process.getuid?.() === 0) {
      chownSync(join(workspace, '.git'), 4711, 4711);
      expect(await run('verify')).toContain(`safe.directory ${quoted(workspace)}`);
      chownSync(join(workspace, '.git'), 0, 0);
    }

    expect(server.stderr).toContain(`run chmod 700 ${quoted(workspace)}`);
    expect(asked).toContain(`--data-binary ${quoted(`@${join(workspace, 'q.tsq')}`)} URL`);
    expect(exported).toContain(`colibri verify ${quoted(join(workspace, 'bundle'))}`);
    expect(doctor).toContain(`chmod 700 ${quoted(workspace)}`);
    expect(doctor).toContain(`chmod 600 ${quoted(dbPath)}`);
  },
);

proves(
  'files.home',
  'H8: with an empty or a relative HOME, the key goes to the home on record, and without one nothing starts',
  async ({ colibri }) => {
    const [workspace, home] = [colibri.path('workspace'), colibri.path('home')];
    const begin = async (HOME: string, userInfo: string) => {
      rmSync(workspace, { recursive: true, force: true });
      mkdirSync(workspace);
      // What the system has on record is not the test's to change: the answer is, in this process alone.
      writeFileSync(
        colibri.path('record.cjs'),
        `require('node:os').userInfo = () => (${userInfo});\nrequire('node:module').syncBuiltinESMExports();\n`,
      );
      const own = {
        HOME,
        CLAUDE_PROJECT_DIR: workspace,
        NODE_OPTIONS: `--require ${colibri.path('record.cjs')}`,
      };
      const none = { XDG_CONFIG_HOME: undefined, XDG_DATA_HOME: undefined, COLIBRI_DB_PATH: undefined };
      return colibri.spawn({ folder: workspace, env: { ...own, ...none } });
    };

    for (const HOME of ['', 'home', './', ...(existsSync('/proc/self/cwd') ? ['/proc/self/cwd'] : [])]) {
      rmSync(home, { recursive: true });
      mkdirSync(home);
      const server = await begin(HOME, JSON.stringify({ homedir: home }));
      await server.initialize();
      await server.call('task_create', { title: 'a', project: 'p' });
      await server.closeInput();

      expect([HOME, readdirSync(workspace)]).toEqual([HOME, ['.colibri']]);
      expect(readdirSync(join(workspace, '.colibri')).sort()).toEqual(['.gitignore', 'colibri.db']);
      expect(readdirSync(join(home, '.config', 'colibri', 'logs'))).toHaveLength(1);
    }
    for (const nobody of ['{ homedir: "" }', '(() => { throw new Error("ENOENT") })()']) {
      const server = await begin('home', nobody);
      const { code } = await server.exited;

      expect(code).toBe(1);
      expect(server.stderr).toContain('HOME is "home"; allowed: an absolute path.');
      expect(readdirSync(workspace)).toEqual([]);
    }
    const server = await begin('/dev/null', '{ homedir: "" }');
    await server.initialize();
    const made = await server.call('task_create', { title: 'a', project: 'p' });
    const { code } = await server.closeInput();

    expect([made.envelope?.ok, code]).toEqual([true, 0]);
    expect(server.stderr).toContain('nothing is signed: The key folder cannot be used (ENOTDIR');
  },
);
