import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { fillDatabase } from '../../../bench/fill-database.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { type ServerProcess, sleepMs } from '../../../tests/driver/server-process.ts';
import { tier } from '../../../tests/driver/tier.ts';
import { ListOutput, VerifyOutput } from '../../domains/trail/schema.ts';

const THOUGHTS = tier(1_500, 100_000);
const PING_EVERY_MS = 3;

test(`other calls are answered while a chain of ${THOUGHTS} thoughts is verified`, {
  timeout: 300_000,
}, async () => {
  const colibri = new Playground();
  try {
    mkdirSync(dirname(colibri.dbPath), { recursive: true });
    await fillDatabase(colibri.dbPath, {
      tasks: 1,
      rows: 0,
      thoughtsOnFirst: THOUGHTS,
      configDir: colibri.path('config', 'colibri'),
    });
    const server = await colibri.start();
    const restBytes = server.rssBytes;

    const plain = await pingWhile(server, 'audit_verify_chain', { task_id: 'T-0001' });
    const grownBytes = server.rssBytes - restBytes;
    const listed = await pingWhile(server, 'thought_record_list', {
      task_id: 'T-0001',
      limit: 1,
      verify_chain: true,
    });
    const traced = await pingWhile(server, 'audit_verify_chain', { task_id: 'T-0001', full_trace: true });

    expect(VerifyOutput.parse(plain.data)).toMatchObject({
      chain_valid: true,
      total_records: THOUGHTS,
      integrity_score: 100,
      broken_links: [],
    });
    expect(ListOutput.parse(listed.data)).toMatchObject({ thought_count: THOUGHTS, chain_valid: true });
    expect(VerifyOutput.parse(traced.data).trace).toHaveLength(THOUGHTS);
    for (const { pings } of [plain, listed]) expect(pings).toBeGreaterThan(THOUGHTS / 5_000);
    console.error(
      `${THOUGHTS} thoughts: verify ${plain.summary}; list and verify ${listed.summary}; with full_trace ${traced.summary}; memory +${Math.round(grownBytes / 1_048_576)} MB`,
    );
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});

interface Walked {
  readonly data: unknown;
  /** Pings answered before the walk was. */
  readonly pings: number;
  readonly summary: string;
}

/**
 * Calls a tool, and pings one after the other until it has answered. Not more of them at once: on a busy machine they would
 * come faster than they are answered, and each is let pass.
 */
async function pingWhile(server: ServerProcess, tool: string, args: object): Promise<Walked> {
  const began = performance.now();
  let [answered, longestMs] = [0, 0];
  let ended = false;
  const walk = server.call(tool, args).finally(() => {
    ended = true;
  });
  while (!ended) {
    const asked = performance.now();
    await server.call('server_ping');
    longestMs = Math.max(longestMs, performance.now() - asked);
    if (!ended) answered += 1;
    await sleepMs(PING_EVERY_MS);
  }
  const { envelope, error } = await walk;
  expect(error).toBeUndefined();
  const tookMs = performance.now() - began;
  return {
    data: envelope?.data,
    pings: answered,
    summary: `${tookMs.toFixed(0)} ms (${answered} pings meanwhile, longest wait ${longestMs.toFixed(0)} ms)`,
  };
}
