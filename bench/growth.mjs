import { importSource, SERVER } from './build.mjs';
import { connect, inScratch, startOnce } from './client.mjs';
import { inTurns, p50, p99, timed } from './statistics.mjs';

/** The same calls on an empty database and on a full one, in turns on two servers of the same run. */
export async function growth({ tasks, rows, rounds, callsPerRound }) {
  const { fillDatabase } = await importSource('fill-database');
  return await inScratch((_empty, emptyEnv) =>
    inScratch(async (_full, fullEnv) => {
      // A first start makes the log known to its signer, as in real life.
      for (const env of [emptyEnv, fullEnv]) await startOnce(env);
      await fillDatabase(emptyEnv.COLIBRI_DB_PATH, { tasks: 1, rows: 0 });
      const before = performance.now();
      await fillDatabase(fullEnv.COLIBRI_DB_PATH, { tasks, rows });
      console.error(
        `filled ${tasks} tasks, ${rows} rows in ${Math.round((performance.now() - before) / 1000)} s`,
      );
      const [empty, full] = [connect(SERVER, { env: emptyEnv }), connect(SERVER, { env: fullEnv })];
      await Promise.all([empty.initialize(), full.initialize()]);
      // The signer reads a long log once after a start; let it finish, or it is measured instead.
      await waitForIdle(full);
      const results = [];
      for (const [tool, work] of WORKLOADS) {
        for (const client of [empty, full]) await timed(50, (i) => work(client, i));
        const samples = await inTurns(rounds, {
          empty: () => timed(callsPerRound, (i) => work(empty, i)),
          full: () => timed(callsPerRound, (i) => work(full, i)),
        });
        results.push({
          what: `${tool} at ${tasks} tasks, ${rows} rows`,
          reference_ms: p50(samples.empty),
          p50_ms: p50(samples.full),
          p99_ms: p99(samples.full),
          ratio: p50(samples.full) / p50(samples.empty),
          reach: 1.5,
        });
      }
      const get = await timed(500, (i) =>
        full.call('task_get', { task_id: `T-${String(1 + ((i * 37) % tasks)).padStart(4, '0')}` }),
      );
      const search = await timed(300, (i) =>
        full.call('task_list', { search: `${SEARCHES[i % SEARCHES.length]}${i % 97}`, limit: 20 }),
      );
      results.push({
        what: 'task_list with search, against task_get',
        reference_ms: p50(get),
        p50_ms: p50(search),
        p99_ms: p99(search),
        ratio: p50(search) / p50(get),
        reach: 20,
      });
      await Promise.all([empty.close(), full.close()]);
      return results;
    }),
  );
}

const SEARCHES = ['parser', 'ledger', 'meadow', 'signal'];

const WORKLOADS = [
  [
    'task_create',
    (client, i) =>
      client.call('task_create', { title: `grown ${i}`, project: 'project-1', priority: 'high' }),
  ],
  ['task_update', (client, i) => client.call('task_update', { task_id: 'T-0001', progress: i % 90 })],
  ['task_next_actions', (client) => client.call('task_next_actions', { limit: 20 })],
  [
    'thought_record',
    (client, i) =>
      client.call('thought_record', { task_id: 'T-0001', type: 'analysis', content: `thought ${i}` }),
  ],
];

async function waitForIdle(client) {
  for (let quick = 0; quick < 20; ) {
    const [ms] = await timed(1, () => client.call('server_ping', {}));
    quick = ms < 3 ? quick + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
