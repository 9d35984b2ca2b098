import { dirname } from 'node:path';
import { expect } from 'vitest';
import { type AuditFields, withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { CuttingProxy } from '../driver/cutting-proxy.ts';
import { mountMissing, mountSmallDisk, straceMissing } from '../driver/linux.ts';
import type { ToolAnswer } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import { holdTableAt } from '../driver/postgres.ts';
import { type ServerProcess, until } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { injection, Tracer } from '../reliability/strace.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_update', 'task_get', 'task_list');
const noKill = noTasks ?? (process.env.COLIBRI_TEST_POSTGRES === undefined ? straceMissing() : undefined);
const noMount = noTasks ?? mountMissing();

const create = (title: string) => ['task_create', { title, project: 'demo' }] as const;
const get = ['task_get', { task_id: 'T-0001' }] as const;
const finish = ['task_update', { task_id: 'T-0001', status: 'done' }] as const;

/** A server that has served, so that the next calls find its gate open. */
async function serving(colibri: Playground): Promise<ServerProcess> {
  const server = await colibri.start();
  await server.call('task_create', { title: 'the first', project: 'demo' });
  return server;
}

const briefly = (rows: readonly AuditFields[]) =>
  rows.map(({ stage, tool, outcome }) => (stage === 'enter' ? `> ${tool}` : `${tool} ${outcome}`));

const titles = (colibri: Playground) =>
  withDatabase(colibri.dbPath, (db) =>
    db.prepare('SELECT text FROM tasks JOIN texts ON digest = title ORDER BY tasks.id').pluck().all(),
  );

interface Batches {
  readonly calls: number;
  readonly commits: number;
  readonly largest: number;
  readonly longest_wait_ms: number;
}

async function batchesOf(server: ServerProcess): Promise<Batches> {
  const { envelope } = await server.call('server_health');
  return envelope?.data?.batches as Batches;
}

/** A start explains what was left open, before it serves. */
async function startAgain(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.call('server_ping');
  await server.closeInput();
}

async function expectSound(colibri: Playground): Promise<void> {
  const { calls, findings } = colibri.readAudit();
  expect(findings).toEqual([]);
  expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
  expect(openCalls(colibri.dbPath)).toEqual([]);
  expect(stateFindings(colibri.dbPath)).toEqual([]);
  expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 0 });
}

/** How many commits calls took that came together: of several rounds the fewest, for one that lasts too long takes more. */
async function fewestCommits(server: ServerProcess, calls: Parameters<ServerProcess['callTogether']>[0]) {
  let fewest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round += 1) {
    const before = await batchesOf(server);
    await server.callTogether(calls);
    // One is that of the question before.
    fewest = Math.min(fewest, (await batchesOf(server)).commits - before.commits - 1);
  }
  return fewest;
}

proves(
  ['batch.commits', 'lock.fifo'],
  'calls that come together share two commits and one checkpoint: all are begun, then each ends in its turn',
  async ({ colibri }) => {
    const server = await serving(colibri);
    const calls = Array.from({ length: 32 }, (_, i) => create(`task ${i}`));

    const answers = await server.callTogether(calls);
    const { rows } = colibri.readAudit();
    const commits = await fewestCommits(server, calls.slice(0, 8));
    const batches = await batchesOf(server);
    await server.closeInput();

    expect(commits).toBe(2);
    expect(batches).toMatchObject({ calls: 1 + 32 + 10 * 10 + 1, largest: 32 });
    const begun = rows.slice(2, 34);
    const ended = rows.slice(34);
    expect(briefly(begun)).toEqual(Array(32).fill('> task_create'));
    expect(briefly(ended)).toEqual(Array(32).fill('task_create ok'));
    expect(ended.map(({ sequence_no }) => sequence_no)).toEqual(begun.map(({ position }) => position));
    expect(ended.map(({ effects }) => effects[0]?.id)).toEqual(
      answers.map(({ envelope }) => envelope?.data?.task_id),
    );
    await expectSound(colibri);
  },
  { unless: noTasks },
);

