import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { byRound, inTurns, p50, p99, timed } from './statistics.mjs';

const IN_FLIGHT = 32;
const SETTLE_MS = 200;
const SUSTAINED = 10_000;

/** A call's price beside its floor in the same run: the bare server's call, and one fsync of the same disk. */
export async function calls({ bare, rounds, callsPerRound, pipelined }) {
  return await inScratch(async (folder, env) => {
    const [floor, colibri] = [connect(bare), connect(SERVER, { env })];
    await Promise.all([floor.initialize(), colibri.initialize()]);
    await colibri.call('task_create', { title: 'first', project: 'bench' });
    const noop = () => floor.request('tools/call', { name: 'noop', arguments: {} });
    const kinds = {
      task_get: () => colibri.call('task_get', { task_id: 'T-0001' }),
      task_create: (i) =>
        colibri.call('task_create', { title: `task ${i}`, project: 'bench', description: TEXT }),
      task_update: (i) => colibri.call('task_update', { task_id: 'T-0001', progress: i % 90 }),
      thought_record: (i) =>
        colibri.call('thought_record', { task_id: 'T-0001', type: 'analysis', content: `${i}: ${TEXT}` }),
    };
    const contenders = {
      bare: () => timed(callsPerRound, noop),
      fsync: () => fsyncs(join(folder, 'fsync'), callsPerRound),
      read: () => timed(callsPerRound, kinds.task_get).finally(settle),
      write: () => timed(callsPerRound, kinds.task_update).finally(settle),
    };
    await inTurns(2, contenders);
    const samples = await inTurns(rounds, contenders);
    const floorInFlight = () => msPerCall(IN_FLIGHT, pipelined, noop);
    // Colibri’s kinds follow one another without a pause; after one, the bare server is warmed up again.
    const inFlight = { bare: () => settle().then(floorInFlight).then(floorInFlight) };
    for (const [name, call] of Object.entries(kinds))
      inFlight[name] = () => msPerCall(IN_FLIGHT, pipelined, call);
    await inTurns(2, inFlight);
    const together = await inTurns(2 * rounds, inFlight);
    const sustained = await withoutPause(SUSTAINED, inFlight.bare, kinds.task_create);
    await Promise.all([floor.close(), colibri.close()]);
    const rows = Object.keys(kinds).map((kind) => inFlightFigures(together, kind));
    return { rows: [...figures(samples), ...rows], sustained };
  });
}

/** What Colibri does once it has no calls must not slow down what it is compared with. */
async function settle() {
  await sleep(SETTLE_MS);
}

/** What a person would write. */
export const TEXT =
  'What a person would write about it: where it comes from, what has to be true when it is finished, and who ought to know.';

function figures(samples) {
  const [call, fsync] = [p50(samples.bare), p50(samples.fsync)];
  return [
    {
      id: 'read',
      what: 'audited, signed read over stdio',
      unit: 'ms',
      reference: call,
      reference_is: 'call of the bare SDK server',
      p50: p50(samples.read),
      p99: p99(samples.read),
      ...byRound(samples, ({ read, bare }) => read / bare),
      bar: 'at most 3 × the bare call',
      limit: 3,
    },
    {
      id: 'write',
      what: 'audited, signed, durable write over stdio',
      unit: 'ms',
      reference: call + 1.5 * fsync,
      reference_is: `bare call ${call.toFixed(3)} + 1.5 × fsync ${fsync.toFixed(3)}`,
      p50: p50(samples.write),
      p99: p99(samples.write),
      ...byRound(samples, ({ write, bare, fsync }) => write / (bare + 1.5 * fsync)),
      bar: 'at most 2 × (bare call + 1.5 × fsync)',
      limit: 2,
    },
  ];
}

/** The share of the bare server's calls that Colibri serves when so many wait at once. */
function inFlightFigures(together, kind) {
  const share = kind === 'task_get' ? 0.4 : 0.3;
  return {
    id: `in-flight-${kind}`,
    what: `${kind}, ${IN_FLIGHT} in flight`,
    unit: 'calls/s',
    reference: 1000 / p50(together.bare),
    reference_is: `bare SDK server, ${IN_FLIGHT} in flight`,
    p50: 1000 / p50(together[kind]),
    ...byRound(together, (round) => round.bare / round[kind]),
    bar: `at least ${share} × the bare server`,
    limit: share,
    sense: 'at least',
  };
}

/** So many calls in one piece, which leaves no moment for what Colibri does when there are no calls. */
async function withoutPause(total, bare, call) {
  const { floor, colibri } = await inTurns(3, {
    floor: bare,
    colibri: () => msPerCall(IN_FLIGHT, total, call),
  });
  const value = byRound({ floor, colibri }, (round) => round.floor / round.colibri).value;
  return { calls: total, per_second: 1000 / p50(colibri), share: value };
}

function fsyncs(path, count) {
  const fd = openSync(path, 'a');
  const page = Buffer.alloc(8_192);
  const samples = [];
  for (let i = 0; i < count; i += 1) {
    writeSync(fd, page);
    const before = performance.now();
    fdatasyncSync(fd);
    samples.push(performance.now() - before);
  }
  closeSync(fd);
  return samples;
}

/** So many calls, as many at once as asked for. */
export async function msPerCall(inFlight, total, work) {
  let sent = 0;
  const before = performance.now();
  const worker = async () => {
    while (sent < total) {
      sent += 1;
      await work(sent);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (performance.now() - before) / total;
}
