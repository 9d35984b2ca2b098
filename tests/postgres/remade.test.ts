import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import type { ServerProcess } from '../driver/server-process.ts';

interface Health {
  readonly status: string;
  readonly log?: { readonly refused?: string };
}

describe.skipIf(NO_POSTGRES !== undefined)(`a database that is made anew ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  const create = async (server: ServerProcess, title: string) =>
    (await server.call('task_create', { title, project: 'p' })).envelope;
  const healthOf = async (server: ServerProcess): Promise<Health> => {
    const { envelope } = await server.call('server_health');
    return (envelope?.data as unknown as Health | undefined) ?? { status: JSON.stringify(envelope) };
  };
  const verdictOf = async (machine: Playground) => {
    const { code, stdout } = await runColibri(machine, ['verify', '--json']);
    const { findings } = JSON.parse(stdout) as { findings: { kind: string }[] };
    return { code, kinds: findings.map(({ kind }) => kind) };
  };
  const name = (url: string) => url.slice(url.lastIndexOf('/') + 1);
  const program = (tool: string, ...args: string[]) => {
    const env = { PATH: process.env.PATH, PGHOST: cluster.folder, PGUSER: 'owner' };
    const { status, stderr } = spawnSync(join(cluster.programs, tool), args, { env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${tool} ended with ${status}: ${stderr}`);
  };
  /** Two machines, both of which have signed, each with a server that runs. */
  const twoMachines = async (url: string) => {
    const machines = [new Playground(url), new Playground(url)] as const;
    const servers = [
      await machines[0].start({ answerMsMax: 120_000 }),
      await machines[1].start({ answerMsMax: 120_000 }),
    ] as const;
    for (const server of servers) expect(await create(server, 'before')).toMatchObject({ ok: true });
    return { machines, servers };
  };

  test('dropped and created again under running servers: nothing goes into the empty one, every machine says so, and one adoption begins anew', async () => {
    const url = await cluster.createDatabase();
    const { machines, servers } = await twoMachines(url);
    cluster.sql('postgres', `DROP DATABASE ${name(url)} WITH (FORCE)`);

    const gone = [];
    for (const server of servers) gone.push(await create(server, 'while it is gone'));
    cluster.sql('postgres', `CREATE DATABASE ${name(url)}`);
    const after = [];
    for (const server of servers) after.push(await create(server, 'into nothing'));
    const health = [];
    for (const server of servers) health.push(await healthOf(server));
    for (const server of servers) await server.closeInput();
    const found = [];
    for (const machine of machines) found.push(await verdictOf(machine));
    const late = await machines[1].start({ answerMsMax: 120_000 });
    const lateHealth = await healthOf(late);
    await late.closeInput();
    const adopted = await runColibri(machines[0], ['checkpoint', '--adopt', '--json']);
    const again = await machines[0].start({ answerMsMax: 120_000 });
    const made = await create(again, 'anew');
    const healthy = await healthOf(again);
    await again.closeInput();
    const verified = await verdictOf(machines[0]);
    for (const machine of machines) await machine.dispose();

    for (const envelope of gone) expect(envelope).toMatchObject({ ok: false });
    for (const envelope of after) expect(JSON.stringify(envelope)).toContain('does not have the schema');
    for (const { status } of health) expect(status).toContain('no longer has Colibri’s tables');
    expect(lateHealth.status).toBe('degraded');
    for (const { code, kinds } of found) {
      expect(code).toBe(1);
      expect(kinds.join()).toMatch(/replaced|missing/);
    }
    expect(lateHealth.log?.refused).toContain('is now an empty one');
    expect(JSON.parse(adopted.stdout)).toMatchObject({ adopted: true });
    expect(made).toMatchObject({ ok: true });
    expect(healthy.status).toBe('ok');
    expect(verified).toEqual({ code: 0, kinds: [] });
  }, 600_000);

  test('restored from an old dump under running servers: every machine that signed what is gone says so, and one adoption settles it', async () => {
    const url = await cluster.createDatabase();
    const { machines, servers } = await twoMachines(url);
    const dump = machines[0].path('old.dump');
    program('pg_dump', '-Fc', '-f', dump, name(url));
    for (const server of servers) expect(await create(server, 'not in the dump')).toMatchObject({ ok: true });
    cluster.sql('postgres', `DROP DATABASE ${name(url)} WITH (FORCE)`);
    program('createdb', name(url));
    program('pg_restore', '-d', name(url), dump);

    // The first calls find their connections gone.
    for (const server of servers) await create(server, 'lost with the connection');
    const health = [];
    for (const server of servers) {
      await create(server, 'after the restore');
      health.push(await healthOf(server));
    }
    const found = [];
    for (const machine of machines) found.push(await verdictOf(machine));
    const adopted = await runColibri(machines[0], ['checkpoint', '--adopt', '--json']);
    const signed = [];
    for (const server of servers) signed.push(await create(server, 'signed again'));
    const healthy = [];
    for (const server of servers) healthy.push((await healthOf(server)).status);
    for (const server of servers) await server.closeInput();
    const settled = [];
    for (const machine of machines) settled.push(await verdictOf(machine));
    for (const machine of machines) await machine.dispose();

    expect(health.map(({ status }) => status)).toEqual(['degraded', 'degraded']);
    for (const { code, kinds } of found) {
      expect(code).toBe(1);
      expect(kinds.join()).toMatch(/older-copy|cut-tail|rewritten/);
    }
    expect(JSON.parse(adopted.stdout)).toMatchObject({ adopted: true });
    for (const envelope of signed) expect(envelope).toMatchObject({ ok: true });
    expect(healthy).toEqual(['ok', 'ok']);
    for (const one of settled) expect(one).toEqual({ code: 0, kinds: [] });
  }, 600_000);
});
