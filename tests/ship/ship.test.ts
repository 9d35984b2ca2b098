import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { install } from '../../bench/npm.mjs';
import { NODE } from '../driver/server-process.ts';

/*
 * What a stranger gets: the packed tarball, in an empty folder with an empty home. Its PATH holds node, npm, a shell and git and
 * nothing else, so there is no compiler. Packages come from the registry, so this is not part of `npm test`.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
  string,
  string
>;
const isAsked = process.env.COLIBRI_TEST_SHIP === '1';
const LONG_MS = 300_000;

describe.skipIf(!isAsked)('shipped (skipped: npm run test:ship needs the registry)', () => {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'colibri-ship-')));
  const [home, project, bin] = ['home', 'project', 'bin'].map((folder) => join(scratch, folder)) as [
    string,
    string,
    string,
  ];
  const env: Record<string, string> = { HOME: home, PATH: bin, TMPDIR: scratch };
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  beforeAll(() => {
    for (const folder of [home, project, bin]) mkdirSync(folder);
    for (const program of ['node', 'npm', 'npx', 'sh', 'env', 'git'])
      symlinkSync(found(program), join(bin, program));
    // An empty home has no settings of npm; where packages come from, and whom to trust there, is this
    // machine's own affair.
    env.npm_config_registry = spawnSync('npm', ['config', 'get', 'registry'], {
      encoding: 'utf8',
    }).stdout.trim();
    if (process.env.NODE_EXTRA_CA_CERTS !== undefined)
      env.NODE_EXTRA_CA_CERTS = process.env.NODE_EXTRA_CA_CERTS;
    env.npm_config_update_notifier = 'false';
    succeed('npm', ['pack', '--ignore-scripts', '--pack-destination', scratch], {
      cwd: ROOT,
      env: process.env,
    });
    succeed('npm', ['install', '--no-audit', '--no-fund', join(scratch, `${name}-${version}.tgz`)]);
  }, LONG_MS);

  test('installs few packages, and none that is bundled', () => {
    const lock = JSON.parse(readFileSync(join(project, 'node_modules', '.package-lock.json'), 'utf8')) as {
      packages: Record<string, unknown>;
    };

    const names = Object.keys(lock.packages).map((path) => path.replace('node_modules/', ''));
    expect(names).toEqual(expect.arrayContaining([name, '@photostructure/sqlite']));
    expect(names.length).toBeLessThanOrEqual(20);
    for (const bundled of ['zod', 'js-yaml', '@modelcontextprotocol/server'])
      expect(names).not.toContain(bundled);
  });

  test('the demo runs, each tampering is caught, and nothing is printed beside it', {
    timeout: LONG_MS,
  }, () => {
    const { stdout, stderr } = succeed('npx', ['--no-install', 'colibri', 'demo', '--json']);

    const { steps } = JSON.parse(stdout) as { steps: { fine: boolean }[] };
    expect(steps.filter(({ fine }) => !fine)).toEqual([]);
    expect(stderr.replaceAll(/^npm warn .*\n/gm, '')).toBe('');
  });

  test('init writes an entry that names the package, and says nothing of a checkout', () => {
    const { stdout } = succeed('npx', ['--no-install', 'colibri', 'init']);

    expect(stdout).not.toContain('only on this machine');
    expect(entry()).toEqual({
      ...{ command: 'npx', args: ['-y', 'colibri-mcp'] },
      env: { COLIBRI_AGENT_ID: 'claude-code' },
    });
  });

  const GENERATIONS = {
    'SDK 1': sdk1,
    'SDK 2, as it connects by itself': () => sdk2({}),
    'SDK 2, in the modern era': () => sdk2({ versionNegotiation: { mode: { pin: '2026-07-28' } } }),
  };

  test.each(Object.entries(GENERATIONS))(
    'a client of %s connects with the written entry and works one task to its seal',
    { timeout: LONG_MS },
    async (_, connect) => {
      const { call, close } = await connect();

      const { task_id } = await call('task_create', { title: 'Ship it', project: 'ship', proof_grade: true });
      const { session_id } = await call('audit_session_start', { task_id, auditor_id: 'a-person' });
      for (const status of ['todo', 'in_progress']) await call('task_update', { task_id, status });
      await call('thought_record', { task_id, type: 'decision', content: 'From the tarball alone.' });
      await call('task_update', { task_id, status: 'review' });
      const sealed = await call('merkle_finalize', { session_id });
      const done = await call('task_update', { task_id, status: 'done' });
      await close();

      expect(sealed.merkle_root).toMatch(/^[0-9a-f]{64}$/);
      expect(done.status).toBe('done');
    },
  );

  test('verify is clean, and so is the verifier in Python that came with the package', {
    timeout: LONG_MS,
  }, () => {
    const { stdout } = succeed('npx', ['--no-install', 'colibri', 'verify']);
    const script = join(project, 'node_modules', name ?? '', 'docs', 'verify-database.py');
    const python = spawnSync('python3', [script, join(project, '.colibri', 'colibri.db')], {
      encoding: 'utf8',
    });

    expect(stdout).toContain('Nothing is wrong.');
    expect([python.status, python.stderr]).toEqual([0, '']);
  });

  test('the hook of the plugin reminds an agent of what it holds', { timeout: LONG_MS }, async () => {
    const { call, close } = await sdk2({});
    const { task_id } = await call('task_create', { title: 'Left open', project: 'ship' });
    for (const status of ['todo', 'in_progress']) await call('task_update', { task_id, status });
    await close();
    const hooks = JSON.parse(readFileSync(join(ROOT, 'plugin', 'hooks', 'hooks.json'), 'utf8')) as {
      hooks: { Stop: { hooks: { command: string }[] }[] };
    };
    const command = hooks.hooks.Stop[0]?.hooks[0]?.command ?? '';
    const input = JSON.stringify({ hook_event_name: 'Stop', stop_hook_active: false });

    const { stdout } = succeed('sh', ['-c', command], { input });

    expect(JSON.parse(stdout)).toMatchObject({
      decision: 'block',
      reason: expect.stringContaining(String(task_id)),
    });
  });

  test('the MCPB bundle is valid, and starts from the folder that its own tool unpacks', {
    timeout: LONG_MS,
  }, async () => {
    const bundle = join(scratch, 'colibri.mcpb');
    const unpacked = join(scratch, 'unpacked');
    const mcpb = join(install('@anthropic-ai/mcpb', '2.1.2'), 'node_modules', '.bin', 'mcpb');
    succeed(process.execPath, [join(ROOT, 'scripts', 'mcpb.mjs'), bundle], { cwd: ROOT, env: process.env });

    succeed(mcpb, ['unpack', bundle, unpacked], { env: process.env });
    succeed(mcpb, ['validate', join(unpacked, 'manifest.json')], { env: process.env });
    const manifest = JSON.parse(readFileSync(join(unpacked, 'manifest.json'), 'utf8')) as {
      version: string;
      tools: { name: string }[];
      server: { mcp_config: { command: string; args: string[]; env: Record<string, string> } };
    };
    const config = manifest.server.mcp_config;
    const filled = (text: string) =>
      text.replace(`\${__dirname}`, unpacked).replace(`\${user_config.workspace}`, project);
    const client = new Client({ name: 'desktop', version: '1.0.0' });
    await client.connect(
      new StdioClientTransport({
        command: config.command,
        args: config.args.map(filled),
        env: {
          ...env,
          ...Object.fromEntries(Object.entries(config.env).map(([key, text]) => [key, filled(text)])),
        },
        cwd: '/',
        stderr: 'ignore',
      }),
    );
    const { tools } = await client.listTools();
    const { structuredContent } = await client.callTool({ name: 'task_list', arguments: {} });
    await client.close();

    expect(manifest.version).toBe(version);
    expect(tools.map((tool) => tool.name)).toEqual(manifest.tools.map((tool) => tool.name));
    expect(JSON.stringify(structuredContent)).toContain('Left open');
  });

  test('attw finds nothing wrong with the tarball', { timeout: LONG_MS }, () => {
    const attw = join(install('@arethetypeswrong/cli', '0.18.5'), 'node_modules', '.bin', 'attw');

    const { stdout } = succeed(attw, [join(scratch, `${name}-${version}.tgz`)], { env: process.env });

    expect(stdout).toContain('does not contain types');
  });

  const hasEngine = isAsked && spawnSync('docker', ['info']).status === 0;

  test.skipIf(!hasEngine)(
    'the container file builds (skipped without an engine)',
    { timeout: 1_200_000 },
    () => {
      succeed('docker', ['build', '-t', 'colibri-mcp-test', ROOT], { env: process.env });
      const { stdout } = succeed('docker', ['run', '--rm', 'colibri-mcp-test', '--version'], {
        env: process.env,
      });

      expect(stdout.trim()).toBe(version);
    },
  );

  test.each([
    ['linux', 'x64'],
    ['darwin', 'arm64'],
    ['win32', 'x64'],
  ])('S5: npm ci resolves every package from the lockfile for %s on %s', { timeout: LONG_MS }, (os, cpu) => {
    const clone = join(scratch, `clone-${os}`);
    mkdirSync(clone);
    for (const file of ['package.json', 'package-lock.json', '.npmrc'])
      copyFileSync(join(ROOT, file), join(clone, file));

    const { stdout } = succeed(
      'npm',
      ['ci', '--dry-run', '--ignore-scripts', '--loglevel=notice', `--os=${os}`, `--cpu=${cpu}`],
      {
        cwd: clone,
        env: process.env,
      },
    );

    expect(stdout).toContain(`add @esbuild/${os}-${cpu}`);
    expect(stdout).toContain(`add @biomejs/cli-${os}-${cpu}`);
  });

  test('uninstalled, it leaves what it said it would: the log and the keys', { timeout: LONG_MS }, () => {
    const { stdout } = succeed('npx', ['--no-install', 'colibri', 'init', '--remove']);
    succeed('npm', ['uninstall', name ?? '']);

    expect(stdout).toContain(
      `The log in ${join(project, '.colibri')} and the keys in ${join(home, '.config', 'colibri')} stay`,
    );
    // npm leaves its own two files, and its cache.
    expect(
      readdirSync(project)
        .filter((entry) => entry !== 'node_modules')
        .sort(),
    ).toEqual(['.colibri', 'package-lock.json', 'package.json']);
    expect(existsSync(join(project, 'node_modules', name ?? ''))).toBe(false);
    expect(readdirSync(home).filter((entry) => entry !== '.npm')).toEqual(['.config']);
    expect(readdirSync(join(home, '.config'))).toEqual(['colibri']);
  });

  function found(program: string): string {
    const folder = process.env.PATH?.split(delimiter).find((place) => existsSync(join(place, program)));
    if (program === 'node') return NODE;
    return realpathSync(join(folder ?? '', program));
  }

  function succeed(
    program: string,
    args: string[],
    options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
  ) {
    const done = spawnSync(program, args, { cwd: project, env, encoding: 'utf8', ...options });
    expect([program, ...args, done.status, done.status === 0 ? '' : done.stdout + done.stderr]).toEqual([
      ...[program, ...args],
      ...[0, ''],
    ]);
    return done;
  }

  function entry() {
    const file = readFileSync(join(project, '.mcp.json'), 'utf8');
    const { mcpServers } = JSON.parse(file) as {
      mcpServers: { colibri: { command: string; args: string[]; env: Record<string, string> } };
    };
    return mcpServers.colibri;
  }

  /** What a client starts, as it reads it from the file. */
  function written() {
    const { command, args, env: own } = entry();
    return { command, args, env: { ...env, ...own }, cwd: project, stderr: 'ignore' as const };
  }

  async function sdk2(options: ConstructorParameters<typeof Client>[1]) {
    const client = new Client({ name: 'sdk-2', version: '1.0.0' }, options);
    await client.connect(new StdioClientTransport(written()));
    return calling(client);
  }

  async function sdk1() {
    const folder = join(
      install('@modelcontextprotocol/sdk', '1.32.2'),
      'node_modules',
      '@modelcontextprotocol',
      'sdk',
    );
    const load = async (path: string) =>
      (await import(join(folder, 'dist', 'esm', 'client', path))) as unknown;
    const { Client: OldClient } = (await load('index.js')) as { Client: typeof Client };
    const { StdioClientTransport: OldTransport } = (await load('stdio.js')) as {
      StdioClientTransport: typeof StdioClientTransport;
    };
    const client = new OldClient({ name: 'sdk-1', version: '1.0.0' });
    await client.connect(new OldTransport(written()));
    return calling(client);
  }

  function calling(client: Client) {
    const call = async (tool: string, args: Record<string, unknown>) => {
      const { structuredContent } = await client.callTool({ name: tool, arguments: args });
      const { ok, data, error } = structuredContent as {
        ok: boolean;
        data: Record<string, unknown>;
        error?: unknown;
      };
      expect([tool, ok, data?.ok, error]).toEqual([tool, true, undefined, undefined]);
      return data;
    };
    return { call, close: () => client.close() };
  }
});
