import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { CuttingProxy } from '../driver/cutting-proxy.ts';
import type { ToolAnswer } from '../driver/message.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { tier } from '../driver/tier.ts';

const idOf = ({ envelope }: ToolAnswer) => (envelope as { data?: { task_id?: string } }).data?.task_id;

const create = (server: ServerProcess, title: string) =>
  server.call('task_create', { title, project: 'p', description: 'under load' });

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_200 && !isTrue(); tries += 1) await sleep(50);
  expect(isTrue()).toBe(true);
}

/** A primary with a standby, and the URL that names both. */
async function withStandby(
  mode: 'synchronous' | 'asynchronous',
  work: (primary: Cluster, standby: Cluster, url: string, name: string) => Promise<void>,
): Promise<void> {
  const primary = await startCluster();
  let standby: Cluster | undefined;
  try {
    const own = await primary.createDatabase();
    const name = own.slice(own.lastIndexOf('/') + 1);
    standby = await startCluster({}, primary);
    if (mode === 'synchronous') {
      primary.sql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'");
      primary.sql('postgres', 'SELECT pg_reload_conf()');
    }
    const both = [primary, standby].map(({ folder }) => encodeURIComponent(folder)).join(',');
    await work(primary, standby, `postgres://owner@${both}/${name}?target_session_attrs=read-write`, name);
  } finally {
    await standby?.stop();
    await primary.stop();
  }
}

