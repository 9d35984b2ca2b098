import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Playground } from '../driver/playground.ts';
import { type Random, randomFrom, seededRandom } from '../driver/random.ts';
import { NODE, SERVER_FILE } from '../driver/server-process.ts';
import { FULL, figure, tier } from '../driver/tier.ts';
import { battery, eachOf, noStrace } from './battery.ts';
import { type Ended, mutate, runWithin, Surroundings } from './surroundings.ts';

const CLI_FILE = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const WITHIN_MS = 60_000;
const LANES = 2;
const TIMES = tier(4, 500);
const COMMANDS_QUICK = 3;
const STDERR_CHARS = 500;

const git = spawnSync('git', ['--exec-path'], { encoding: 'utf8' });
const OURS = new RegExp(`/(?:node|git|openssl)$|^${git.stdout?.trim() || '/nowhere'}/`);

battery(
  'R41',
  `whatever is done to and in .colibri, the key folder and .git, nothing else is touched or started, everything ends, and what was acknowledged is there or not called intact, ${TIMES} times`,
  async (colibri) => {
    const random = seededRandom('surroundings');
    const counts = { worlds: 0, runs: 0, acknowledged: 0, intact: 0, not_intact: 0, not_opened: 0 };
    const problems: string[] = [];
    const seeds = Array.from({ length: TIMES }, () => random.between(0, 2 ** 31));
    const lanes = await Promise.all(Array.from({ length: LANES }, (_, i) => prepare(colibri, `lane${i}`)));
    await eachOf(
      seeds,
      async (seed) => {
        const lane = lanes.pop();
        if (lane === undefined) throw new Error('more at once than lanes');
        await inOneWorld(lane, randomFrom(seed), counts, problems);
        lanes.push(lane);
      },
      LANES,
    );
    figure('R41', { ...counts, programs: noStrace === undefined ? 'watched' : 'not watched' });
    expect(problems).toEqual([]);
  },
  { unless: git.status === 0 ? undefined : 'needs git', timeoutMs: tier(300_000, 14_400_000) },
);

async function prepare(colibri: Playground, name: string): Promise<Surroundings> {
  const world = new Surroundings(colibri.path(name));
  const run = async (...args: string[]) => {
    const ended = await command(world, args);
    if (ended.code !== 0) throw new Error(`${args.join(' ')}: ${ended.stderr}`);
  };
  spawnSync('git', ['init', '-q', world.project], { env: world.env });
  await run('init');
  await serve(world, 0);
  await run('anchor', '--git');
  await run('checkpoint');
  world.keep();
  return world;
}

interface Counts {
  worlds: number;
  runs: number;
  acknowledged: number;
  intact: number;
  not_intact: number;
  not_opened: number;
}

async function inOneWorld(
  world: Surroundings,
  random: Random,
  counts: Counts,
  problems: string[],
): Promise<void> {
  world.restore();
  const done = mutate(world, random);
  const about = `seed ${random.seed}: ${done.join('; ')}`;
  const before = world.untouchable();
  const check = (what: string, ended: Ended) => {
    counts.runs += 1;
    const tell = (how: string) => problems.push(`${what} ${how} (${about})`);
    if (ended.isLate) tell('did not end');
    for (const program of ended.started) if (!OURS.test(program)) tell(`started ${program}`);
    if (world.untouchable() !== before) tell('touched what is not ours');
    if (/\n {4}at /.test(ended.stderr)) tell(`failed: ${ended.stderr.slice(0, STDERR_CHARS)}`);
  };
  const served = await serve(world, counts.worlds + 1);
  check('server', served.ended);
  // The demonstration has a world of its own, so it sees little of this one.
  const demo = FULL && random.oneIn(50) ? [['demo']] : [];
  const commands = FULL
    ? [...COMMANDS, ...demo]
    : Array.from({ length: COMMANDS_QUICK }, () => random.pick(COMMANDS));
  for (const args of commands) check(args.join(' '), await command(world, args));

  const verified = await command(world, ['verify', '--json']);
  check('verify', verified);
  counts.worlds += 1;
  counts.acknowledged += served.acknowledged.length;
  counts[verdictOf(verified)] += 1;
  if (verdictOf(verified) !== 'intact') return;
  // It is called intact: then a server finds everything that was acknowledged.
  const listed = await serve(world, undefined, served.acknowledged);
  if (listed.missing.length > 0) problems.push(`intact, and ${listed.missing.join()} is missing (${about})`);
}

