import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { canReadMemory, peakMb, residentMb } from './processes.mjs';

const START_MB_MAX = 80;
const GROWTH_MB_MAX = 20;
const UNREAD_MB_MAX = 150;

/** Resident memory of the server process after its start, and after many calls, beside the bare server. */
export async function memory({ bare, calls, starts }) {
  if (!canReadMemory)
    return { rows: [], note: 'not measured: this system has no /proc to read the memory from' };
  const [floor, colibri] = [[], []];
  for (let i = 0; i < starts; i += 1) {
    floor.push(await life(bare, calls, noop));
    colibri.push(await life(SERVER, calls, mixed));
  }
  const worst = (samples, key) => Math.max(...samples.map((sample) => sample[key]));
  const peak = Math.round(worst(colibri, 'peak'));
  const unread = await neverRead(calls);
  return {
    rows: [
      {
        id: 'memory-start',
        what: 'memory after start',
        unit: 'MB',
        reference: worst(floor, 'started'),
        reference_is: 'bare SDK server',
        p50: worst(colibri, 'started'),
        value: worst(colibri, 'started'),
        bar: `at most ${START_MB_MAX} MB`,
        limit: START_MB_MAX,
        note: `the largest of ${starts} starts`,
      },
      {
        id: 'memory-calls',
        what: `memory added by ${calls.toLocaleString('en')} calls`,
        unit: 'MB',
        reference: worst(floor, 'grown'),
        reference_is: 'bare SDK server',
        p50: worst(colibri, 'grown'),
        value: worst(colibri, 'grown'),
        bar: `at most ${GROWTH_MB_MAX} MB`,
        limit: GROWTH_MB_MAX,
        note: `the largest of ${starts} runs; at its peak the process had ${peak} MB`,
      },
      {
        id: 'memory-unread',
        what: `memory with ${calls.toLocaleString('en')} listings sent by a client that does not read`,
        unit: 'MB',
        p50: unread,
        value: unread,
        bar: `at most ${UNREAD_MB_MAX} MB`,
        limit: UNREAD_MB_MAX,
        note: 'at its peak',
      },
    ],
  };
}

/** A client that sends and never reads: what the server holds at its peak. */
async function neverRead(calls) {
  return await inScratch(async (_folder, env) => {
    const client = connect(SERVER, { env });
    await client.initialize();
    for (let i = 0; i < 500; i += 1)
      await client.call('task_create', { title: `task ${i}`, project: 'bench' });
    client.child.stdout.pause();
    for (let i = 0; i < calls; i += 1) client.call('task_list', { limit: 500 }).catch(() => undefined);
    for (let i = 0; i < 10; i += 1) await settled();
    const peak = peakMb(client.child.pid);
    await client.kill();
    return peak;
  });
}

async function life(script, calls, call) {
  return await inScratch(async (_folder, env) => {
    const client = connect(script, { env });
    await client.initialize();
    await client.request('tools/list', {});
    await call(client, 0);
    await settled();
    const started = residentMb(client.child.pid);
    for (let i = 1; i <= calls; i += 1) await call(client, i);
    await settled();
    const grown = residentMb(client.child.pid) - started;
    const peak = peakMb(client.child.pid);
    await client.close();
    return { started, grown, peak };
  });
}

const noop = (client) => client.request('tools/call', { name: 'noop', arguments: {} });

/** Of ten calls one makes a task, one records a thought, two change a task, six read. */
function mixed(client, i) {
  const task_id = 'T-0001';
  const kind = i % 10;
  if (kind === 0) return client.call('task_create', { title: `task ${i}`, project: 'bench' });
  if (kind === 1)
    return client.call('thought_record', { task_id, type: 'analysis', content: `thought ${i}` });
  if (kind < 4) return client.call('task_update', { task_id, progress: i % 90 });
  if (kind < 7) return client.call('task_get', { task_id });
  return client.call('task_list', { limit: 20 });
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 1_000));
