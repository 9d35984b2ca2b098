import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { treeRoot } from '../../src/integrity/tree.ts';
import { LIMITS } from '../../src/limits.ts';
import { readAuditFile } from '../driver/audit-file.ts';
import { startColibri } from '../driver/command-line.ts';
import type { Playground } from '../driver/playground.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { sleepMs } from '../driver/server-process.ts';
import { FULL, figure, tier } from '../driver/tier.ts';
import { battery, noStrace } from './battery.ts';
import { Checker } from './checker.ts';
import { type Fate, ForgetfulDisk } from './power-cut.ts';
import { type Answered, Recorder, writeChapters } from './recorder.ts';
import { STORAGE_SYSCALLS, Tracer } from './strace.ts';
import { readTrace, TRACE_ARGUMENTS, type TraceEvent } from './trace.ts';

const FATES: readonly Fate[] = ['none', 'half', 'all'];
const CUTS_A_FATE = tier(3, 300);
const CUTS_A_FATE_OF_TWO = tier(2, 100);
const CHAPTERS = tier(5, 20);
const CHAPTERS_AT_ONCE = 5;
const WITHOUT_FDATASYNC = new URL('without-fdatasync.mjs', import.meta.url).href;
/** Calls that wait together share an fsync: the case a mistake would hide in. */
const LANES = 4;

const checker = noStrace === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

battery(
  'R4',
  `no acked call is lost to a power cut, and no checkpoint that left the process contradicted, ${3 * CUTS_A_FATE} cuts: unsynced writes dropped, half kept and torn, all kept`,
  async (colibri) => {
    const random = seededRandom('R4');
    const run = await traceLoad(colibri);

    const result = await cutPower(colibri, run, random, FATES);

    figure('R4', {
      ...result.counts,
      calls: run.acks.length,
      checkpoints: run.signed.length,
      events: run.events.length,
      logs: run.logs,
    });
    expect(run.signed.length).toBeGreaterThan(run.acks.length);
    if (FULL) expect(run.logs, 'the log is to be started over at least once').toBeGreaterThan(1);
    expect(result.findings).toEqual([]);
    await expectServable(colibri, run, random);
  },
  { unless: noStrace },
);

battery(
  'R4',
  `the same with two processes that merge and restart one another’s log, ${3 * CUTS_A_FATE_OF_TWO} cuts`,
  async (colibri) => {
    const random = seededRandom('R4, two processes');
    const run = await traceTwo(colibri);

    const { findings, counts } = await cutPower(colibri, run, random, FATES, CUTS_A_FATE_OF_TWO);

    figure('R4', { processes: 2, ...counts, calls: run.acks.length, log_restarts: run.logs });
    expect(findings).toEqual([]);
    if (FULL) expect(run.logs, 'the log is to be started over at least once').toBeGreaterThan(0);
  },
  { unless: noStrace },
);

battery(
  'R4',
  'the same check is red for a server without its fdatasync',
  async (colibri) => {
    const random = seededRandom('R4, broken on purpose');
    const run = await traceLoad(colibri, { NODE_OPTIONS: `--import ${WITHOUT_FDATASYNC}` });

    const { findings, counts } = await cutPower(colibri, run, random, ['none']);

    figure('R4', { control: 'no fdatasync', ...counts });
    expect(findings.filter((finding) => finding.includes('acked and lost'))).not.toEqual([]);
    // A cut before the first answer loses nothing, and of three cuts two may be that early.
    const often = FULL ? counts.cuts / 2 : 0;
    expect(counts.cuts_that_lose).toBeGreaterThan(often);
    expect(counts.contradicted).toBeGreaterThan(often);
  },
  { unless: noStrace },
);

interface Left {
  readonly moment: number;
  readonly size: number;
  readonly root: string;
}

/** A load as the disk saw it, with the moment at which each answer left the process. */
interface TracedRun {
  readonly events: readonly TraceEvent[];
  readonly disk: ForgetfulDisk;
  readonly acks: readonly { readonly moment: number; readonly call: Answered }[];
  /** Checkpoints that left the process, in an answer or into the memory of what was signed last, each with its moment. */
  readonly signed: readonly Left[];
  /** How often somebody began a write-ahead log, or began it anew. */
  readonly logs: number;
  /** What was acked before the trace began. */
  readonly owed: readonly Answered[];
}

