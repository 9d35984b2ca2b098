import { dirname } from 'node:path';
import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { startColibri } from '../driver/command-line.ts';
import {
  failing,
  mountMissing,
  mountSmallDisk,
  readTrace,
  slowDisk,
  straceMissing,
  type TracedCall,
  tracing,
} from '../driver/linux.ts';
import type { ToolAnswer } from '../driver/message.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_get');
const noTrace = noTasks ?? straceMissing();
const noMount = noTasks ?? mountMissing();

const TASK = { title: 'a task', project: 'demo' };

proves(
  ['write.durable', 'read.one-commit'],
  'a write is answered after an fsync of what it wrote, a read without one',
  async ({ colibri }) => {
    const trace = colibri.path('trace');
    const server = await colibri.start({ wrapper: tracing(trace) });
    await server.call('server_ping');

    for (let i = 0; i < 5; i += 1) await server.call('task_create', { ...TASK, title: `durable-${i}` });
    for (let i = 0; i < 5; i += 1) await server.call('server_ping');
    await server.call('nowhere');
    await server.closeInput();

    const calls = readTrace(trace).map(toEvent);
    const writes = calls.filter(({ kind }) => kind === 'write answered');
    expect(writes).toHaveLength(5);
    expect(unsyncedAnswers(calls)).toEqual([]);
    const lastWrite = calls.findLastIndex(({ kind }) => kind === 'write answered');
    const reads = calls.slice(
      lastWrite + 1,
      calls.findIndex(({ text }) => text.includes('nowhere')),
    );
    expect(reads.filter(({ kind }) => kind === 'log synced')).toEqual([]);
    expect(reads.filter(({ kind }) => kind === 'log written').length).toBeGreaterThan(0);
  },
  { unless: noTrace },
);

proves(
  'write.durable',
  'writes that wait together are each synced before they are answered',
  async ({ colibri }) => {
    const trace = colibri.path('trace');
    const server = await colibri.start({ wrapper: tracing(trace) });

    await Promise.all(
      Array.from({ length: 30 }, (_, i) => server.call('task_create', { ...TASK, title: `durable-${i}` })),
    );
    await server.closeInput();

    const calls = readTrace(trace).map(toEvent);
    const syncs = calls.filter(({ kind }) => kind === 'log synced').length;
    expect(syncs).toBeGreaterThan(0);
    console.error(`measured 30 writes in flight: ${syncs} fsyncs of the log`);
    expect(colibri.readAudit().rows.filter((row) => row.outcome === 'ok')).toHaveLength(30);
  },
  { unless: noTrace },
);

proves(
  'write.durable',
  'a read does not wait for a slow disk behind writes that it has nothing to do with',
  async ({ colibri }) => {
    const server = await colibri.start({ wrapper: slowDisk(300) });
    // From these on, the disk is known to be slow.
    await server.call('task_create', TASK);
    const answered: string[] = [];
    const after = async (name: string, call: Promise<unknown>) => {
      await call;
      answered.push(name);
    };

    const writes = ['one', 'two'].map((title) =>
      after('write', server.call('task_create', { ...TASK, title })),
    );
    await sleepMs(100);
    await after('read', server.call('task_get', { task_id: 'T-0001' }));
    await Promise.all(writes);

    expect(answered).toEqual(['read', 'write', 'write']);
  },
  { unless: noTrace },
);

proves(
  ['storage.uncertain', 'envelope.pattern-b'],
  'when the fsync of a call fails the answer is ERR_STORAGE_UNCERTAIN, the process stops, and the next start knows',
  async ({ colibri }) => {
    const first = await colibri.start();
    await first.call('task_create', TASK);
    await first.closeInput();
    // That of the start, before which nothing is vouched for, runs in another thread; that of a call alone does not.
    const server = await colibri.start({ wrapper: failing('fdatasync', 'EIO', 1, { inAllThreads: false }) });

    const answer = await server.call('task_create', { ...TASK, title: 'who knows' });
    const exit = await server.waitForExit();
    const next = await colibri.start();
    await next.call('server_ping');

    expect(answer.envelope).toMatchObject({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_STORAGE_UNCERTAIN: /) },
    });
    expect(answer.error?.message).toMatch(/look/);
    expect(exit.code).not.toBe(0);
    expect(server.stderr).toMatch(/EIO|i\/o/i);
    const { calls, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
    expect(openCalls(colibri.dbPath)).toEqual([]);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
  { unless: noTrace },
);

proves(
  'storage.uncertain',
  'a command whose fsync fails says so and ends with 74, as a server does',
  async ({ colibri }) => {
    const args = ['call', 'task_create', JSON.stringify(TASK)];
    await startColibri(colibri, args);

    const wrapper = failing('fdatasync', 'EIO', 1, { inAllThreads: false });
    const { code, stdout } = await startColibri(colibri, args, { wrapper });

    expect(stdout).toMatch(/ERR_STORAGE_UNCERTAIN/);
    expect(code).toBe(74);
  },
  { unless: noTrace },
);