proves(
  ['batch.alone', 'batch.reads', 'write.rolled-back'],
  'what is refused or fails in a batch fails alone, in its place, and a point read sees what came before it',
  async ({ colibri }) => {
    const server = await serving(colibri);

    const answers = await server.callTogether([
      create('one'),
      finish,
      ['task_update', { task_id: 'T-0001', title: 'renamed' }],
      get,
      ['task_create', { title: 7 }],
      ['nowhere', {}],
      ['task_update', { task_id: 'T-0001', title: 'renamed again' }],
      create('two'),
    ]);
    await server.closeInput();

    const codes = answers.map(({ error, message }) => error?.code ?? message.error?.code ?? 'ok');
    expect(codes).toEqual(['ok', 'ERR_INVALID_TRANSITION', 'ok', 'ok', 'INVALID_PARAMS', -32602, 'ok', 'ok']);
    expect(answers[3]?.envelope?.data).toMatchObject({ title: 'renamed', status: 'backlog' });
    expect(titles(colibri)).toEqual(['renamed again', 'one', 'two']);
    const names = ['task_create', 'task_update', 'task_update', 'task_get', 'task_create', 'nowhere'];
    const tools = [...names, 'task_update', 'task_create'];
    const outcomes = ['ok', 'error', 'ok', 'ok', 'rejected', 'rejected', 'ok', 'ok'];
    expect(briefly(colibri.readAudit().rows.slice(2))).toEqual([
      ...tools.map((tool) => `> ${tool}`),
      ...tools.map((tool, i) => `${tool} ${outcomes[i]}`),
    ]);
    await expectSound(colibri);
  },
  { unless: noTasks },
);

proves(
  ['batch.reads', 'lock.fifo'],
  'a listing between two writes sees the first and not the second; reads that come together are one commit',
  async ({ colibri }) => {
    const server = await serving(colibri);

    const [, listed] = await server.callTogether([create('before'), ['task_list', {}], create('after')]);
    const commits = await fewestCommits(server, [get, ['task_list', {}], ['server_ping'], get]);
    await server.closeInput();

    const shown = (listed?.envelope?.data?.tasks ?? []) as { title: string }[];
    expect(shown.map(({ title }) => title).sort()).toEqual(['before', 'the first']);
    expect(commits).toBe(1);
    expect(briefly(colibri.readAudit().rows.slice(2, 8))).toEqual([
      ...[
        '> task_create',
        'task_create ok',
        '> task_list',
        'task_list ok',
        '> task_create',
        'task_create ok',
      ],
    ]);
    expect(briefly(colibri.readAudit().rows.slice(10, 18))).toEqual([
      ...['> task_get', 'task_get ok', '> task_list', 'task_list ok'],
      ...['> server_ping', 'server_ping ok', '> task_get', 'task_get ok'],
    ]);
    await expectSound(colibri);
  },
  { unless: noTasks },
);

proves(
  ['batch.failed', 'storage.full'],
  'a disk that fills up in the middle of a batch fails every write of it, stores none, and answers its reads',
  async ({ colibri }) => {
    const disk = mountSmallDisk(colibri, dirname(colibri.dbPath), 800);
    const server = await serving(colibri);
    const big = (title: string) =>
      ['task_create', { title, project: 'demo', description: `${title} `.repeat(60) }] as const;
    let made = 0;
    while ((await server.call(...big(`filling ${made}`))).error === undefined) made += 1;

    // Room for the enter rows of a batch and not for its end: more each time than a read takes, until it is met.
    let answers: ToolAnswer[] = [];
    let names: string[] = [];
    let begun: AuditFields[] = [];
    for (let kilobytes = 828; begun.length === 0 && kilobytes < 2_800; kilobytes += 28) {
      disk.growTo(kilobytes);
      const { length } = colibri.readAudit().rows;
      names = Array.from({ length: 8 }, (_, i) => `at ${kilobytes}, number ${i}`);
      answers = await server.callTogether([...names.slice(0, 4).map(big), get, ...names.slice(4).map(big)]);
      const refused = answers.filter(({ error }) => error !== undefined).length;
      const rows = colibri
        .readAudit()
        .rows.slice(length)
        .filter(({ stage }) => stage === 'enter');
      if (refused === 8 && rows.length >= 9) begun = rows.slice(-9);
    }
    const ping = await server.call('server_ping');
    disk.growTo(20_000);
    const again = await server.call(...create('room again'));
    await server.closeInput();

    expect(begun).toHaveLength(9);
    const writes = answers.filter((_, i) => i !== 4);
    expect(writes.map(({ error }) => error?.message.split(':')[0])).toEqual(
      Array(8).fill('ERR_STORAGE_FULL'),
    );
    expect(answers[4]?.envelope?.data).toMatchObject({ task_id: 'T-0001' });
    expect(ping.envelope?.ok).toBe(true);
    expect(again.error).toBeUndefined();
    const stored = titles(colibri);
    expect(names.filter((name) => stored.includes(name))).toEqual([]);
    const { calls } = colibri.readAudit();
    const ends = begun.map(
      ({ position }) => calls.find(({ enter }) => enter.position === position)?.exits[0],
    );
    expect(ends.map((row) => row?.error_code ?? row?.outcome)).toEqual([
      ...Array(4).fill('ERR_STORAGE_FULL'),
      'ok',
      ...Array(4).fill('ERR_STORAGE_FULL'),
    ]);
    await expectSound(colibri);
  },
  { unless: noMount },
);

