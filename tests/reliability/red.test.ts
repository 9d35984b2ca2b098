import { expect } from 'vitest';
import type { ServerProcess } from '../driver/server-process.ts';
import { figure } from '../driver/tier.ts';
import { battery } from './battery.ts';
import { breakServer } from './broken-server.ts';

/** Tests of the tests: each is red for a server that is broken on purpose. R4 and R15 have theirs beside them. */

const HELD_TIMER = new URL('held-timer.mjs', import.meta.url).href;
const TASK = { title: 'a task', project: 'demo' };

battery('R7', 'the check is red for a server that begins to write as a reader', async (colibri) => {
  const sound = await writeTogether(await fourOf(() => colibri.start()));
  const serverFile = breakServer(colibri, 'BEGIN IMMEDIATE', 'BEGIN');
  const env = { COLIBRI_DB_PATH: colibri.path('broken', 'colibri.db') };

  const broken = await writeTogether(await fourOf(() => colibri.start({ serverFile, env })));

  figure('R7', { control: 'plain BEGIN', calls: broken.length, errors: broken.filter(Boolean).length });
  expect(sound.filter(Boolean)).toEqual([]);
  expect(broken.filter(Boolean).length).toBeGreaterThan(0);
});

battery('R29', 'the check is red for a server that a timer keeps alive', async (colibri) => {
  const sound = await colibri.start();
  const held = await colibri.start({ env: { NODE_OPTIONS: `--import ${HELD_TIMER}` } });
  for (const server of [sound, held]) await server.call('server_ping');

  expect(await sound.closeInput()).toEqual({ code: 0, signal: null });
  const waiting = held.closeInput();
  await expect(held.waitForExit(1_500)).rejects.toThrow('did not end');
  held.kill('SIGKILL');

  expect((await waiting).signal).toBe('SIGKILL');
});

async function fourOf(start: () => Promise<ServerProcess>): Promise<ServerProcess[]> {
  const servers = [await start()];
  while (servers.length < 4) servers.push(await start());
  return servers;
}

/** What each of many writing calls of several servers was refused with, if it was. */
async function writeTogether(servers: readonly ServerProcess[]): Promise<(string | undefined)[]> {
  const lane = async (server: ServerProcess) => {
    const errors: (string | undefined)[] = [];
    for (let i = 0; i < 25; i += 1) errors.push((await server.call('task_create', TASK)).error?.code);
    return errors;
  };
  return (await Promise.all(servers.flatMap((server) => [lane(server), lane(server)]))).flat();
}
