import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { startColibri } from '../../driver/command-line.ts';
import type { Playground } from '../../driver/playground.ts';
import { NODE } from '../../driver/server-process.ts';
import { proves } from '../proves.ts';

// A build without node_modules, on a Node without SQLite: as after an install that left the package out.

const SENTENCE =
  /^There is no usable SQLite: Node [\d.]+ has no node:sqlite, and @photostructure\/sqlite is not installed\. Use Node 24\.19 or newer, or reinstall Colibri: [^\n]+ x64 and arm64\.$/;

/** What each command needs to get as far as the database. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  call: ['server_ping', '{}'],
  search: ['word'],
  add: ['title', '--project', 'demo'],
  move: ['T-0001', 'todo'],
  assign: ['T-0001', 'ada'],
  think: ['T-0001', 'why'],
  done: ['T-0001'],
  backup: ['copy.db'],
  transfer: ['--to', 'other.db'],
  show: ['T-0001'],
  anchor: ['--file', 'anchor.txt'],
  export: ['-o', 'bundle'],
  prove: ['T-0001', '-o', 'proof.json'],
  report: ['-o', 'report.html'],
  obsidian: ['--vault', 'vault'],
  erase: ['T-0001', '--reason', 'asked for', '--yes'],
  trust: ['1a2b3c4d'],
};

/** They have an answer of their own: two below, one needs no database, one serves, and one says nothing rather than disturb an agent. */
const OTHERWISE = ['completion', 'doctor', 'call', 'serve-mcp', 'remind'];

const { stdout: major } = spawnSync(NODE, ['-p', 'process.versions.node.split(".")[0]'], {
  encoding: 'utf8',
});
const withoutSqlite = Number(major) < 22 ? '' : '--no-experimental-sqlite';
const env = { NODE_OPTIONS: withoutSqlite };

proves(
  'runtime.no-sqlite',
  'S2: without a usable SQLite every command says so in one line, and says what to do',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping', {});
    await server.closeInput();
    const cliFile = bareBuild(colibri, 'cli.js');
    const project = colibri.path('project');
    mkdirSync(`${project}/.git`, { recursive: true });
    mkdirSync(`${project}/vault`);
    const options = { cliFile, cwd: project, env };

    const names = COMMANDS.map(({ name }) => name).filter((name) => !OTHERWISE.includes(name));
    const answers = await Promise.all(
      names.map((name) => startColibri(colibri, [name, ...(ARGUMENTS[name] ?? [])], options)),
    );
    for (const [i, { code, stdout, stderr }] of answers.entries()) {
      const name = names[i] ?? '';
      expect([name, code, stdout]).toEqual([name, 2, '']);
      expect(stderr.slice(`colibri ${name}: `.length).trimEnd(), name).toMatch(SENTENCE);
    }
    const called = await startColibri(colibri, ['call', 'task_list', '{}'], options);
    const doctor = await startColibri(colibri, ['doctor', '--json'], options);

    expect(called.code).toBe(1);
    expect(called.stdout).toMatch(/ERR_INIT_FAILED.*There is no usable SQLite/);
    expect(doctor.code).toBe(1);
    const wrong = (JSON.parse(doctor.stdout) as { state: string; what: string; found: string }[]).filter(
      ({ state }) => state === 'wrong',
    );
    expect(wrong).toEqual([expect.objectContaining({ what: 'runtime' })]);
    expect(wrong[0]?.found.replace(/^Node [\d.]+\. /, '')).toMatch(SENTENCE);
    expect(existsSync(`${project}/.mcp.json`)).toBe(false);
  },
);

proves(
  ['runtime.no-sqlite', 'boot.degraded', 'boot.degraded-tools'],
  'S2: a server without a usable SQLite stays up and gives the same sentence as the reason',
  async ({ colibri }) => {
    const server = await colibri.start({ serverFile: bareBuild(colibri, 'server.js'), env });

    const health = await server.call('server_health', {});
    const listed = await server.call('task_list', {});
    await server.closeInput();

    expect(health.envelope).toMatchObject({ data: { status: 'degraded' } });
    expect(JSON.stringify(health.envelope)).toContain('"There is no usable SQLite: ');
    expect(listed.envelope).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/^ERR_INIT_FAILED: .*There is no usable SQLite: /) },
    });
    expect(existsSync(colibri.dbPath)).toBe(false);
  },
);

/** A program of this build in a folder where no package can be found. */
function bareBuild(colibri: Playground, name: string): string {
  const folder = colibri.path('bare');
  for (const file of ['dist', 'package.json'])
    cpSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), `${folder}/${file}`, {
      recursive: true,
    });
  return `${folder}/dist/${name}`;
}
