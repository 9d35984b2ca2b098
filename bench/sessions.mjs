import { SERVER } from './build.mjs';
import { connect, inScratch, startOnce } from './client.mjs';
import { fill } from './databases.mjs';
import { p50, p99, timed } from './statistics.mjs';

const FINALIZE_MS_MAX = 100;
const WAIT_MS_MAX = 50;

/** Sealing a session of many records, and verifying a long chain while others call. */
export async function sessions({ records, chain, rounds }) {
  const sealed = [];
  for (let round = 0; round < rounds; round += 1) sealed.push(await finalize(records));
  const wait = await waitDuring(chain);
  return {
    rows: [
      {
        id: 'finalize',
        what: `merkle_finalize of ${records.toLocaleString('en')} records`,
        unit: 'ms',
        reference: p50(sealed.map(({ ping }) => ping)),
        reference_is: 'server_ping on the same server',
        p50: p50(sealed.map(({ ms }) => ms)),
        p99: p99(sealed.map(({ ms }) => ms)),
        value: p50(sealed.map(({ ms }) => ms)),
        bar: `at most ${FINALIZE_MS_MAX} ms`,
        limit: FINALIZE_MS_MAX,
      },
      {
        id: 'wait',
        what: `longest wait of a call while ${chain.toLocaleString('en')} thoughts verify`,
        unit: 'ms',
        reference: wait.typical,
        reference_is: 'half of the calls meanwhile',
        p50: wait.longest,
        value: wait.longest,
        bar: `at most ${WAIT_MS_MAX} ms`,
        limit: WAIT_MS_MAX,
        note: `verified in ${Math.round(wait.total)} ms, ${wait.pings} calls meanwhile`,
      },
    ],
  };
}

async function finalize(records) {
  return await inScratch(async (_folder, env) => {
    await startOnce(env);
    await fill(env, { tasks: 1, rows: 0 });
    const client = connect(SERVER, { env });
    await client.initialize();
    await client.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'bench' });
    await client.close();
    await fill(env, { tasks: 0, rows: 0, thoughtsOnFirst: records });
    const again = connect(SERVER, { env });
    await again.initialize();
    const pings = await timed(50, () => again.call('server_ping', {}));
    const [ms] = await timed(1, () => again.call('merkle_finalize', { session_id: 'A-0001' }));
    await again.close();
    return { ms, ping: p50(pings) };
  });
}

async function waitDuring(chain) {
  return await inScratch(async (_folder, env) => {
    await startOnce(env);
    await fill(env, { tasks: 1, rows: 0, thoughtsOnFirst: chain });
    const client = connect(SERVER, { env });
    await client.initialize();
    await timed(50, () => client.call('server_ping', {}));
    let verifying = true;
    const verification = timed(1, () => client.call('audit_verify_chain', { task_id: 'T-0001' })).finally(
      () => {
        verifying = false;
      },
    );
    const pings = [];
    while (verifying) pings.push(...(await timed(1, () => client.call('server_ping', {}))));
    const [total] = await verification;
    await client.close();
    return { total, longest: Math.max(...pings), pings: pings.length, typical: p50(pings) };
  });
}