/** Kills a server between the two commits of calls that come together. Answers the calls that are open then. */
async function killedByTrace(colibri: Playground, calls: Together): Promise<number[]> {
  // Each commit begins with a look at the path. The server is killed at the first of them, the second, and so on.
  for (let nth = 1; nth < 20; nth += 1) {
    const server = await serving(colibri);
    const fault = { syscall: 'statx', when: String(nth), signal: 'KILL' } as const;
    const tracer = await Tracer.attach(colibri, server, injection(fault));
    await server.callTogether(calls).catch(() => undefined);
    await server.killHard();
    await tracer.detach();
    const open = openCalls(colibri.dbPath);
    if (open.length > 0) return open;
  }
  return [];
}

/** The same where the database is on a server: nothing gets through behind the first commit. */
async function killedByProxy(colibri: Playground, calls: Together): Promise<number[]> {
  const { proxy, url } = await CuttingProxy.before(colibri.dbPath);
  colibri.onDispose(() => proxy.close());
  const server = await colibri.start({ env: { COLIBRI_DATABASE_URL: url } });
  await server.call('task_create', { title: 'the first', project: 'demo' });
  proxy.holdBehind();
  const answers = server.callTogether(calls).catch(() => undefined);
  await until(
    () => proxy.isHolding,
    10_000,
    () => 'the batch never began',
  );
  await server.killHard();
  await answers;
  return openCalls(colibri.dbPath);
}

type Together = Parameters<ServerProcess['callTogether']>[0];

proves(
  ['recovery.crashed', 'batch.commits'],
  'kill -9 between the two commits of a batch leaves its calls crashed, reads too, each explained once',
  async ({ colibri }) => {
    const calls = [create('lost'), get, create('lost too')] as const;
    const open = await (colibri.isOnFile ? killedByTrace : killedByProxy)(colibri, calls);
    const { length } = colibri.readAudit().rows;
    for (let i = 0; i < 2; i += 1) await startAgain(colibri);

    expect(open).toHaveLength(3);
    const explained = colibri
      .readAudit()
      .rows.slice(length)
      .filter(({ tool }) => tool !== 'server_ping');
    expect(briefly(explained)).toEqual(['task_create crashed', 'task_get crashed', 'task_create crashed']);
    expect(explained.map(({ sequence_no }) => sequence_no)).toEqual(open);
    await expectSound(colibri);
  },
  { unless: noKill },
);

proves(
  ['long.order', 'recovery.crashed'],
  'C2: a long verification is recorded before it runs, lets others pass, and is one crashed call after kill -9',
  async ({ colibri }) => {
    const server = await serving(colibri);
    const thought = ['thought_record', { task_id: 'T-0001', type: 'analysis', content: 'x' }] as const;
    for (let i = 0; i < 40; i += 1) await server.callTogether(Array(32).fill(thought));
    const verify = ['audit_verify_chain', { task_id: 'T-0001' }] as const;
    const before = colibri.readAudit().rows.length;

    const [report] = await server.callTogether([verify, create('passing'), ['server_ping'], get]);
    const passed = briefly(colibri.readAudit().rows.slice(before));
    // On a server it may be over before anybody can look.
    const lock = colibri.isOnFile ? undefined : holdTableAt(colibri.dbPath, 'thoughts');
    const interrupted = server.call(...verify).catch(() => undefined);
    await until(
      () => openCalls(colibri.dbPath).length > 0,
      10_000,
      () => 'it was never begun',
    );
    await server.killHard();
    lock?.release();
    await interrupted;
    for (let i = 0; i < 2; i += 1) await startAgain(colibri);

    expect(report?.envelope?.data).toMatchObject({ chain_valid: true, total_records: 1_280 });
    expect(passed[0]).toBe('> audit_verify_chain');
    expect(passed.at(-1)).toBe('audit_verify_chain ok');
    expect(passed.slice(1, -1)).toEqual([
      ...['> task_create', '> server_ping', '> task_get'],
      ...['task_create ok', 'server_ping ok', 'task_get ok'],
    ]);
    const after = briefly(colibri.readAudit().rows.slice(before + passed.length));
    expect(after.filter((row) => !row.includes('server_ping'))).toEqual([
      ...['> audit_verify_chain', 'audit_verify_chain crashed'],
    ]);
    await expectSound(colibri);
  },
  { unless: noTasks, timeoutMs: 240_000 },
);
