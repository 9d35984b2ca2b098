import { connect, inScratch } from './client.mjs';
import { byRound, inTurns, p50, p99 } from './statistics.mjs';

/** Process start to the answer to `initialize`, and to the first `tools/call`, of both servers in turns. */
export async function coldStartSamples({ rounds, server, bare }) {
  const measure = (script, tool) => () =>
    inScratch(async (_folder, env) => {
      const client = connect(script, { env });
      await client.initialize();
      const initialized = performance.now() - client.started;
      await client.request('tools/call', { name: tool, arguments: {} });
      const called = performance.now() - client.started;
      await client.close();
      return { initialized, called };
    });
  const samples = await inTurns(rounds, {
    bare: measure(bare, 'noop'),
    colibri: measure(server, 'server_ping'),
  });
  return { bare: samples.bare.flat(), colibri: samples.colibri.flat() };
}

/** The same as figures, beside a bare server bundled alike. */
export async function coldStart(options) {
  const samples = await coldStartSamples(options);
  const row = (id, what, key, limit) => {
    const [bare, colibri] = [samples.bare, samples.colibri].map((list) => list.map((start) => [start[key]]));
    return {
      id,
      what,
      unit: 'ms',
      reference: p50(bare),
      reference_is: 'bare SDK server, bundled alike',
      p50: p50(colibri),
      p99: p99(colibri),
      ...byRound({ bare, colibri }, (round) => round.colibri / round.bare),
      bar: `at most ${limit} × the bare server`,
      limit,
    };
  };
  return {
    rows: [
      row('cold-start-initialize', 'cold start to the initialize answer', 'initialized', 1.3),
      row('cold-start-call', 'cold start to the first tools/call answer', 'called', 1.6),
    ],
  };
}
