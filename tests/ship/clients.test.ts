import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { install } from '../../bench/npm.mjs';

/*
 * The clients themselves read what `colibri init` wrote, and where they can without an account, start the server. They are a
 * gigabyte from the registry, so this is not part of any other run.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const isAsked = process.env.COLIBRI_TEST_CLIENTS === '1';

describe.skipIf(!isAsked)('real clients (skipped: npm run test:clients gets them from the registry)', () => {
  const scratch = isAsked ? realpathSync(mkdtempSync(join(tmpdir(), 'colibri-clients-'))) : '';
  const [home, project] = [join(scratch, 'home'), join(scratch, 'project')];
  const env = { PATH: process.env.PATH, HOME: home, TERM: 'dumb', NO_COLOR: '1' };
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  beforeAll(() => {
    for (const folder of [home, project, join(project, '.git'), join(home, '.codex'), join(home, '.gemini')])
      mkdirSync(folder, { recursive: true });
    run(process.execPath, [
      ...[join(ROOT, 'dist', 'cli.js'), 'init'],
      ...['--client', 'claude-code,codex,gemini-cli,opencode'],
    ]);
  });

  test('Codex lists it, as it is written', { timeout: 600_000 }, () => {
    writeFileSync(join(home, '.codex', 'config.toml'), `[projects."${project}"]\ntrust_level = "trusted"\n`);

    const { stdout } = client('@openai/codex', '0.166.0', 'codex', ['mcp', 'list', '--json']);

    expect(JSON.parse(stdout)).toMatchObject([
      {
        name: 'colibri',
        enabled: true,
        transport: { type: 'stdio', command: 'node', env: { COLIBRI_AGENT_ID: 'codex' } },
      },
    ]);
  });

  test('opencode starts it and connects', { timeout: 600_000 }, () => {
    const { stdout, stderr } = client('opencode-ai', '1.18.33', 'opencode', ['mcp', 'list']);

    expect(`${stdout}${stderr}`).toMatch(/✓\s+colibri\s.*connected/);
  });

  test('Gemini CLI starts it and connects', { timeout: 600_000 }, () => {
    writeFileSync(
      join(home, '.gemini', 'trustedFolders.json'),
      JSON.stringify({ [project]: 'TRUST_FOLDER' }),
    );

    const { stdout, stderr } = client('@google/gemini-cli', '0.61.0', 'gemini', ['mcp', 'list']);

    expect(`${stdout}${stderr}`).toMatch(/colibri: node .*server\.js \(stdio\) - Connected/);
  });

  test('Claude Code starts it and connects, and takes the plugin', { timeout: 600_000 }, () => {
    const projects = { [project]: { hasTrustDialogAccepted: true, enabledMcpjsonServers: ['colibri'] } };
    writeFileSync(join(home, '.claude.json'), JSON.stringify({ projects }));
    const claude = (...args: string[]) => client('@anthropic-ai/claude-code', '2.1.197', 'claude', args);

    const listed = claude('mcp', 'list').stdout;
    const checked = [join(ROOT, 'plugin'), ROOT].map((path) => claude('plugin', 'validate', path).stdout);

    expect(listed).toMatch(/colibri: node .*server\.js - ✔? ?.*Connected/);
    for (const said of checked) expect(said).toMatch(/Validation passed\s*$/);
  });

  function client(name: string, version: string, program: string, args: string[]) {
    return run(join(install(name, version), 'node_modules', '.bin', program), args);
  }

  function run(program: string, args: string[]) {
    return spawnSync(program, args, { cwd: project, env, encoding: 'utf8', timeout: 120_000 });
  }
});