async function traceLoad(colibri: Playground, env: Record<string, string> = {}): Promise<TracedRun> {
  const tracePath = colibri.path('trace');
  const strace = [
    'strace',
    '-f',
    ...TRACE_ARGUMENTS,
    '-e',
    `trace=${STORAGE_SYSCALLS.join()}`,
    '-o',
    tracePath,
  ];
  const server = await colibri.start({ wrapper: strace, env });
  const recorder = new Recorder(server);
  for (let rest = CHAPTERS; rest > 0; rest -= CHAPTERS_AT_ONCE) {
    await writeChapters(recorder, LANES, CHAPTERS_AT_ONCE);
    // A pause in which the server merges its log.
    await sleepMs(10 * LIMITS.quietMs);
  }
  await server.closeInput();

  return toRun(colibri, tracePath, [{ acked: recorder.acked }]);
}

/** Two servers, and a trace that begins when both are up and their files lie still. */
async function traceTwo(colibri: Playground): Promise<TracedRun> {
  const servers = [await colibri.start(), await colibri.start()] as const;
  const recorders = servers.map((server) => new Recorder(server));
  for (const recorder of recorders) await recorder.data('task_create', { title: 'before', project: 'load' });
  const owed = recorders.flatMap((recorder) => recorder.acked.splice(0));
  const before = new Map(
    ['', '-wal'].map((end) => [colibri.dbPath + end, readFileSync(colibri.dbPath + end)] as const),
  );
  const [one, other] = servers;
  const tracing = [...TRACE_ARGUMENTS, '-e', `trace=${STORAGE_SYSCALLS.join()}`];
  const tracer = await Tracer.attach(colibri, one, tracing, [other]);
  await Promise.all(recorders.map((recorder) => writeChapters(recorder, 2, CHAPTERS * 2)));
  await one.closeInput();
  await other.closeInput();
  await tracer.detach();
  const answered = recorders.map(({ acked }, i) => ({ acked, thread: servers[i]?.pid }));
  return { ...toRun(colibri, tracer.logPath, answered, before), owed };
}

interface AnsweredBy {
  readonly acked: readonly Answered[];
  /** The thread that writes the answers; undefined where there is only one process. */
  readonly thread?: number | undefined;
}

function toRun(
  colibri: Playground,
  tracePath: string,
  answered: readonly AnsweredBy[],
  before?: ReadonlyMap<string, Buffer>,
): TracedRun {
  const events = readTrace(tracePath);
  rmSync(tracePath);
  const headers = events.filter(
    (event) => event.kind === 'write' && event.path === `${colibri.dbPath}-wal` && event.offset === 0,
  );
  return {
    events,
    disk: new ForgetfulDisk(events, colibri.dbPath, before),
    acks: answered.flatMap((by) => acksIn(events, by)).sort((a, b) => a.moment - b.moment),
    signed: signaturesIn(events),
    logs: headers.length,
    owed: [],
  };
}

/** An answer counts from the moment its last byte began to leave. */
function acksIn(events: readonly TraceEvent[], { acked, thread }: AnsweredBy): TracedRun['acks'] {
  const calls = new Map(acked.map((call) => [call.id, call]));
  const acks: { moment: number; call: Answered }[] = [];
  let text = '';
  for (const event of events) {
    if (event.kind !== 'output' || (thread !== undefined && event.thread !== thread)) continue;
    const lines = (text + event.bytes.toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const call = calls.get((JSON.parse(Buffer.from(line, 'latin1').toString()) as { id: number }).id);
      if (call !== undefined) acks.push({ moment: event.at, call });
    }
  }
  expect(acks).toHaveLength(acked.length);
  return acks;
}

/** A checkpoint, as it stands in a file or inside JSON. */
const CHECKPOINT = /colibri\/[0-9a-f]{32}(?:\n|\\n)(\d+)(?:\n|\\n)([A-Za-z0-9+/]{43}=)(?:\n|\\n){2}/g;

function signaturesIn(events: readonly TraceEvent[]): Left[] {
  return events.flatMap((event) => {
    const isMemory = event.kind === 'write' && basename(dirname(event.path)) === 'signed';
    if (event.kind !== 'output' && !isMemory) return [];
    return [...event.bytes.toString('latin1').matchAll(CHECKPOINT)].map(([, size, root = '']) => ({
      moment: event.at,
      size: Number(size),
      root: Buffer.from(root, 'base64').toString('hex'),
    }));
  });
}

