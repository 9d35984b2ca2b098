import { connect, inScratch } from './client.mjs';
import { inTurns, p50, p99 } from './statistics.mjs';

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
  return await inTurns(rounds, { bare: measure(bare, 'noop'), colibri: measure(server, 'server_ping') });
}

/** The same as figures, beside a bare server bundled alike. */
export async function coldStart(options) {
  const samples = await coldStartSamples(options);
  const row = (what, key, reach) => {
    const [a, b] = [samples.bare, samples.colibri].map((list) => list.map((sample) => sample[key]));
    return { what, reference_ms: p50(a), p50_ms: p50(b), p99_ms: p99(b), ratio: p50(b) / p50(a), reach };
  };
  return [
    row('cold start to the initialize answer', 'initialized', 1.3),
    row('cold start to the first tools/call answer', 'called', 1.6),
  ];
}
