import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CommandOptions, runColibri, StayingCommand } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';

let colibri: Playground;
let server: ServerProcess;

beforeEach(async () => {
  colibri = new Playground();
  server = await colibri.start({ clientName: 'ada' });
  await create('before');
});

afterEach(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

const create = (title: string) => server.call('task_create', { title, project: 'demo' });

/** Started and past its first look: what comes now is news. */
async function follow(args: readonly string[] = [], options: CommandOptions = {}): Promise<StayingCommand> {
  const command = new StayingCommand(colibri, ['log', '--follow', ...args], options);
  await command.printed('before');
  return command;
}

describe('log --follow', () => {
  test('tells each call that another process makes, once and in order', async () => {
    const command = await follow();

    await create('second');
    await server.call('task_update', { task_id: 'T-0002', status: 'done' });
    await create('last');
    await command.printed('last');

    expect(command.lines).toHaveLength(4);
    expect(command.lines[1]).toMatch(/ada .*created T-0002 second/);
    expect(command.lines[2]).toMatch(
      /refused with ERR_INVALID_TRANSITION: task_update T-0002 second: → done/,
    );
  });

  test('goes on when the server stops and another one starts', async () => {
    const command = await follow();

    await server.closeInput();
    server = await colibri.start({ clientName: 'bob' });
    await create('after the restart');
    await command.printed('after the restart');

    expect(command.lines.at(-1)).toMatch(/bob .*created T-0002/);
    expect(command.exit).toBeUndefined();
  });

  test('prints one object a line with --json', async () => {
    const command = await follow(['--json']);

    await create('news');
    await command.printed('news');

    const calls = command.lines.map((line) => JSON.parse(line) as { args: object; row: object });
    expect(calls[1]).toMatchObject({ args: { title: 'news' }, row: { tool: 'task_create', outcome: 'ok' } });
  });

  test('tells only of the task it was asked for, also one that comes later', async () => {
    const command = new StayingCommand(colibri, ['log', '--follow', '--task', 'T-0003']);
    await command.printed('Nothing matches.');

    await create('second');
    await create('third');
    await server.call('task_update', { task_id: 'T-0001', status: 'todo' });
    await server.call('task_update', { task_id: 'T-0003', status: 'todo' });
    await command.printed('moved T-0003');

    expect(command.lines).toHaveLength(3);
    expect(command.stdout).not.toMatch(/T-0001|T-0002/);
  });

  test('tells only of the session it was asked for', async () => {
    const command = new StayingCommand(colibri, ['log', '--follow', '--session', 'A-0001']);
    await command.printed('Nothing matches.');

    await create('second');
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve' });
    await server.call('thought_record', { task_id: 'T-0002', type: 'plan', content: 'elsewhere' });
    await server.call('task_update', { task_id: 'T-0002', status: 'todo' });
    await server.call('task_update', { task_id: 'T-0001', status: 'todo' });
    await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'in the session' });
    await command.printed('in the session');

    const shown = await runColibri(colibri, ['show', 'A-0001']);
    expect(command.lines.slice(1, 3)).toEqual([
      expect.stringContaining('session opened T-0001 before: A-0001'),
      expect.stringContaining('moved T-0001 before: backlog → todo'),
    ]);
    expect(command.stdout).not.toMatch(/elsewhere|T-0002/);
    expect(shown.stdout).toContain('moved T-0001 backlog → todo');
  });

  test('tells all of more calls than it reads at once', { timeout: 120_000 }, async () => {
    const command = await follow(['--all']);

    const pings = Array.from({ length: 700 }, () => server.call('server_ping'));
    await Promise.all(pings);
    await create('after the pings');
    await command.printed('after the pings');

    expect(command.lines.filter((line) => line.includes('server_ping'))).toHaveLength(700);
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends with exit 0 on %s and leaves nothing on stderr',
    async (signal) => {
      const command = await follow();

      expect(await command.ended(signal)).toEqual({ code: 0, signal: null });
      expect(command.stderr).toBe('');
    },
  );

  test('ends when its reader has left and there is something to say', async () => {
    const command = await follow();

    command.closeOutput();
    await create('unheard');

    expect(await command.ended()).toEqual({ code: 0, signal: null });
    expect(command.stderr).toBe('');
  });
});

test('a reader that leaves early changes no verdict and sees no stack', async () => {
  for (let i = 0; i < 3; i += 1) await create('more');
  const command = new StayingCommand(colibri, ['show', 'T-0001']);
  command.closeOutput();

  expect(await command.ended()).toEqual({ code: 0, signal: null });
  expect(command.stderr).toBe('');
  expect((await runColibri(colibri, ['verify'])).code).toBe(0);
});
