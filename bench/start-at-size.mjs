import { SERVER } from './build.mjs';
import { connect, inScratch, startOnce } from './client.mjs';
import { filledDatabase } from './databases.mjs';
import { byRound, inTurns, p50, p99 } from './statistics.mjs';

const LIMIT = 1.2;

/** Process start to the first signed answer, on a long log and on an empty database in turns. */
export async function startAtSize({ size, rounds }) {
  const largeEnv = await filledDatabase(size);
  return await inScratch(async (_folder, emptyEnv) => {
    await startOnce(emptyEnv);
    const samples = await inTurns(rounds, { empty: () => start(emptyEnv), large: () => start(largeEnv) });
    const [empty, large] = [samples.empty, samples.large];
    return {
      rows: [
        {
          id: 'start-at-size',
          what: `start to the first signed answer at ${size.rows.toLocaleString('en')} rows`,
          unit: 'ms',
          reference: p50(empty),
          reference_is: 'the same on an empty database',
          p50: p50(large),
          p99: p99(large),
          ...byRound({ empty, large }, (round) => round.large / round.empty),
          bar: `at most ${LIMIT} × an empty database`,
          limit: LIMIT,
        },
      ],
    };
  });
}

async function start(env) {
  const client = connect(SERVER, { env });
  await client.initialize();
  const { result } = await client.request('tools/call', {
    name: 'task_create',
    arguments: { title: 'first after a start', project: 'start' },
  });
  const ms = performance.now() - client.started;
  await client.close();
  if (result?._meta?.['colibri/checkpoint'] === undefined) throw new Error('the first answer was not signed');
  return ms;
}