proves(
  ['storage.uncertain', 'recovery.crashed'],
  'when writing the log fails in a call nobody is told it went well, and the next start explains it',
  async ({ colibri }) => {
    const first = await colibri.start();
    await first.call('task_create', TASK);
    await first.closeInput();

    for (const nth of [3, 6, 9]) {
      const server = await colibri.start({ wrapper: failing('pwrite64', 'EIO', nth) });
      const answers = await Promise.all(
        ['one', 'two'].map((title) => attempt(server, { ...TASK, title: `${nth} ${title}` })),
      );
      await server.closeInput();
      const next = await colibri.start();
      await next.call('server_ping');
      await next.closeInput();

      const stored = withDatabase(colibri.dbPath, (db) =>
        db.prepare('SELECT text FROM tasks JOIN texts ON digest = title').pluck().all(),
      );
      for (const [i, title] of ['one', 'two'].entries()) {
        if (answers[i]?.envelope !== undefined && answers[i]?.error === undefined)
          expect(stored).toContain(`${nth} ${title}`);
      }
      const { calls, findings } = colibri.readAudit();
      expect(findings).toEqual([]);
      expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
      expect(stateFindings(colibri.dbPath)).toEqual([]);
    }
  },
  { unless: noTrace },
);

proves(
  ['storage.full', 'envelope.pattern-b'],
  'a full disk refuses writes and nothing else, and is over when there is room',
  async ({ colibri }) => {
    const disk = mountSmallDisk(colibri, dirname(colibri.dbPath), 1_200);
    const server = await colibri.start();
    const big = { ...TASK, description: 'x'.repeat(8_000) };

    let [made, refusal]: [number, ToolAnswer | undefined] = [0, undefined];
    while (refusal === undefined && made < 1_000) {
      const answer = await server.call('task_create', big);
      if (answer.error === undefined) made += 1;
      else refusal = answer;
    }
    const ping = await server.call('server_ping');
    const get = await server.call('task_get', { task_id: 'T-0001' });
    disk.growTo(20_000);
    const again = await server.call('task_create', big);
    await server.closeInput();
    await (await colibri.start()).closeInput();

    expect(refusal?.envelope).toMatchObject({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_STORAGE_FULL: /) },
    });
    expect(refusal?.error?.message).toMatch(/full.*space/is);
    expect(ping.envelope?.ok).toBe(true);
    expect(get.envelope?.data).toMatchObject({ task_id: 'T-0001', title: 'a task' });
    expect(again.envelope?.data).toMatchObject({ sequence: made + 1 });
    const { findings, calls } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
  { unless: noMount },
);

proves(
  'storage.full',
  'a start on a full disk degrades and says so',
  async ({ colibri }) => {
    mountSmallDisk(colibri, dirname(colibri.dbPath), 8);

    const server = await colibri.start();
    const { envelope } = await server.call('server_health');

    expect(envelope?.data).toMatchObject({
      status: 'degraded',
      db: { reason: expect.stringMatching(/full|room|space/) },
    });
  },
  { unless: noMount },
);

proves(
  ['boot.degraded', 'boot.untouched', 'modes.readonly'],
  'on a disk that cannot be written FULL degrades and says so, and READONLY answers reads',
  async ({ colibri }) => {
    const disk = mountSmallDisk(colibri, dirname(colibri.dbPath), 20_000);
    const first = await colibri.start();
    await first.call('task_create', TASK);
    await first.closeInput();
    disk.writeProtect();

    const full = await colibri.start();
    const health = await full.call('server_health');
    const reading = await colibri.start({ env: { COLIBRI_MODE: 'READONLY' } });
    const task = await reading.call('task_get', { task_id: 'T-0001' });

    expect(health.envelope?.data).toMatchObject({
      status: 'degraded',
      db: { reason: expect.stringMatching(/read-only|writ/) },
    });
    expect(task.envelope?.data).toMatchObject({ title: 'a task' });
  },
  { unless: noMount },
);

interface Event {
  readonly kind: 'log written' | 'log synced' | 'write answered' | 'other';
  readonly text: string;
}

function toEvent({ name, text }: TracedCall): Event {
  const kind = kindOf(name, text);
  return { kind, text };
}

function kindOf(name: string, text: string): Event['kind'] {
  if (name === 'pwrite64' && text.includes('-wal>')) return 'log written';
  if (['fdatasync', 'fsync'].includes(name) && /-wal>\)\s+= 0/.test(text)) return 'log synced';
  return /^(write|writev|sendto|sendmsg)\(1</.test(text) && text.includes('task_id')
    ? 'write answered'
    : 'other';
}

/** Answers sent while something written to the log was not synced. One call in flight at a time. */
function unsyncedAnswers(events: readonly Event[]): Event[] {
  let dirty = false;
  return events.filter(({ kind }) => {
    if (kind === 'log written') dirty = true;
    if (kind === 'log synced') dirty = false;
    return kind === 'write answered' && dirty;
  });
}

async function attempt(server: ServerProcess, args: object): Promise<ToolAnswer | undefined> {
  return await server.call('task_create', args).catch(() => undefined);
}
