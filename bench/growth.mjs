import { SERVER } from './build.mjs';
import { connect, inScratch, startOnce } from './client.mjs';
import { filledDatabase } from './databases.mjs';
import { progress } from './progress.mjs';
import { byRound, inTurns, p50, p99, timed } from './statistics.mjs';

const ROWS_PER_TASK = 10;
const IDLE_MS_MAX = 60_000;

/** The same calls on databases of several sizes, the first one empty, in turns on servers of the same run. */
export async function growth({ sizes, rounds, callsPerRound }) {
  return await inScratch(async (_folder, emptyEnv) => {
    await startOnce(emptyEnv);
    const servers = [await open(0, emptyEnv)];
    for (const tasks of sizes)
      servers.push(await open(tasks, await filledDatabase({ tasks, rows: tasks * ROWS_PER_TASK })));
    // Something to update and to think about; it moves no answer of the others.
    await servers[0].client.call('task_create', { title: 'the only one', project: 'project-1' });
    const measured = {};
    for (const [tool, work] of Object.entries(WORKLOADS)) {
      progress(`growth: ${tool}`);
      for (const { client, tasks } of servers) await timed(50, (i) => work(client, i, tasks));
      measured[tool] = await inTurns(
        rounds,
        Object.fromEntries(
          servers.map(({ client, tasks }) => [
            tasks,
            () => timed(callsPerRound, (i) => work(client, i, tasks)),
          ]),
        ),
      );
    }
    for (const { client } of servers) await client.close();
    return { rows: figures(measured, sizes.at(-1)), series: seriesOf(measured) };
  });
}

async function open(tasks, env) {
  const client = connect(SERVER, { env });
  await client.initialize();
  await waitForIdle(client);
  return { tasks, client };
}

/** Reads first: what the writers add must not be in the way of the others on the small databases. */
const WORKLOADS = {
  task_get: (client, i, tasks) =>
    client.call('task_get', { task_id: taskId(1 + ((i * 37) % Math.max(1, tasks))) }),
  search: (client, i) =>
    client.call('task_list', { search: `${SEARCHES[i % SEARCHES.length]}${i % 97}`, limit: 20 }),
  task_next_actions: (client) => client.call('task_next_actions', { limit: 20 }),
  task_update: (client, i) => client.call('task_update', { task_id: 'T-0001', progress: i % 90 }),
  thought_record: (client, i) =>
    client.call('thought_record', { task_id: 'T-0001', type: 'analysis', content: `thought ${i}` }),
  task_create: (client, i) =>
    client.call('task_create', { title: `grown ${i}`, project: 'project-1', priority: 'high' }),
};

const SEARCHES = ['parser', 'ledger', 'meadow', 'signal'];
const JUDGED = ['task_create', 'task_update', 'task_next_actions', 'thought_record'];

const taskId = (number) => `T-${String(number).padStart(4, '0')}`;

function figures(measured, largest) {
  const size = `${count(largest)} tasks, ${count(largest * ROWS_PER_TASK)} rows`;
  const { task_get: get, search } = measured;
  return [
    ...JUDGED.map((tool) => ({
      id: `growth-${tool}`,
      what: `${tool} at ${size}`,
      unit: 'ms',
      reference: p50(measured[tool][0]),
      reference_is: 'the same call on an empty database',
      p50: p50(measured[tool][largest]),
      p99: p99(measured[tool][largest]),
      ...byRound(
        { empty: measured[tool][0], full: measured[tool][largest] },
        ({ empty, full }) => full / empty,
      ),
      bar: 'at most 1.5 × the empty database',
      limit: 1.5,
    })),
    {
      id: 'search',
      what: `task_list with search at ${count(largest)} tasks`,
      unit: 'ms',
      reference: p50(get[largest]),
      reference_is: 'task_get on the same database',
      p50: p50(search[largest]),
      p99: p99(search[largest]),
      ...byRound({ get: get[largest], search: search[largest] }, (round) => round.search / round.get),
      bar: 'at most 20 × task_get',
      limit: 20,
    },
  ];
}

/** What the plot shows: for each call, its p50 at each size. */
function seriesOf(measured) {
  return Object.entries(measured).map(([tool, bySize]) => ({
    name: tool === 'search' ? 'task_list with search' : tool,
    points: Object.entries(bySize).map(([tasks, samples]) => ({
      tasks: Number(tasks),
      p50: p50(samples),
      p99: p99(samples),
    })),
  }));
}

const count = (number) => number.toLocaleString('en');

/** Idle is when calls are quick for a second; on a machine where they never are, after a minute. */
async function waitForIdle(client) {
  const began = performance.now();
  for (let quick = 0; quick < 20 && performance.now() - began < IDLE_MS_MAX; ) {
    const [ms] = await timed(1, () => client.call('server_ping', {}));
    quick = ms < 3 ? quick + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
