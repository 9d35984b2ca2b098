import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { modernMeta } from '../driver/era.ts';
import type { WireError } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { NODE, SERVER_FILE, type ServerProcess } from '../driver/server-process.ts';
import { tier } from '../driver/tier.ts';
import { proves } from './proves.ts';
import { type Desk, type Output, openDesk } from './tasks-desk.ts';
import { DOCUMENTS, type MakeCall, TaughtAgent, type Turn } from './taught-agent.ts';

const TASKS = tier(30, 150);

/** A client with a server process of its own. `kill` ends that without a word. */
interface Life {
  readonly call: MakeCall;
  kill(): Promise<void>;
}

type Born = (colibri: Playground) => Promise<Life>;

/** Three clients as different as there are: the official SDK of either generation, and one written by hand without a handshake. */
const CLIENTS: Readonly<Record<string, Born>> = {
  async 'old-sdk'(colibri) {
    const client = new OldClient({ name: 'old-sdk', version: '1.0.0' });
    const transport = new OldTransport(commandIn(colibri));
    await client.connect(transport);
    return officialLife(colibri, client, transport.pid);
  },
  async 'by-hand'(colibri) {
    const server = await colibri.start({ era: 'modern' });
    const meta = modernMeta({ clientName: 'by-hand' });
    return lifeOf(server, (tool, args) => server.callModern(tool, args, meta));
  },
  async 'new-sdk'(colibri) {
    const client = new Client({ name: 'new-sdk', version: '2.0.0' });
    const transport = new StdioClientTransport(commandIn(colibri));
    await client.connect(transport);
    return officialLife(colibri, client, transport.pid);
  },
};

function commandIn({ folder, environment }: Playground) {
  return {
    ...{ command: NODE, args: [SERVER_FILE], cwd: folder, stderr: 'ignore' as const },
    env: { ...environment },
  };
}

