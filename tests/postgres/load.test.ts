import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import type { ToolAnswer } from '../driver/message.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { tier } from '../driver/tier.ts';

const idOf = ({ envelope }: ToolAnswer) => (envelope as { data?: { task_id?: string } }).data?.task_id;

describe.skipIf(NO_POSTGRES !== undefined)(`a team's database under load ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ max_connections: '100' });
  });
  afterAll(() => cluster?.stop());

  /** Two machines on one database; what both find when all is over. */
  async function onTwoMachines(work: (machines: readonly [Playground, Playground]) => Promise<void>) {
    const url = await cluster.createDatabase();
    const machines = [new Playground(url), new Playground(url)] as const;
    try {
      await work(machines);
      const { findings } = machines[0].readAudit();
      expect(findings).toEqual([]);
      expect(stateFindings(url)).toEqual([]);
      for (const machine of machines) {
        const { stdout } = await runColibri(machine, ['verify', '--json']);
        expect(JSON.parse(stdout)).toMatchObject({ findings: [] });
      }
    } finally {
      for (const machine of machines) await machine.dispose();
    }
    return url;
  }

  const create = (server: ServerProcess, title: string) =>
    server.call('task_create', { title, project: 'p', description: 'under load' });

  test(
    'eight processes on two machines write one log: no gap, no id twice, no error',
    async () => {
      const writes = tier(10, 500);
      const ids: string[] = [];
      const url = await onTwoMachines(async (machines) => {
        const starting = Array.from({ length: 8 }, (_, i) =>
          machines[i % 2 === 0 ? 0 : 1].start({ answerMsMax: 120_000 }),
        );
        const servers = await Promise.all(starting);
        await Promise.all(
          servers.map(async (server, i) => {
            for (let n = 0; n < writes; n += 1) {
              const answer = await create(server, `${i} ${n}`);
              ids.push(idOf(answer) ?? JSON.stringify(answer.envelope));
            }
          }),
        );
        await Promise.all(servers.map((server) => server.closeInput()));
      });

      expect(ids.filter((id) => !/^T-\d+$/.test(id))).toEqual([]);
      expect(new Set(ids).size).toBe(8 * writes);
      expect(openCalls(url)).toEqual([]);
    },
    tier(300_000, 1_800_000),
  );

  test(
    'what was acknowledged before kill -9 is there, and each open call is explained once',
    async () => {
      const acknowledged: string[] = [];
      const url = await onTwoMachines(async ([machine, other]) => {
        for (let round = 0; round < tier(4, 100); round += 1) {
          const server = await machine.start();
          await server.call('server_ping');
          const calls = Array.from({ length: 12 }, (_, n) =>
            create(server, `${round} ${n}`).then(
              (answer) => acknowledged.push(idOf(answer) ?? ''),
              () => undefined,
            ),
          );
          await new Promise((resolve) => setTimeout(resolve, 20 + ((round * 37) % 200)));
          await server.killHard();
          await Promise.all(calls);
        }
        for (const one of [machine, other]) {
          const server = await one.start();
          await create(server, 'after');
          await server.closeInput();
        }
      });

      const { calls, rows } = new Playground(url).readAudit();
      const made = new Set(rows.flatMap(({ effects }) => effects.map(({ id }) => id)));
      expect(acknowledged.filter((id) => !made.has(id))).toEqual([]);
      expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
      expect(openCalls(url)).toEqual([]);
    },
    tier(300_000, 1_800_000),
  );

  test(
    'a server of the database that is killed loses nothing acknowledged, and the servers go on by themselves',
    async () => {
      const acknowledged: string[] = [];
      const url = await onTwoMachines(async (machines) => {
        const servers = await Promise.all(machines.map((machine) => machine.start({ answerMsMax: 60_000 })));
        let isOver = false;
        const working = servers.map(async (server, i) => {
          for (let n = 0; !isOver; n += 1) {
            const id = idOf(await create(server, `${i} ${n}`));
            if (id !== undefined) acknowledged.push(id);
            else await new Promise((resolve) => setTimeout(resolve, 50));
          }
        });
        for (let round = 0; round < tier(2, 20); round += 1) {
          await new Promise((resolve) => setTimeout(resolve, 500 + ((round * 131) % 400)));
          await cluster.killHard();
        }
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        isOver = true;
        await Promise.all(working);
        // A call that meets the lost connection says that nothing was written; the next one finds the server.
        const goesOn = async (server: ServerProcess) => {
          for (let tries = 0; tries < 20; tries += 1)
            if (idOf(await create(server, 'after')) !== undefined) return true;
          return false;
        };
        expect(await Promise.all(servers.map(goesOn))).toEqual([true, true]);
        await Promise.all(servers.map((server) => server.closeInput()));
      });

      const { rows } = new Playground(url).readAudit();
      const made = new Set(rows.flatMap(({ effects }) => effects.map(({ id }) => id)));
      expect(acknowledged.length).toBeGreaterThan(0);
      expect(acknowledged.filter((id) => !made.has(id))).toEqual([]);
      expect(openCalls(url)).toEqual([]);
    },
    tier(300_000, 1_800_000),
  );

  test('a client that is stopped while it writes holds up the others for 10 s at most', async () => {
    await onTwoMachines(async ([machine, other]) => {
      const stopped = await machine.start();
      const going = await other.start({ answerMsMax: 60_000 });
      await create(going, 'first');
      const calls = Array.from({ length: 64 }, (_, n) => create(stopped, `stopped ${n}`));
      await new Promise((resolve) => setTimeout(resolve, 30));
      stopped.kill('SIGSTOP');

      const ids = [];
      for (let n = 0; n < 5; n += 1) ids.push(idOf(await create(going, `going ${n}`)));
      stopped.kill('SIGCONT');
      await Promise.allSettled(calls);

      // The first may have waited for as long as anybody may hold the lock.
      expect(ids.slice(1)).not.toContain(undefined);
      await stopped.closeInput();
      await going.closeInput();
    });
  }, 600_000);

  test('a log is verified while others write to it, and nothing is found wrong', async () => {
    await onTwoMachines(async ([machine, other]) => {
      const servers = [await machine.start(), await other.start()];
      // Both have joined.
      for (const server of servers) await create(server, 'first');
      let isOver = false;
      const working = servers.map(async (server, i) => {
        for (let n = 0; !isOver; n += 1) {
          const id = idOf(await create(server, `${i} ${n}`));
          await server.call('task_update', { task_id: id, status: 'todo' });
        }
      });
      const verdicts = [];
      for (let n = 0; n < tier(3, 20); n += 1) verdicts.push(await runColibri(other, ['verify', '--json']));
      isOver = true;
      await Promise.all(working);
      for (const server of servers) await server.closeInput();

      for (const { stdout } of verdicts) expect(JSON.parse(stdout)).toMatchObject({ findings: [], ok: true });
    });
  });
});
