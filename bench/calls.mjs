import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { byRound, inTurns, p50, p99, timed } from './statistics.mjs';

const IN_FLIGHT = 32;

/** A call's price beside its floor in the same run: the bare server's call, and one fsync of the same disk. */
export async function calls({ bare, rounds, callsPerRound, pipelined }) {
  return await inScratch(async (folder, env) => {
    const [floor, colibri] = [connect(bare), connect(SERVER, { env })];
    await Promise.all([floor.initialize(), colibri.initialize()]);
    await colibri.call('task_create', { title: 'first', project: 'bench' });
    const update = (i) => colibri.call('task_update', { task_id: 'T-0001', progress: i % 90 });
    const contenders = {
      bare: () => timed(callsPerRound, () => floor.request('tools/call', { name: 'noop', arguments: {} })),
      fsync: () => fsyncs(join(folder, 'fsync'), callsPerRound),
      read: () => timed(callsPerRound, () => colibri.call('task_get', { task_id: 'T-0001' })),
      write: () => timed(callsPerRound, update),
    };
    await inTurns(2, contenders);
    const samples = await inTurns(rounds, contenders);
    const together = await inTurns(Math.ceil(rounds / 2), {
      single: () => msPerCall(1, pipelined, update),
      many: () => msPerCall(IN_FLIGHT, pipelined, update),
    });
    await Promise.all([floor.close(), colibri.close()]);
    return { rows: [...figures(samples), togetherFigures(together)] };
  });
}

function figures(samples) {
  const [call, fsync] = [p50(samples.bare), p50(samples.fsync)];
  return [
    {
      id: 'read',
      what: 'audited read over stdio',
      unit: 'ms',
      reference: call,
      reference_is: 'call of the bare SDK server',
      p50: p50(samples.read),
      p99: p99(samples.read),
      ...byRound(samples, ({ read, bare }) => read / bare),
      bar: 'at most 2 × the bare call',
      limit: 2,
    },
    {
      id: 'write',
      what: 'audited durable write over stdio',
      unit: 'ms',
      reference: call + 1.5 * fsync,
      reference_is: `bare call ${call.toFixed(3)} + 1.5 × fsync ${fsync.toFixed(3)}`,
      p50: p50(samples.write),
      p99: p99(samples.write),
      ...byRound(samples, ({ write, bare, fsync }) => write / (bare + 1.5 * fsync)),
      bar: 'at most bare call + 1.5 × fsync',
      limit: 1,
    },
  ];
}

function togetherFigures(together) {
  const [single, many] = [p50(together.single), p50(together.many)];
  return {
    id: 'in-flight',
    what: `durable writes, ${IN_FLIGHT} in flight`,
    unit: 'calls/s',
    reference: 1000 / single,
    reference_is: 'one in flight',
    p50: 1000 / many,
    ...byRound(together, (round) => round.single / round.many),
    bar: 'at least 3 × one in flight',
    limit: 3,
    sense: 'at least',
  };
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

async function msPerCall(inFlight, total, work) {
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
