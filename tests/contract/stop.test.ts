import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import type { ToolAnswer } from '../driver/message.ts';
import { Playground } from '../driver/playground.ts';
import { NODE, SERVER_FILE, type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { toolsMissing } from '../driver/surface.ts';
import { tier } from '../driver/tier.ts';
import { gone, startClient } from '../driver/wrapped-client.ts';
import { holdWriteLock } from '../driver/write-lock.ts';
import { proves } from './proves.ts';

const TIMES = tier(1, 20);

const noTasks = await toolsMissing('task_create');

const TASK = { title: 'a task', project: 'demo' };
const CLEAN = { code: 0, signal: null };
/** Far above what is promised, far below for ever: a loaded machine must not fail the test. */
const GONE_MS_MAX = 10_000;

proves(
  ['stop.end-of-input', 'stop.merged'],
  'R29: an idle server ends with its input, with 0, and leaves no write-ahead log',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');

    expect(await server.closeInput()).toEqual(CLEAN);
    expect(unmerged(colibri)).toEqual([]);
  },
);

proves('stop.end-of-input', 'a server nobody spoke to ends with its input', async ({ colibri }) => {
  const server = colibri.spawn();

  expect(await server.closeInput()).toEqual(CLEAN);
});

proves(
  ['stop.end-of-input', 'stop.merged'],
  `R29: a script may send fifty calls and close: all are answered and recorded (${TIMES} times)`,
  repeated(async (colibri) => {
    const server = colibri.spawn();
    const calls = Array.from({ length: 50 }, () => server.call('server_ping'));

    const { served, exit } = await closedIn(server, calls);

    expect(exit).toEqual(CLEAN);
    expect(unmerged(colibri)).toEqual([]);
    const { findings, rows } = served.length > 0 ? colibri.readAudit() : { findings: [], rows: [] };
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(2 * served.length);
  }),
);

proves(
  'stop.end-of-input',
  `R29: writing calls received before the end are answered, and what was answered is stored (${TIMES} times)`,
  repeated(async (colibri) => {
    const server = await colibri.start();
    const calls = Array.from({ length: 50 }, () => server.call('task_create', TASK));

    const { served, exit } = await closedIn(server, calls);

    expect(exit).toEqual(CLEAN);
    expect(new Set(served.map(({ envelope }) => envelope?.data?.task_id)).size).toBe(served.length);
    expect(colibri.readAudit().rows.filter((row) => row.outcome === 'ok')).toHaveLength(served.length);
  }),
  { unless: noTasks },
);

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  proves(
    ['stop.signal', 'stop.merged', 'stop.answered'],
    `R30: ${signal} under load: exit 0, every call received is answered once, all is recorded (${TIMES} times)`,
    repeated(async (colibri) => {
      const server = await colibri.start();
      await server.call('server_ping');
      const calls = Array.from({ length: 100 }, () => server.call('server_ping').catch(() => undefined));
      await calls[5];

      server.kill(signal);
      const exit = await server.waitForExit();
      const answered = (await Promise.all(calls)).filter((answer) => answer !== undefined);

      expect(exit).toEqual(CLEAN);
      const served = answered.filter(({ envelope }) => envelope?.ok).length;
      const refused = answered.filter(({ message }) => message.error?.code === -32000).length;
      expect(served).toBeGreaterThan(5);
      expect(served + refused).toBe(answered.length);
      expect(unmerged(colibri)).toEqual([]);
      const { findings, calls: recorded } = colibri.readAudit();
      expect(findings).toEqual([]);
      expect(recorded).toHaveLength(served + 1);
      expect(recorded.filter(({ exits }) => exits.length !== 1)).toEqual([]);
    }),
  );

  proves('stop.signal', `R30: ${signal} ends an idle server with 0`, async ({ colibri }) => {
    const server = await colibri.start();

    server.kill(signal);

    expect(await server.waitForExit()).toEqual(CLEAN);
  });
}

proves(
  'stop.signal',
  `R30: SIGTERM during a writing call: it ends, and its answer and its record agree (${TIMES} times)`,
  repeated(async (colibri) => {
    const server = await colibri.start();
    const calls = Array.from({ length: 20 }, () => server.call('task_create', TASK).catch(() => undefined));
    await calls[3];

    server.kill('SIGTERM');

    expect(await server.waitForExit()).toEqual(CLEAN);
    const acked = (await Promise.all(calls)).filter((answer) => answer?.envelope?.ok === true).length;
    const { calls: recorded, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(recorded.map(({ exits }) => exits.map((row) => row.outcome))).toEqual(Array(acked).fill(['ok']));
  }),
  { unless: noTasks },
);

proves(
  'stop.second-signal',
  'R30: a second signal ends a server at once that is waiting for somebody else',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    holdWriteLock(colibri);
    server.call('server_ping').catch(() => undefined);
    // Answered behind it, so the server has the call.
    await server.request('tools/list');

    server.kill('SIGTERM');
    await server.stderrHolds('SIGTERM');
    server.kill('SIGTERM');
    const exit = await server.waitForExit();

    // A stop that waits for the call ends with 0.
    expect(exit.code).toBe(130);
  },
);

