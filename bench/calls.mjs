import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { inTurns, p50, p99, timed } from './statistics.mjs';

const IN_FLIGHT = 32;

/** A call's price beside its floor in the same run: the bare server's call, and one fsync of the same disk. */
export async function calls({ bare, rounds, callsPerRound, pipelined }) {
  return await inScratch(async (folder, env) => {
    const [floor, colibri] = [connect(bare), connect(SERVER, { env })];
    await Promise.all([floor.initialize(), colibri.initialize()]);
    await colibri.call('task_create', { title: 'first', project: 'bench' });
    const contenders = {
      bare: () => timed(callsPerRound, () => floor.request('tools/call', { name: 'noop', arguments: {} })),
      fsync: () => fsyncs(join(folder, 'fsync'), callsPerRound),
      read: () => timed(callsPerRound, () => colibri.call('task_get', { task_id: 'T-0001' })),
      write: () =>
        timed(callsPerRound, (i) => colibri.call('task_update', { task_id: 'T-0001', progress: i % 90 })),
    };
    await inTurns(2, contenders);
    const samples = await inTurns(rounds, contenders);
    const [call, fsync] = [p50(samples.bare), p50(samples.fsync)];
    const single = await throughput(colibri, 1, pipelined);
    const many = await throughput(colibri, IN_FLIGHT, pipelined);
    await Promise.all([floor.close(), colibri.close()]);
    return [
      {
        what: 'audited read over stdio',
        reference_ms: call,
        p50_ms: p50(samples.read),
        p99_ms: p99(samples.read),
        ratio: p50(samples.read) / call,
        reach: 2,
      },
      {
        what: `audited durable write over stdio (bare call ${call.toFixed(3)} ms, fsync ${fsync.toFixed(3)} ms)`,
        reference_ms: call + 1.5 * fsync,
        p50_ms: p50(samples.write),
        p99_ms: p99(samples.write),
        ratio: p50(samples.write) / (call + 1.5 * fsync),
        reach: 1,
      },
      // Throughput is better when higher: written as time per call, so that a ratio above its reach is a miss like any other.
      {
        what: `write, ${IN_FLIGHT} in flight (${Math.round(many)}/s against ${Math.round(single)}/s)`,
        reference_ms: 1000 / single,
        p50_ms: 1000 / many,
        ratio: single / many,
        reach: 1 / 3,
      },
    ];
  });
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

async function throughput(client, inFlight, total) {
  let sent = 0;
  const before = performance.now();
  const worker = async () => {
    while (sent < total) {
      sent += 1;
      await client.call('task_update', { task_id: 'T-0001', progress: sent % 90 });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (total / (performance.now() - before)) * 1000;
}
