import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startColibri } from '../driver/command-line.ts';
import { everyNode } from '../driver/other-nodes.ts';
import { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';

const isAsked = process.env.COLIBRI_TEST_NODES === '1';
const CALLS = 40;

describe.skipIf(!isAsked)('one database on every Node (skipped: npm run test:nodes gets the others)', () => {
  const { nodes, missing } = isAsked ? everyNode() : { nodes: new Map<number, string>(), missing: '' };
  let colibri: Playground;
  beforeEach(() => {
    colibri = new Playground();
  });
  afterEach(() => colibri.dispose());

  const startOn = async (node: string) => {
    const server = colibri.spawn({ node });
    await server.initialize();
    return server;
  };

  test('all three are there', () => {
    expect([...nodes.keys(), missing]).toEqual([20, 22, 24, '']);
    for (const [major, path] of nodes)
      expect(
        spawnSync(path, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }).stdout.trim(),
      ).toBe(String(major));
  });

  test('written by each version in turn, it is verified clean by every one', {
    timeout: 120_000,
  }, async () => {
    const ids: unknown[] = [];
    for (let round = 0; round < 2; round += 1) {
      for (const [major, node] of nodes) {
        const server = await startOn(node);
        ids.push(await work(server, `Node ${major}, round ${round}: ü 🐦`));
        await server.closeInput();
      }
    }

    expect(ids).toEqual(Array.from({ length: 2 * nodes.size }, (_, i) => `T-000${i + 1}`));
    await expectClean();
  });

  test('written by all versions at once, it has one order and is clean', { timeout: 120_000 }, async () => {
    const servers = await Promise.all([...nodes.values(), ...nodes.values()].map(startOn));
    const counts = await Promise.all(
      servers.map(async (server, s) => {
        const ids = [];
        for (let i = 0; i < CALLS; i += 1) ids.push(await work(server, `${s}/${i}`));
        return ids;
      }),
    );
    for (const server of servers) await server.closeInput();

    expect(new Set(counts.flat()).size).toBe(servers.length * CALLS);
    await expectClean();
  });

  /** A task with a thought. */
  async function work(server: ServerProcess, title: string): Promise<unknown> {
    const made = await server.call('task_create', { title, project: 'nodes' });
    const { task_id } = Object(made.envelope?.data) as { task_id: string };
    const thought = await server.call('thought_record', { task_id, type: 'analysis', content: title });
    expect([made.envelope?.ok, thought.envelope?.ok]).toEqual([true, true]);
    return task_id;
  }

  async function expectClean(): Promise<void> {
    const verdicts = await Promise.all(
      [...nodes.values()].map((node) => startColibri(colibri, ['verify', '--json'], { node })),
    );
    for (const { code, stdout } of verdicts) {
      expect(code, stdout).toBe(0);
      expect(JSON.parse(stdout)).toEqual(JSON.parse(verdicts[0]?.stdout ?? ''));
    }
  }
});