describe.skipIf(NO_POSTGRES !== undefined)(`failover ${NO_POSTGRES ?? ''}`, () => {
  test(
    'with a synchronous standby, the servers go on by themselves, nothing acknowledged is lost, and the log verifies',
    async () => {
      await withStandby('synchronous', async (primary, standby, url, name) => {
        const machines = [new Playground(url), new Playground(url)] as const;
        const servers = await Promise.all(machines.map((machine) => machine.start({ answerMsMax: 90_000 })));
        const acknowledged: string[] = [];
        let isOver = false;
        const working = servers.map(async (server, i) => {
          for (let n = 0; !isOver; n += 1) {
            const id = idOf(await create(server, `${i} ${n}`));
            if (id !== undefined) acknowledged.push(id);
            else await sleep(50);
          }
        });
        while (acknowledged.length < tier(6, 100)) await sleep(20);
        await primary.kill();
        await standby.promote();
        const before = acknowledged.length;
        await sleep(tier(2_000, 10_000));
        isOver = true;
        await Promise.all(working);
        const after = await Promise.all(servers.map((server) => create(server, 'after')));
        await Promise.all(servers.map((server) => server.closeInput()));
        const here = standby.urlOf(name);
        const { rows, findings } = machines[0].readAudit(here);
        const verdicts = [];
        for (const machine of machines) verdicts.push(await runColibri(machine, ['verify', '--json']));
        const made = new Set(rows.flatMap(({ effects }) => effects.map(({ id }) => id)));
        const [state, open] = [stateFindings(here), openCalls(here)];
        for (const machine of machines) await machine.dispose();

        expect(before).toBeGreaterThan(0);
        const failed = after.filter(({ envelope }) => envelope?.ok !== true);
        expect(failed.map(({ envelope }) => JSON.stringify(envelope))).toEqual([]);
        expect(acknowledged.filter((id) => !made.has(id))).toEqual([]);
        expect([...findings, ...state, ...open]).toEqual([]);
        for (const { stdout } of verdicts)
          expect(JSON.parse(stdout)).toMatchObject({ findings: [], ok: true });
      });
    },
    tier(600_000, 1_800_000),
  );

  test('with an asynchronous standby, the loss is found by every machine that signed it, and one adoption settles it', async () => {
    await withStandby('asynchronous', async (primary, standby, url, name) => {
      const [first, second] = [new Playground(url), new Playground(url)] as const;
      const both = [first, second];
      const servers = await Promise.all(both.map((machine) => machine.start({ answerMsMax: 60_000 })));
      const createOnEach = async (title: string) => {
        const answers = [];
        for (const server of servers) answers.push(await create(server, title));
        return answers.map(({ envelope }) => envelope?.ok);
      };
      const verifyOnEach = async () => {
        const verdicts = [];
        for (const machine of both)
          verdicts.push(JSON.parse((await runColibri(machine, ['verify', '--json'])).stdout));
        return verdicts;
      };
      const health = async () => {
        const answers = [];
        for (const server of servers) answers.push(await server.call('server_health'));
        return answers.map(
          ({ envelope }) => (envelope as unknown as { data: { status: string } }).data.status,
        );
      };
      await createOnEach('before');
      const caughtUp = `SELECT '${primary.sql('postgres', 'SELECT pg_current_wal_lsn()').trim()}' <= pg_last_wal_replay_lsn()`;
      await until(() => standby.sql('postgres', caughtUp).trim() === 't');
      standby.sql('postgres', "ALTER SYSTEM SET primary_conninfo = ''");
      standby.sql('postgres', 'SELECT pg_reload_conf()');
      await until(() => standby.sql('postgres', 'SELECT count(*) FROM pg_stat_wal_receiver').trim() === '0');
      // Acknowledged by the primary, and nowhere else. The second machine signs last.
      const lost = [await createOnEach('lost'), await createOnEach('lost as well')];
      await primary.kill();
      await standby.promote();
      const goesOn = await createOnEach('after');
      const degraded = await health();
      const found = await verifyOnEach();

      const adopted = await runColibri(first, ['checkpoint', '--adopt', '--json']);
      const settled = await verifyOnEach();
      const signs = await createOnEach('signed again');
      const healthy = await health();
      const later = await verifyOnEach();
      await Promise.all(servers.map((server) => server.closeInput()));
      // Whoever puts an older copy back later finds no excuse in that adoption.
      standby.sql('postgres', `CREATE DATABASE older TEMPLATE ${name}`);
      for (const machine of both) await runColibri(machine, ['add', 'one more', '--project', 'p']);
      standby.sql('postgres', `ALTER DATABASE ${name} RENAME TO newer`);
      standby.sql('postgres', `ALTER DATABASE older RENAME TO ${name}`);
      const restored = await verifyOnEach();
      const refused = await runColibri(second, ['checkpoint', '--json']);
      for (const machine of both) await machine.dispose();

      expect(lost.flat()).toEqual([true, true, true, true]);
      expect(goesOn).toEqual([true, true]);
      expect(degraded).toEqual(['degraded', 'degraded']);
      for (const { findings } of found)
        expect(findings).toContainEqual(
          expect.objectContaining({ kind: expect.stringMatching(/cut-tail|older-copy|rewritten/) }),
        );
      expect(adopted.code).toBe(0);
      expect(settled.map(({ findings }) => findings)).toEqual([[], []]);
      expect(signs).toEqual([true, true]);
      expect(healthy).toEqual(['ok', 'ok']);
      expect(later.map(({ findings }) => findings)).toEqual([[], []]);
      for (const { findings } of restored)
        expect(findings).toContainEqual(
          expect.objectContaining({ kind: expect.stringMatching(/cut-tail|older-copy/) }),
        );
      expect(refused.code).toBe(1);
    });
  }, 600_000);

  test('a database that is away for 20 s under load: the servers go on by themselves, and nothing acknowledged is lost', async () => {
    const cluster = await startCluster();
    const url = await cluster.createDatabase();
    const machine = new Playground(url);
    try {
      const servers = [
        await machine.start({ answerMsMax: 240_000 }),
        await machine.start({ answerMsMax: 240_000 }),
      ];
      const acknowledged: string[] = [];
      let isOver = false;
      const working = servers.map(async (server, i) => {
        for (let n = 0; !isOver; n += 1) {
          const id = idOf(await create(server, `${i} ${n}`));
          if (id !== undefined) acknowledged.push(id);
          else await sleep(50);
        }
      });
      while (acknowledged.length < 6) await sleep(20);
      await cluster.kill();
      await sleep(20_000);
      await cluster.start();
      const before = acknowledged.length;
      for (let tries = 0; tries < 1_000 && acknowledged.length < before + 4; tries += 1) await sleep(100);
      isOver = true;
      await Promise.all(working);
      const exits = await Promise.all(servers.map((server) => server.closeInput()));
      const { rows, findings } = machine.readAudit();
      const made = new Set(rows.flatMap(({ effects }) => effects.map(({ id }) => id)));

      expect(exits).toEqual(servers.map(() => ({ code: 0, signal: null })));
      expect(acknowledged.length).toBeGreaterThan(before);
      expect(acknowledged.filter((id) => !made.has(id))).toEqual([]);
      expect([...findings, ...stateFindings(url), ...openCalls(url)]).toEqual([]);
    } finally {
      await machine.dispose();
      await cluster.stop();
    }
  }, 600_000);

  test('a connection that is cut in the middle of a commit: what happened is looked up, and the answer says it', async () => {
    const cluster = await startCluster();
    const proxy = new CuttingProxy(cluster.folder);
    await proxy.listen();
    const own = await cluster.createDatabase();
    const machine = new Playground(
      own.replace(encodeURIComponent(cluster.folder), encodeURIComponent(proxy.folder)),
    );
    try {
      interface Outcome {
        readonly where: string;
        readonly ok: boolean | undefined;
        readonly cut: number;
        readonly made: number;
        readonly again: boolean | undefined;
        readonly said: string;
      }
      const outcomes: Outcome[] = [];
      const name = own.slice(own.lastIndexOf('/') + 1);
      const count =
        'SELECT count(*) FROM colibri.tasks t JOIN colibri.texts x ON x.digest = t.title WHERE x.text =';
      const server = await machine.start({ answerMsMax: 60_000 });
      await create(server, 'first');
      // The first commit of a call records that it began, the second what it did.
      for (const where of ['before', 'behind'] as const)
        for (const n of [1, 2, 1, 2]) {
          const title = `${where} ${n} ${outcomes.length}`;
          const cuts = proxy.cuts;
          proxy.cutAt(where, n);
          const { envelope } = await create(server, title);
          const again = await create(server, `again ${title}`);
          const made = Number(cluster.sql(name, `${count} '${title}'`).trim());
          const cut = proxy.cuts - cuts;
          outcomes.push({
            where,
            ok: envelope?.ok,
            cut,
            made,
            again: again.envelope?.ok,
            said: JSON.stringify(envelope),
          });
        }
      await server.closeInput();
      const { rows, findings } = machine.readAudit(own);
      const verified = await runColibri(machine, ['verify', '--json']);

      expect(outcomes.map(({ cut }) => cut)).toEqual(outcomes.map(() => 1));
      for (const { where, ok, again, said, made } of outcomes) {
        expect({ ok, again, made }).toEqual({
          ok: where === 'behind',
          again: true,
          made: where === 'behind' ? 1 : 0,
        });
        if (where === 'before') expect(said).toContain('nothing was written');
      }
      expect(rows.filter(({ outcome }) => outcome === 'crashed')).toEqual([]);
      expect([...findings, ...openCalls(own), ...stateFindings(own)]).toEqual([]);
      expect(JSON.parse(verified.stdout)).toMatchObject({ findings: [], ok: true });
    } finally {
      await machine.dispose();
      await proxy.close();
      await cluster.stop();
    }
  }, 600_000);

  /** A server that writes nothing of a commit to the disk for a while unless somebody waits for it, and a proxy before it. */
  async function beforeForgetful(
    work: (cluster: Cluster, proxy: CuttingProxy, own: string, machine: Playground) => Promise<void>,
  ): Promise<void> {
    const cluster = await startCluster({ wal_writer_delay: '10s' });
    const own = await cluster.createDatabase();
    const { proxy, url } = await CuttingProxy.before(own);
    const machine = new Playground(url);
    try {
      await work(cluster, proxy, own, machine);
    } finally {
      await machine.dispose();
      await proxy.close();
      await cluster.stop();
    }
  }

  test('a call that ends late ends for good, also where the next call is lost with the server', async () => {
    await beforeForgetful(async (cluster, proxy, own, machine) => {
      const server = await machine.start({ answerMsMax: 60_000 });
      await create(server, 'first');
      proxy.cutAt('before', 2);
      const { envelope } = await create(server, 'cut');
      // Durable by now: that it began.
      cluster.sql('postgres', "SELECT pg_logical_emit_message(true, 'test', '')");
      // The call behind it ends it, and is between its two commits when the server is killed.
      proxy.holdBehind(1);
      const killed = create(server, 'killed');
      await until(() => proxy.isHolding);
      await cluster.killHard();
      proxy.release();
      const answers = [envelope?.ok, (await killed).envelope?.ok];
      const after = await create(server, 'after');

      expect(answers).toEqual([false, false]);
      expect(after.envelope?.ok).toBe(true);
      expect(openCalls(own)).toEqual([]);
      await server.closeInput();
      expect(machine.readAudit(own).findings).toEqual([]);
    });
  }, 600_000);

  test('a machine whose first try to join was cut off leaves no open call', async () => {
    await beforeForgetful(async (_, proxy, own, machine) => {
      const first = new Playground(own);
      try {
        const there = await first.start();
        await create(there, 'first');
        proxy.cutAt('before', 2);
        const server = await machine.start({ answerMsMax: 60_000 });
        await until(() => proxy.cuts === 1);
        let after = await create(server, 'after');
        for (let tries = 0; tries < 100 && after.envelope?.ok !== true; tries += 1) {
          await sleep(100);
          after = await create(server, 'after');
        }

        expect(after.envelope?.ok).toBe(true);
        expect(openCalls(own)).toEqual([]);
        for (const one of [there, server]) await one.closeInput();
        expect(machine.readAudit(own).findings).toEqual([]);
      } finally {
        await first.dispose();
      }
    });
  }, 600_000);
});
