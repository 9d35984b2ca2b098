import { importSource, SERVER } from './build.mjs';
import { connect, inScratch, startOnce } from './client.mjs';
import { p50, timed } from './statistics.mjs';

/** Sealing a session of many records, and verifying a long chain while others call. */
export async function sessions({ records, chain }) {
  const { fillDatabase } = await importSource('fill-database');
  const finalize = await inScratch(async (_folder, env) => {
    await startOnce(env);
    await fillDatabase(env.COLIBRI_DB_PATH, { tasks: 1, rows: 0 });
    const client = connect(SERVER, { env });
    await client.initialize();
    await client.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'bench' });
    await client.close();
    await fillDatabase(env.COLIBRI_DB_PATH, { tasks: 0, rows: 0, thoughtsOnFirst: records });
    const again = connect(SERVER, { env });
    await again.initialize();
    await timed(20, () => again.call('server_ping', {}));
    const [ms] = await timed(1, () => again.call('merkle_finalize', { session_id: 'A-0001' }));
    await again.close();
    return ms;
  });
  const wait = await inScratch(async (_folder, env) => {
    await startOnce(env);
    await fillDatabase(env.COLIBRI_DB_PATH, { tasks: 1, rows: 0, thoughtsOnFirst: chain });
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
  return [
    { what: `merkle_finalize of ${records} records`, p50_ms: finalize, reach_ms: 100 },
    {
      what: `longest wait of a call while ${chain} thoughts verify (${Math.round(wait.total)} ms, ${wait.pings} calls meanwhile)`,
      p50_ms: wait.longest,
      reach_ms: 50,
    },
  ];
}