function verdictOf({ stdout, code }: Ended): 'intact' | 'not_intact' | 'not_opened' {
  if (code === 0) return 'intact';
  return stdout.includes('"findings"') ? 'not_intact' : 'not_opened';
}

const COMMANDS: readonly (readonly string[])[] = [
  ['board'],
  ['log', '--all'],
  ['show', 'T-0001'],
  ['doctor'],
  ['doctor', '--json'],
  ['checkpoint'],
  ['anchor', '--git'],
  ['anchor', '--tsq', 'OUT/question.tsq'],
  ['export', '-o', 'OUT/bundle'],
  ['export', '-o', 'OUT/bundle.zip'],
  ['prove', 'T-0001', '-o', 'OUT/proof.json'],
  ['report', '-o', 'OUT/report.html'],
  ['obsidian', '--vault', 'VAULT'],
  ['call', 'task_list', '{}'],
  ['init'],
];

async function command(world: Surroundings, args: readonly string[]): Promise<Ended> {
  const named = args.map((arg) =>
    arg.replace('OUT', world.path('out')).replace('VAULT', world.path('vault')),
  );
  return await runWithin(WITHIN_MS, [NODE, CLI_FILE, ...named], optionsOf(world));
}

function optionsOf(world: Surroundings) {
  const trace = noStrace === undefined ? { trace: `${world.path()}.trace` } : {};
  return { cwd: world.project, env: world.env, ...trace };
}

interface Served {
  readonly ended: Ended;
  /** Titles of tasks and contents of thoughts that were answered with ok. */
  readonly acknowledged: readonly string[];
  readonly missing: readonly string[];
}

/** One server over its whole life: some writing calls of round `round`, or a look for what was acknowledged. */
async function serve(
  world: Surroundings,
  round: number | undefined,
  wanted: readonly string[] = [],
): Promise<Served> {
  const texts = round === undefined ? [] : [1, 2, 3].map((i) => `round ${round} text ${i}`);
  const calls =
    round === undefined
      ? [{ name: 'task_list', arguments: { limit: 200 } }]
      : [
          ...texts.map((title) => ({ name: 'task_create', arguments: { title, project: 'demo' } })),
          { name: 'thought_record', arguments: { task_id: 'T-0001', type: 'plan', content: 'why' } },
        ];
  const client = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const messages = [
    { jsonrpc: '2.0', id: 'start', method: 'initialize', params: client },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    ...calls.map((params, id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params })),
  ];
  const input = messages.map((message) => `${JSON.stringify(message)}\n`).join('');
  const ended = await runWithin(WITHIN_MS, [NODE, SERVER_FILE], { ...optionsOf(world), input });
  const answers = ended.stdout.split('\n').flatMap(parsed);
  const acknowledged = texts.filter((_, id) => answers.some((answer) => answer.id === id && isOk(answer)));
  const all = ended.stdout;
  return { ended, acknowledged, missing: wanted.filter((text) => !all.includes(text)) };
}

interface Answer {
  readonly id?: unknown;
  readonly result?: {
    readonly structuredContent?: { readonly ok: boolean; readonly data?: { ok?: boolean } };
  };
}

function isOk({ result }: Answer): boolean {
  const envelope = result?.structuredContent;
  return envelope?.ok === true && envelope.data?.ok !== false;
}

function parsed(line: string): Answer[] {
  try {
    return [JSON.parse(line) as Answer];
  } catch {
    return [];
  }
}