/** What both generations of the SDK have in common. */
interface OfficialClient {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

function officialLife(colibri: Playground, client: OfficialClient, pid: number | null): Life {
  if (pid === null) throw new Error('the client has started nothing');
  colibri.onDispose(() => client.close());
  return {
    call: async (name, args) => answerIn((await client.callTool({ name, arguments: { ...args } })) as Wire),
    async kill() {
      process.kill(pid, 'SIGKILL');
      await client.close();
    },
  };
}

interface Wire {
  readonly structuredContent?: unknown;
}
type Envelope = { readonly data?: { readonly error?: WireError }; readonly error?: WireError };

function answerIn({ structuredContent }: Wire): Awaited<ReturnType<MakeCall>> {
  const { data = {}, error } = structuredContent as Envelope;
  return { data: data as Record<string, unknown>, error: error ?? data.error };
}

function lifeOf(
  server: ServerProcess,
  call: (tool: string, args: object) => Promise<{ message: { result?: unknown } }>,
): Life {
  return {
    call: async (tool, args) => answerIn((await call(tool, args)).message.result as Wire),
    kill: async () => void (await server.killHard()),
  };
}

/** One agent through all its lives, until it has found nothing to do often enough. */
async function live(born: Born, document: string, colibri: Playground, random: Random) {
  const refusals: WireError[] = [];
  let [lives, idle, turns] = [0, 0, 0];
  while (idle < 3) {
    lives += 1;
    const life = await born(colibri);
    // The calls it has left to make; the last lives are long enough to get to the end.
    let left = lives > tier(4, 10) ? Number.POSITIVE_INFINITY : random.between(10, lives === 1 ? 40 : 80);
    const agent = new TaughtAgent(document, async (tool, args) => {
      left -= 1;
      if (left < 0) throw new Killed();
      return await life.call(tool, args);
    });
    try {
      while (idle < 3) {
        const turn: Turn = await agent.turn();
        turns += 1;
        idle = turn === 'nothing to do' ? idle + 1 : 0;
        expect(turns, 'the backlog has an end').toBeLessThan(40 * TASKS);
      }
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
    refusals.push(...agent.refusals);
    if (left < 0) await life.kill();
  }
  return { lives, refusals };
}

class Killed extends Error {}

/** Somebody claims a task, dies, and never comes back. */
async function visit(colibri: Playground): Promise<void> {
  const server = await colibri.start({ clientName: 'visitor' });
  const life = lifeOf(server, (tool, args) => server.call(tool, args));
  const agent = new TaughtAgent(DOCUMENTS.skill, life.call);
  let claimed: unknown = '';
  while (typeof claimed === 'string') claimed = await agent.claim();
  await life.kill();
}

/** Small projects, pipelines and chains of dependencies; some have an owner who is to finish what another began. */
async function fill(desk: Desk, random: Random): Promise<void> {
  for (let i = 1; i <= TASKS; i += 1) {
    const earlier = () => `T-${String(random.between(Math.max(1, i - 20), i - 1)).padStart(4, '0')}`;
    await desk.create({
      title: `task ${i}`,
      ...(random.oneIn(4) && { workflow: 'pipeline' as const }),
      ...(i > 1 && random.oneIn(3) && { depends_on: [earlier()] }),
      ...(random.oneIn(6) && { assignee: random.pick(Object.keys(CLIENTS)) }),
      priority: random.pick(['low', 'normal', 'high', 'critical'] as const),
    });
  }
}

type PastCall = NonNullable<Output<'task_get'>['history']>[number];

/** Goes through what was done to a task. Every hold has a beginning and an end, and passes on only where that is said. */
function explain(task_id: string, history: readonly PastCall[]): string[] {
  let [holder, ends] = [undefined as string | undefined, 0];
  const takeovers: string[] = [];
  for (const { actor, outcome, args, taken_over_from, error_code } of history.toReversed()) {
    if (outcome !== 'ok') expect(error_code, task_id).toMatch(/^ERR_(INVALID_TRANSITION|TASK_HELD)$/);
    const isMove = args.status !== undefined || args.takeover === true;
    if (outcome !== 'ok' || !isMove) continue;
    if (taken_over_from === undefined) expect([undefined, actor], task_id).toContain(holder);
    else {
      expect(taken_over_from.held_by, task_id).toBe(holder);
      takeovers.push(holder === actor ? 'restarted' : 'taken over');
    }
    const status = String(args.status ?? 'in_progress');
    if (/^done$/i.test(status)) ends += 1;
    holder = /^(in_progress|GATHER|ANALYZE|PLAN|APPLY|VERIFY)$/.test(status) ? actor : undefined;
  }
  expect([holder, ends], task_id).toEqual([undefined, 1]);
  return takeovers;
}

proves(
  'agents.backlog',
  `three agents of different clients work a backlog of ${TASKS} tasks to its end, with crashes, restarts and takeovers`,
  async ({ colibri }) => {
    const random = seededRandom('a backlog');
    const desk = await openDesk(colibri, { clientName: 'planner' });
    await fill(desk, random);
    await visit(colibri);
    const documents = Object.values(DOCUMENTS);

    const agents = await Promise.all(
      Object.values(CLIENTS).map((born, i) =>
        live(born, documents[i % documents.length] as string, colibri, random),
      ),
    );

    const passed: string[] = [];
    for (let i = 1; i <= TASKS; i += 1) {
      const task_id = `T-${String(i).padStart(4, '0')}`;
      const task = await desk.ok('task_get', { task_id, include_history: true });
      expect(task.status.toLowerCase(), task_id).toBe('done');
      expect(task.history, task_id).toHaveLength(task.history_total ?? 0);
      passed.push(...explain(task_id, task.history ?? []));
    }
    const crashes = agents.reduce((sum, { lives }) => sum + lives - 1, 0);
    const refused = agents.flatMap(({ refusals }) => refusals.map(({ code }) => code));
    const [restarted, takenOver] = ['restarted', 'taken over'].map(
      (how) => passed.filter((one) => one === how).length,
    );
    console.error(JSON.stringify({ tasks: TASKS, crashes, restarted, takenOver, refusals: refused.length }));
    expect(crashes).toBeGreaterThanOrEqual(3);
    expect(takenOver).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    const { code, stdout } = await runColibri(colibri, ['verify', '--json']);
    expect(code, stdout).toBe(0);
    const { size, replayed_through } = JSON.parse(stdout) as Record<string, number>;
    expect(replayed_through, stdout).toBe(size);
  },
  { timeoutMs: tier(120_000, 600_000) },
);
