import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import { Playground } from '../driver/playground.ts';

let colibri: Playground;

beforeEach(() => {
  colibri = new Playground();
});

afterEach(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

const run = (...args: string[]) => runColibri(colibri, args);

async function someWork(): Promise<void> {
  const server = await colibri.start({ clientName: 'ada' });
  await server.call('task_create', {
    title: 'Build \u202e the\u001b[31m thing',
    project: 'demo',
    priority: 'critical',
  });
  await server.call('task_update', { task_id: 'T-0001', status: 'todo' });
  await server.call('task_update', { task_id: 'T-0001', status: 'done' });
  await server.call('thought_record', { task_id: 'T-0001', type: 'decision', content: 'because it must be' });
  await server.call('task_create', { title: 'Piped', project: 'demo', workflow: 'pipeline' });
  await server.closeInput();
}

describe('the command line', () => {
  test('explains itself, each command with its options, and prints its version', async () => {
    const help = await run('--help');
    const version = await run('--version');

    expect(help.code).toBe(0);
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1] ?? '');
    expect(commands).toContain('board');
    for (const command of commands) {
      const own = await run(command, '--help');
      expect(own.code, command).toBe(0);
      expect(own.stdout, command).toContain(`usage: colibri ${command}`);
    }
    expect(version.stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test('a wrong word or option is exit 2 with what was meant', async () => {
    expect(await run('bord')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Did you mean board?'),
    });
    expect(await run('board', '--wide')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--wide'),
    });
    expect(await run('show')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('usage: colibri show ID'),
    });
    expect(await run('show', 'X-1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('T-0001 (task)'),
    });
  });

  test('without arguments and without a terminal it is the server', async () => {
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    };

    const { code, stdout } = await runColibri(colibri, [], { input: `${JSON.stringify(initialize)}\n` });

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'colibri' } } });
  });

  test('people’s commands create nothing where there is no database', async () => {
    for (const command of [['board'], ['log'], ['show', 'T-0001']]) {
      const { code, stderr } = await run(...command);
      expect(code).toBe(1);
      expect(stderr).toContain('There is no database at');
    }
    expect(existsSync(colibri.dbPath)).toBe(false);
  });
});

describe('colibri call', () => {
  test('goes through the chain and leaves its two rows, under the name that the user told git', async () => {
    writeFileSync(colibri.path('home', '.gitconfig'), '[user]\n\tname = robin\n');
    const made = await run('call', 'task_create', '{"title":"By hand","project":"demo"}');
    const refused = await run('call', 'task_update', '{"task_id":"T-0001","status":"done"}');
    const unknown = await run('call', 'task_destroy', '{}');

    expect(made.code).toBe(0);
    expect(JSON.parse(made.stdout)).toMatchObject({
      ok: true,
      data: { task_id: 'T-0001', created_by: 'robin' },
    });
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('ERR_INVALID_TRANSITION') });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('Unknown tool') });
    expect(colibri.readAudit().rows.map(({ tool, stage }) => `${tool} ${stage}`)).toEqual([
      'task_create enter',
      'task_create exit',
      'task_update enter',
      'task_update exit',
      'task_destroy enter',
      'task_destroy exit',
    ]);
  });
});

describe('board, log and show', () => {
  beforeEach(someWork);

  test('board draws the tasks by status and shows hostile titles as plain text', async () => {
    const { code, stdout } = await run('board');
    const data = JSON.parse((await run('board', '--json')).stdout) as { status: string; count: number }[];

    expect(code).toBe(0);
    expect(stdout).toContain('T-0001');
    expect(stdout).not.toContain('\u202e');
    expect(stdout).not.toContain('\u001b');
    expect(data.find((column) => column.status === 'todo')?.count).toBe(1);
  });

  test('log tells who did what and why, and what was refused', async () => {
    const { stdout } = await run('log');
    const only = await run('log', '--task', 'T-0002');

    expect(stdout).toMatch(/ada .*created T-0001/);
    expect(stdout).toMatch(/moved T-0001 Build .* thing: backlog → todo/);
    expect(stdout).toMatch(/refused with ERR_INVALID_TRANSITION: task_update T-0001 Build .* thing: → done/);
    expect(stdout).toContain('because it must be');
    expect(only.stdout).toContain('T-0002');
    expect(only.stdout).not.toContain('T-0001');
    await run('call', 'task_create', '{"titel":"x"}');
    expect((await run('log', '-n', '1')).stdout).toContain(
      'refused with INVALID_PARAMS: task_create (its arguments are kept only as a hash)',
    );
    expect((await run('log', '--since', 'yesterday-ish')).code).toBe(2);
    expect((await run('log', '--since', '2999-01-01')).stdout).toBe('Nothing matches.\n');
    expect((await run('log', '--task', 't-2')).stdout).toBe(only.stdout);
    expect(await run('log', '--task', 'A-0001')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('T-0001 (task)'),
    });
  });

  test('show gives a record, its history and how well it is proved, and exit 1 when it was changed', async () => {
    const task = await run('show', 'T-0001');
    const thought = await run('show', 'TH-0001', '--json');

    expect(task.code).toBe(0);
    expect(task.stdout).toContain('intact');
    expect(task.stdout).toContain('checkpointed');
    expect(JSON.parse(thought.stdout)).toMatchObject({
      id: 'Θ-0001',
      record: { content: 'because it must be' },
    });

    const db = openDatabase(colibri.dbPath);
    db.prepare("UPDATE tasks SET assignee = 'mallory' WHERE id = 1").run();
    db.close();
    expect(await run('show', 'T-0001')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('assignee was changed'),
    });
  });

  test('doctor finds nothing wrong here, and says what is wrong where something is', async () => {
    expect(await run('doctor')).toMatchObject({ code: 0 });

    const bad = await runColibri(colibri, ['doctor'], { env: { COLIBRI_MODE: 'LOUD' } });

    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain('COLIBRI_MODE is "LOUD"');
  });

  test('doctor says when the client’s file starts something that is not there', async () => {
    const workspace = colibri.path('project');
    mkdirSync(join(workspace, '.colibri'), { recursive: true });
    const started = join(workspace, 'gone', 'server.js');
    writeFileSync(
      join(workspace, '.mcp.json'),
      JSON.stringify({ mcpServers: { colibri: { command: 'node', args: [started] } } }),
    );

    const { code, stdout } = await runColibri(colibri, ['doctor'], { cwd: workspace });

    expect(code).toBe(1);
    expect(stdout).toContain(`.mcp.json starts ${started}, which does not exist`);
  });
});

describe('colibri init', () => {
  test('merges .mcp.json, keeps what was there, and changes nothing the second time', async () => {
    const workspace = colibri.path('project');
    mkdirSync(join(workspace, '.git'), { recursive: true });
    writeFileSync(
      join(workspace, '.mcp.json'),
      JSON.stringify({ mcpServers: { other: { command: 'x' } }, more: 1 }),
    );

    const first = await runColibri(colibri, ['init'], { cwd: workspace });
    const text = readFileSync(join(workspace, '.mcp.json'), 'utf8');
    const second = await runColibri(colibri, ['init'], { cwd: workspace });

    expect(first.code).toBe(0);
    expect(JSON.parse(text)).toMatchObject({
      more: 1,
      mcpServers: { other: { command: 'x' }, colibri: { command: 'node' } },
    });
    expect(readFileSync(join(workspace, '.colibri', '.gitignore'), 'utf8')).toBe('*\n');
    expect(second.stdout).toContain('already starts Colibri');
    expect(readFileSync(join(workspace, '.mcp.json'), 'utf8')).toBe(text);
  });
});
