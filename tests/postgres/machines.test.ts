import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CuttingProxy } from '../driver/cutting-proxy.ts';
import type { ToolAnswer } from '../driver/message.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import { sleepMs, until } from '../driver/server-process.ts';
import { openCalls } from '../driver/state-file.ts';

// A process is told from others by its machine: by the name of the host, among other things.
const ELSEWHERE = ['unshare', '--uts', 'sh', '-c', 'hostname elsewhere && exec "$0" "$@"'];
const missing =
  NO_POSTGRES ??
  (spawnSync(ELSEWHERE[0] ?? '', ['--uts', 'hostname', 'elsewhere']).status === 0
    ? undefined
    : 'needs the right to name a machine');

describe.skipIf(missing !== undefined)(`machines that share a database ${missing ?? ''}`, () => {
  let cluster: Cluster;
  let url: string;
  let here: Playground;
  let there: Playground;
  beforeAll(async () => {
    cluster = await startCluster();
    url = await cluster.createDatabase();
    [here, there] = [new Playground(url), new Playground(url)];
  });
  afterAll(async () => {
    for (const machine of [here, there]) await machine?.dispose();
    await cluster?.stop();
  });

  const dataOf = ({ envelope }: ToolAnswer) => envelope?.data as Record<string, unknown> | undefined;

  test('what one that is gone left open is explained once by another that runs, and what it held is abandoned', async () => {
    const running = await here.start({ answerMsMax: 60_000 });
    const { proxy, url: held } = await CuttingProxy.before(url);
    there.onDispose(() => proxy.close());
    const gone = await there.start({
      ...{ wrapper: ELSEWHERE, clientName: 'gone', answerMsMax: 60_000 },
      env: { COLIBRI_DATABASE_URL: held },
    });
    for (const title of ['held', 'other'])
      expect(dataOf(await gone.call('task_create', { title, project: 'p' }))).toBeDefined();
    for (const status of ['todo', 'in_progress'])
      await gone.call('task_update', { task_id: 'T-0001', status });
    const before = dataOf(await running.call('task_get', { task_id: 'T-0001' }));
    // Between its two commits: what it sends behind the first does not get through.
    proxy.holdBehind();
    const calls = Array.from({ length: 20 }, (_, n) =>
      gone
        .call('thought_record', { task_id: 'T-0002', type: 'plan', content: `${n}` })
        .catch(() => undefined),
    );
    await until(
      () => proxy.isHolding,
      10_000,
      () => 'no call began',
    );
    await gone.killHard();
    await Promise.all(calls);
    const left = openCalls(url);
    expect(left.length).toBeGreaterThan(0);
    const atOnce = dataOf(await running.call('task_get', { task_id: 'T-0001' }));

    // A minute of silence, and a minute between two looks.
    for (let n = 0; n < 150 && openCalls(url).length > 0; n += 1) await sleepMs(1_000);
    const after = dataOf(await running.call('task_get', { task_id: 'T-0001' }));
    await running.closeInput();

    const { calls: told, findings } = here.readAudit();
    expect(findings).toEqual([]);
    expect(openCalls(url)).toEqual([]);
    for (const { enter, exits } of told) {
      expect(exits).toHaveLength(1);
      if (left.includes(enter.position)) expect(exits[0]?.outcome).toBe('crashed');
    }
    expect(before).toMatchObject({ holder: { held_by: 'gone', present: true, abandoned: false } });
    expect(atOnce).toMatchObject({ holder: { present: true, abandoned: false } });
    expect(after).toMatchObject({ holder: { held_by: 'gone', present: false, abandoned: true } });
  }, 600_000);

  test('one that is silent while the database is restarted is still there', async () => {
    const looking = await here.start({ answerMsMax: 60_000 });
    const silent = await there.start({ wrapper: ELSEWHERE, clientName: 'silent', answerMsMax: 60_000 });
    await silent.call('task_create', { title: 'held too', project: 'p' });
    for (const status of ['todo', 'in_progress'])
      await silent.call('task_update', { task_id: 'T-0003', status });
    await cluster.killHard();
    const locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    const waits = async (holds: (count: number) => boolean) => {
      for (let n = 0; n < 60 && !holds(Number(cluster.sql('postgres', locks))); n += 1) await sleepMs(1_000);
    };

    const atOnce = dataOf(await looking.call('task_get', { task_id: 'T-0003' }));
    // Neither makes a call, and both take their locks again.
    await waits((count) => count >= 2);
    const held = Number(cluster.sql('postgres', locks));
    for (const server of [looking, silent]) await server.closeInput();

    expect(atOnce).toMatchObject({ holder: { held_by: 'silent', present: true, abandoned: false } });
    expect(held).toBeGreaterThanOrEqual(2);
  }, 600_000);
});