proves('stop.end-of-input', 'an open subscription does not keep the server', async ({ colibri }) => {
  const server = colibri.spawn();
  await server.callModern('server_ping', {});
  server.modern('subscriptions/listen', { notifications: { toolsListChanged: true } }).catch(() => undefined);
  await server.callModern('server_ping', {});
  const began = performance.now();

  const exit = await server.closeInput();

  expect(exit).toEqual(CLEAN);
  expect(performance.now() - began).toBeLessThan(4_000);
});

proves(
  ['stop.no-orphan', 'protocol.pure-stdout'],
  'R31: a client that closes its reading end is gone: the server goes too, without a crash',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');

    server.closeOutput();
    for (let i = 0; i < 5; i += 1) server.call('server_ping').catch(() => undefined);

    expect(await server.waitForExit(GONE_MS_MAX)).toEqual(CLEAN);
    expect(server.stderr).not.toMatch(/EPIPE|uncaught|unhandled/i);
  },
);

proves('stop.no-orphan', 'R31: a client that is killed leaves no server', async ({ colibri }) => {
  const client = await startClient(colibri, [NODE, SERVER_FILE]);

  client.killHard();

  await gone(client.serverPid, GONE_MS_MAX);
});

proves(
  'stop.no-orphan',
  'R31: a client that is killed behind a wrapper leaves neither',
  async ({ colibri }) => {
    const client = await startClient(colibri, ['/bin/sh', '-c', '"$@"; exit $?', 'sh', NODE, SERVER_FILE]);

    client.killHard();

    await gone(client.serverPid, GONE_MS_MAX);
  },
);

proves(
  ['protocol.bounded-memory', 'protocol.one-answer', 'stop.no-orphan'],
  'R32: a client that does not read, then reads, has lost nothing',
  async ({ colibri }) => {
    const server = await colibri.start();
    server.pauseReading();
    const lists = Array.from({ length: 3_000 }, () => server.request('tools/list'));
    await settled(server);

    const rss = server.rssBytes;
    server.resumeReading();
    const answers = await Promise.all(lists);

    expect(answers.filter((answer) => answer.result !== undefined)).toHaveLength(3_000);
    expect(rss).toBeLessThan(200_000_000);
    expect(server.stderr).not.toContain('Warning');
    expect(await server.closeInput()).toEqual(CLEAN);
  },
);

/**
 * Closes the input behind calls. All of them are answered: what a busy machine has not begun after 2 s is refused, and before
 * that nothing.
 */
async function closedIn(server: ServerProcess, calls: readonly Promise<ToolAnswer>[]) {
  const began = performance.now();
  const exit = await server.closeInput();
  const isQuick = performance.now() - began < 2_000;
  const answers = await Promise.all(calls);
  const served = answers.filter(({ envelope }) => envelope?.ok);
  const refused = answers.filter(({ message }) => message.error?.code === -32000);
  expect(served.length + refused.length).toBe(calls.length);
  if (isQuick) expect(refused).toEqual([]);
  return { served, exit };
}

/** Each time in a folder of its own. */
function repeated(prove: (colibri: Playground) => Promise<void>) {
  return async (): Promise<void> => {
    for (let time = 0; time < TIMES; time += 1) {
      const colibri = new Playground();
      try {
        await prove(colibri);
      } finally {
        expect(await colibri.dispose()).toEqual([]);
      }
    }
  };
}

/** What SQLite keeps beside a file that is in use or was not closed. */
function unmerged(colibri: Playground): string[] {
  if (!colibri.isOnFile) return [];
  return readdirSync(dirname(colibri.dbPath)).filter((name) => /-(wal|shm|journal)$/.test(name));
}

/** Waits until the server has stopped working through its input: its clock of used time stands still. */
async function settled(server: ServerProcess): Promise<void> {
  const used = () => readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(' ').slice(13, 15).join();
  for (let last = ''; last !== used(); ) {
    last = used();
    await sleepMs(300);
  }
}
