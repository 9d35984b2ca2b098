import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import type { Playground } from '../driver/playground.ts';
import { rowsAt } from '../driver/postgres.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { FOURTEEN, listedTools, toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_get');
const incomplete = await toolsMissing(...FOURTEEN);

const TASK = { title: 'a task', project: 'demo' };
const MUTATING = ['audit_session_start', 'merkle_finalize', 'task_create', 'task_update', 'thought_record'];

proves(
  ['modes.full', 'modes.list'],
  'FULL lists every tool and keeps its records in the file',
  async ({ colibri }) => {
    const server = await inMode(colibri, 'FULL');

    await server.call('task_create', TASK);

    expect(await names(server)).toEqual([...FOURTEEN].sort());
    expect(colibri.readAudit().rows).toHaveLength(2);
  },
  { unless: incomplete },
);

proves(
  ['modes.readonly', 'modes.list'],
  'READONLY lists the tools that do not mutate and still records calls',
  async ({ colibri }) => {
    await (await inMode(colibri, 'FULL')).call('task_create', TASK);
    const server = await inMode(colibri, 'READONLY');

    const { envelope } = await server.call('task_get', { task_id: 'T-0001' });

    expect(envelope?.data).toMatchObject({ title: 'a task' });
    expect((await names(server)).filter((name) => MUTATING.includes(name))).toEqual([]);
    expect(await names(server)).toEqual(expect.arrayContaining(['server_ping', 'task_get', 'task_list']));
    expect(colibri.readAudit().rows.slice(2)).toMatchObject([
      { tool: 'task_get' },
      { tool: 'task_get', outcome: 'ok' },
    ]);
  },
  { unless: noTasks },
);

proves(
  ['modes.test', 'modes.list'],
  'TEST serves every tool and leaves nothing on the disk',
  async ({ colibri }) => {
    const server = await inMode(colibri, 'TEST');

    await server.call('task_create', TASK);
    const { envelope } = await server.call('task_get', { task_id: 'T-0001' });
    const whileRunning = everythingIn(colibri);
    await server.closeInput();

    expect(envelope?.data).toMatchObject({ title: 'a task' });
    expect(await namesIn(colibri, 'TEST')).toEqual(await namesIn(colibri, 'FULL'));
    expect(whileRunning).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  ['modes.minimal', 'modes.list'],
  'MINIMAL lists ping and health, opens no file and audits to the log',
  async ({ colibri }) => {
    const server = await inMode(colibri, 'MINIMAL');

    const ping = await server.call('server_ping');
    const health = await server.call('server_health');
    await server.call('nowhere', { secret: 'hidden' });
    await server.closeInput();

    expect(ping.envelope?.data).toMatchObject({ mode: 'MINIMAL' });
    expect(health.envelope?.data).toMatchObject({ status: 'ok', db: { open: false } });
    expect(await namesIn(colibri, 'MINIMAL')).toEqual(['server_health', 'server_ping']);
    expect(everythingIn(colibri)).toEqual([]);
    expect(server.stderr).toMatch(/server_ping.*ok.*server_health.*ok.*nowhere.*rejected/s);
    expect(server.stderr).not.toContain('hidden');
  },
);

proves(
  ['modes.denied', 'envelope.pattern-a', 'log.outcomes'],
  'a tool that READONLY does not admit is denied, and that is recorded',
  async ({ colibri }) => {
    const server = await inMode(colibri, 'READONLY');

    const { envelope, isError } = await server.call('task_create', TASK);

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({
      ok: false,
      error: {
        code: 'HANDLER_ERROR',
        message: expect.stringMatching(/^TOOL_NOT_ADMITTED: .*READONLY.*FULL/s),
      },
    });
    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toMatchObject([
      { stage: 'enter', tool: 'task_create', schema_valid: true, outcome: 'running' },
      { stage: 'exit', tool: 'task_create', outcome: 'denied', error_code: 'TOOL_NOT_ADMITTED', effects: [] },
    ]);
  },
  { unless: noTasks },
);

proves(
  'modes.denied',
  'a tool that MINIMAL does not admit is denied, and that is in the log',
  async ({ colibri }) => {
    const server = await inMode(colibri, 'MINIMAL');

    const { error, isError } = await server.call('task_get', { task_id: 'T-0001' });
    await server.closeInput();

    expect(isError).toBe(true);
    expect(error).toMatchObject({
      code: 'HANDLER_ERROR',
      message: expect.stringMatching(/^TOOL_NOT_ADMITTED: /),
    });
    expect(server.stderr).toMatch(/task_get.*denied/);
  },
  { unless: noTasks },
);

proves(
  'modes.fixed',
  'the mode a process reports never changes, and two modes share one file',
  async ({ colibri }) => {
    const [full, readonly] = [await inMode(colibri, 'FULL'), await inMode(colibri, 'READONLY')];

    for (let i = 0; i < 3; i += 1) {
      expect((await full.call('server_ping')).envelope?.data).toMatchObject({ mode: 'FULL' });
      expect((await readonly.call('server_health')).envelope?.data).toMatchObject({ mode: 'READONLY' });
    }
    expect(colibri.readAudit().findings).toEqual([]);
  },
);

async function inMode(colibri: Playground, mode: string): Promise<ServerProcess> {
  return await colibri.start({ env: { COLIBRI_MODE: mode } });
}

async function namesIn(colibri: Playground, mode: string): Promise<string[]> {
  return await names(await inMode(colibri, mode));
}

async function names(server: ServerProcess): Promise<string[]> {
  return listedTools(await server.request('tools/list'))
    .map((tool) => tool.name)
    .sort();
}

/** Every file the server could have made: in the workspace, the database's folder, the user's folders. */
function everythingIn(colibri: Playground): string[] {
  const found = readdirSync(colibri.folder, { recursive: true, withFileTypes: true });
  if (colibri.isOnFile) expect(existsSync(dirname(colibri.dbPath))).toBe(false);
  else expect(rowsAt(colibri.dbPath, "SELECT 1 FROM pg_namespace WHERE nspname = 'colibri'")).toEqual([]);
  return found.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
}
