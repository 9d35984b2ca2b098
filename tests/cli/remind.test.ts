import { existsSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';

let colibri: Playground;
beforeEach(() => {
  colibri = new Playground();
});
afterEach(() => colibri.dispose());

const remind = (input: object | string, ...args: string[]) =>
  runColibri(colibri, ['remind', ...args], {
    input: typeof input === 'string' ? input : JSON.stringify({ hook_event_name: 'Stop', ...input }),
  });

test('an agent that holds a task is told once at the end of its turn; nobody else is', async () => {
  const server = await colibri.start({ clientName: 'claude-code' });
  await server.call('task_create', { title: 'Ship "it" \u202e', project: 'p' });
  for (const status of ['todo', 'in_progress'])
    await server.call('task_update', { task_id: 'T-0001', status });

  const told = await remind({ stop_hook_active: false }, '--agent', 'claude-code');
  const again = await remind({ stop_hook_active: true }, '--agent', 'claude-code');
  const other = await remind({ stop_hook_active: false }, '--agent', 'codex');
  await server.call('task_update', {
    task_id: 'T-0001',
    status: 'blocked',
    blocked_reason: 'Waits for an answer.',
  });
  const blocked = await remind('not JSON', '--agent', 'claude-code');

  expect(told.code).toBe(0);
  expect(JSON.parse(told.stdout)).toEqual({
    decision: 'block',
    reason: expect.stringMatching(
      /^You still hold T-0001 "Ship "it" \u202e" \(in_progress since .*blocked_reason/,
    ),
  });
  for (const silent of [again, other, blocked]) expect(silent).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('without a database it says nothing and makes none, and what goes wrong never keeps an agent from stopping', async () => {
  const none = await remind({});
  const isMade = existsSync(colibri.dbPath);
  writeFileSync(colibri.path('notes.txt'), 'these are notes');
  const wrong = await runColibri(colibri, ['remind'], {
    env: { COLIBRI_DB_PATH: colibri.path('notes.txt') },
  });
  const unset = await runColibri(colibri, ['remind'], { env: { COLIBRI_LOG_LEVEL: 'loud' } });

  expect([none, isMade]).toEqual([{ code: 0, stdout: '', stderr: '' }, false]);
  // A client reads exit code 2 as a reason to go on.
  expect([wrong.code, wrong.stdout, unset.code, unset.stdout]).toEqual([1, '', 1, '']);
});
