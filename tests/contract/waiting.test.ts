import { expect } from 'vitest';
import { startColibri } from '../driver/command-line.ts';
import type { Playground } from '../driver/playground.ts';
import { NODE, SERVER_FILE, sleepMs } from '../driver/server-process.ts';
import { toolsMissing } from '../driver/surface.ts';
import { gone, startClient } from '../driver/wrapped-client.ts';
import { type HeldLock, holdWriteLock, lockNewFile, lockWholeFile } from '../driver/write-lock.ts';
import { proves } from './proves.ts';

// What can only be seen by waiting for it, side by side: together they take as long as the longest.

const noTasks = await toolsMissing('task_create');

const TASK = { title: 'a task', project: 'demo' };
const CLEAN = { code: 0, signal: null };
const GONE_MS_MAX = 10_000;

const LOCKED: readonly (readonly [what: string, hold: (colibri: Playground) => HeldLock, isNew?: 'new'])[] = [
  ['a new file', lockNewFile, 'new'],
  ['a file that another process has for itself', lockWholeFile],
];

for (const [what, hold, isNew] of LOCKED)
  proves(
    ['boot.degraded', 'boot.locked', 'processes.stuck'],
    `H8: a start on ${what} that stays locked degrades the server, which answers and serves as soon as the lock is free`,
    async ({ colibri }) => {
      if (isNew === undefined) await usedOnce(colibri);
      const lock = hold(colibri);
      const server = await colibri.start();

      const degraded = await server.call('server_health');
      const refused = await server.call('task_create', TASK);
      lock.release();
      await server.stderrHolds('the database is free');
      const health = await server.call('server_health');
      const made = await server.call('task_create', TASK);

      expect(degraded.envelope?.data).toMatchObject({
        status: 'degraded',
        db: { reason: expect.stringMatching(/locked.*keeps trying/) },
      });
      expect(refused.error?.message).toMatch(/^ERR_INIT_FAILED: .*locked/);
      expect(health.envelope?.data).toMatchObject({ status: 'ok', db: { open: true } });
      expect(made.error).toBeUndefined();
      expect(colibri.readAudit().findings).toEqual([]);
    },
    { concurrent: true },
  );

proves(
  'boot.locked',
  'H8: a server that waits for a locked file ends with its client',
  async ({ colibri }) => {
    lockNewFile(colibri);
    const server = await colibri.start();
    await server.call('server_health');

    expect(await server.closeInput()).toEqual(CLEAN);
  },
  { concurrent: true },
);

proves(
  'verdict.locked',
  'H8: verify of a locked file says that it is locked, not that it is damaged',
  async ({ colibri }) => {
    await usedOnce(colibri);
    const lock = lockWholeFile(colibri);

    const locked = await startColibri(colibri, ['verify']);
    lock.release();
    const free = await startColibri(colibri, ['verify']);

    expect(locked.code).toBe(1);
    expect(locked.stderr).toMatch(/is locked by another process and was not verified/);
    expect(locked.stdout).toBe('');
    expect(free).toMatchObject({ code: 0, stderr: '' });
  },
  { concurrent: true },
);

proves(
  ['processes.stuck', 'exit.failure-of-read', 'envelope.pattern-b'],
  'R10: a lock held for more than 10 s is ERR_STORAGE_BUSY to a writer, not before, and is over when it is released',
  async ({ colibri }) => {
    const [writing, reading] = [await colibri.start(), await colibri.start()];
    await Promise.all([writing.call('server_ping'), reading.call('server_ping')]);
    const lock = holdWriteLock(colibri);
    const began = performance.now();

    const [write, read] = await Promise.all([
      writing.call('task_create', { title: 'a', project: 'demo' }),
      reading.call('server_ping'),
    ]);
    const waited = performance.now() - began;
    lock.release();

    expect(write.envelope).toMatchObject({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_STORAGE_BUSY: /) },
    });
    expect(waited).toBeGreaterThan(9_500);
    expect(read.envelope?.ok).toBe(true);
    await reading.stderrHolds('could not be recorded');
    expect((await writing.call('task_create', { title: 'b', project: 'demo' })).envelope?.data).toMatchObject(
      { task_id: 'T-0001' },
    );
    expect(colibri.readAudit().findings).toEqual([]);
  },
  { unless: noTasks, concurrent: true },
);

proves(
  'stop.bounded',
  'a call that does not end holds up a stop for 5 s at most',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    holdWriteLock(colibri);
    const call = server.call('server_ping').then(String, String);
    // Answered behind it, so the server has the call.
    await server.request('tools/list');

    server.kill('SIGTERM');
    const exit = await server.waitForExit(30_000);

    expect(exit).toEqual(CLEAN);
    // It would have been answered once the wait for the lock had ended, which lasts twice as long.
    expect(await call).toContain('server ended (0) before answering');
  },
  { concurrent: true },
);

proves(
  'stop.no-orphan',
  'R31: a wrapper that is killed takes the server with it, though the client lives',
  async ({ colibri }) => {
    const client = await startClient(colibri, ['/bin/sh', '-c', '"$@"; exit $?', 'sh', NODE, SERVER_FILE]);

    process.kill(client.childPid, 'SIGKILL');

    await gone(client.serverPid, GONE_MS_MAX);
  },
  { concurrent: true },
);

proves(
  ['stop.end-of-input', 'stop.bounded'],
  'a client that closes its end with megabytes unread does not keep the server',
  async ({ colibri }) => {
    const server = await colibri.start();
    server.pauseReading();
    for (let i = 0; i < 3_000; i += 1) server.request('tools/list').catch(() => undefined);
    await sleepMs(2_500);

    const exit = await server.closeInput();

    expect(exit).toEqual(CLEAN);
  },
  { concurrent: true },
);

async function usedOnce(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.call('task_create', TASK);
  await server.closeInput();
}