/** What the log that a cut has left says against the checkpoints that were out by then. */
function contradictionsOf(db: string, signed: readonly Left[]): string[] {
  const largest = signed.reduce<Left | undefined>(
    (most, one) => (one.size > (most?.size ?? 0) ? one : most),
    undefined,
  );
  if (largest === undefined) return [];
  const hashes = readAuditFile(db).entries.map(({ content_hash }) => content_hash);
  if (hashes.length < largest.size) return [`${largest.size} rows were signed, ${hashes.length} are there`];
  const isSame = treeRoot(hashes.slice(0, largest.size)) === largest.root;
  return isSame ? [] : [`the first ${largest.size} rows are not those that were signed`];
}

interface Counts extends Record<string, number> {
  cuts: number;
  cuts_that_lose: number;
  contradicted: number;
  acked_lost: number;
  worst_lost: number;
}

async function cutPower(
  colibri: Playground,
  run: TracedRun,
  random: Random,
  fates: readonly Fate[],
  cutsAFate = CUTS_A_FATE,
): Promise<{ findings: string[]; counts: Counts }> {
  const findings: string[] = [];
  const counts: Counts = { cuts: 0, cuts_that_lose: 0, contradicted: 0, acked_lost: 0, worst_lost: 0 };
  for (const fate of fates) {
    for (let i = 0; i < cutsAFate; i += 1) {
      const moment = momentIn(run, random);
      const { folder, acked } = writeOut(colibri, run, moment, fate, random);
      const verdict = await checker?.judge({ db: join(folder, basename(colibri.dbPath)), acked });
      if (verdict === undefined) throw new Error('no checker');
      counts.cuts += 1;
      counts.acked_lost += verdict.lost;
      counts.cuts_that_lose += verdict.lost > 0 ? 1 : 0;
      counts.worst_lost = Math.max(counts.worst_lost, verdict.lost);
      findings.push(...verdict.findings.map((finding) => `cut at ${moment}, ${fate} kept: ${finding}`));
      const signed = run.signed.filter((head) => head.moment < moment);
      const contradictions = contradictionsOf(join(folder, basename(colibri.dbPath)), signed);
      counts.contradicted += contradictions.length;
      findings.push(...contradictions.map((what) => `cut at ${moment}, ${fate} kept: ${what}`));
      rmSync(folder, { recursive: true });
    }
  }
  return { findings, counts };
}

/** Every other cut comes right behind an answer, where a missing sync shows. */
function momentIn({ events, acks }: TracedRun, random: Random): number {
  if (random.oneIn(2)) return random.pick(acks).moment + 1;
  return random.between(1, events.at(-1)?.done ?? 1);
}

function writeOut(
  colibri: Playground,
  run: TracedRun,
  moment: number,
  fate: Fate,
  random: Random,
): { folder: string; acked: Answered[] } {
  const folder = colibri.path(`cut-${moment}-${fate}`);
  mkdirSync(folder, { recursive: true });
  run.disk.writeOut(moment, fate, random, folder);
  const acked = run.acks.filter((ack) => ack.moment < moment).map(({ call }) => call);
  return { folder, acked: [...run.owed, ...acked] };
}

/** The key of the log, and a memory that was lost with the power: only that the log was begun. */
function keyWithoutMemory(colibri: Playground, folder: string): string {
  const config = join(folder, 'config');
  cpSync(colibri.path('config'), config, { recursive: true });
  const [log = ''] = readdirSync(join(config, 'colibri', 'logs'));
  const signed = join(config, 'colibri', 'logs', log, 'signed');
  for (const name of readdirSync(signed)) if (name !== 'initial') rmSync(join(signed, name));
  rmSync(join(signed, '..', 'kept'));
  return config;
}

/** A server takes up what a cut has left, explains what was open, and `colibri verify` has nothing to say. */
async function expectServable(colibri: Playground, run: TracedRun, random: Random): Promise<void> {
  for (const fate of FATES) {
    const { folder, acked } = writeOut(colibri, run, momentIn(run, random), fate, random);
    const db = join(folder, basename(colibri.dbPath));
    const env = { COLIBRI_DB_PATH: db, XDG_CONFIG_HOME: keyWithoutMemory(colibri, folder) };
    const server = await colibri.start({ env });
    await server.call('task_create', { title: 'after the cut', project: 'load' });
    await server.closeInput();
    const verified = await startColibri(colibri, ['verify', '--json'], { env });
    const verdict = await checker?.judge({ db, acked, settled: true });

    expect(verdict?.findings, fate).toEqual([]);
    expect(JSON.parse(verified.stdout), verified.stderr).toMatchObject({ findings: [] });
    expect(readFileSync(db).length).toBeGreaterThan(0);
  }
}
