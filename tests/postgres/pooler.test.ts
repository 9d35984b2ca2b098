import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { NO_POOLER, startPooler } from '../driver/pooler.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';

const missing = NO_POSTGRES ?? NO_POOLER;

describe.skipIf(missing !== undefined)(`a team's database behind PgBouncer ${missing ?? ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  /** What a server says that is started on a database behind a pooler, and what it leaves there. */
  async function behind(mode: 'transaction' | 'session') {
    const direct = await cluster.createDatabase();
    const name = direct.slice(direct.lastIndexOf('/') + 1);
    const pooler = await startPooler(cluster, mode);
    const machine = new Playground(pooler.urlOf(name));
    try {
      const server = await machine.start({ answerMsMax: 60_000 });
      const made = await server.call('task_create', { title: 'behind a pooler', project: 'p' });
      const health = await server.call('server_health');
      await server.closeInput();
      const verified = await runColibri(machine, ['verify', '--json']);
      return { made: made.envelope, health: health.envelope, verified };
    } finally {
      await machine.dispose();
      await pooler.stop();
    }
  }

  test('is refused with a reason where sessions are shared between transactions', async () => {
    const { made, health } = await behind('transaction');

    expect(made).toMatchObject({ ok: false });
    expect(health).toMatchObject({
      data: {
        status: 'degraded',
        db: { open: false, reason: expect.stringContaining('is behind a pooler that shares sessions') },
      },
    });
  });

  test('serves where each client has a session of its own', async () => {
    const { made, health, verified } = await behind('session');

    expect(made).toMatchObject({ ok: true });
    expect(health).toMatchObject({ data: { status: 'ok' } });
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, findings: [] });
  });
});
