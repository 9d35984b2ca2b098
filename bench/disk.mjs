import { existsSync, statSync } from 'node:fs';
import { importSource, SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';

const BYTES_MAX = 1_300;
const TEXT =
  'what a person would write about it in a hundred characters or a little more, give or take a few words';

const KINDS = {
  read: {
    what: 'a read (task_get)',
    call: (client) => client.call('task_get', { task_id: 'T-0001' }),
  },
  change: {
    what: 'a change (task_update)',
    call: (client, i) => client.call('task_update', { task_id: 'T-0001', progress: i % 90 }),
  },
  thought: {
    what: 'a thought (thought_record)',
    call: (client, i) =>
      client.call('thought_record', {
        task_id: 'T-0001',
        type: 'analysis',
        content: `thought ${i}: ${TEXT}`,
      }),
  },
  task: {
    what: 'a new task (task_create)',
    call: (client, i) =>
      client.call('task_create', { title: `task number ${i}`, project: 'bench', description: TEXT }),
  },
};

/** What one call adds to the log: its two audit rows, their hashes, heads and indexes, without the payload that is kept of it. */
export async function disk({ calls }) {
  const { bytesOf } = await importSource('file-bytes');
  const rows = [];
  for (const [id, { what, call }] of Object.entries(KINDS)) {
    const { before, after } = await inScratch(async (_folder, env) => {
      const path = env.COLIBRI_DB_PATH;
      await session(env, (client) => client.call('task_create', { title: 'first', project: 'bench' }));
      const before = { size: sizeOf(path), ...(await bytesOf(path)) };
      await session(env, async (client) => {
        for (let i = 0; i < calls; i += 1) await call(client, i);
      });
      return { before, after: { size: sizeOf(path), ...(await bytesOf(path)) } };
    });
    const [grown, payload] = ['size', 'payload'].map((key) => (after[key] - before[key]) / calls);
    // Without dbstat, all that grew: more than the log, never less.
    const log = after.pages === undefined ? grown - payload : (after.pages.log - before.pages.log) / calls;
    rows.push({
      id: `disk-${id}`,
      what: `bytes on disk of ${what}`,
      unit: 'bytes',
      reference: payload,
      reference_is: 'its arguments and result as kept',
      p50: grown,
      value: log,
      bar: `at most ${BYTES_MAX.toLocaleString('en')} bytes of log beside the payload`,
      limit: BYTES_MAX,
      ...(after.pages !== undefined && { note: pagesNote(before.pages, after.pages, calls) }),
    });
  }
  return { rows };
}

function pagesNote(before, after, calls) {
  const part = (key) => Math.round((after[key] - before[key]) / calls).toLocaleString('en');
  return `pages of the log ${part('log')}, of payloads ${part('payloads')}, of state and its indexes ${part('state')} bytes`;
}

async function session(env, work) {
  const client = connect(SERVER, { env });
  await client.initialize();
  await work(client);
  await client.close();
}

/** The database and its write-ahead log, which a clean stop leaves empty or removes. */
function sizeOf(path) {
  return [path, `${path}-wal`].reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);
}
