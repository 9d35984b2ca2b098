import { expect } from 'vitest';
import type { Random } from '../../../tests/driver/random.ts';
import { systemClock } from '../../clock.ts';
import { READING_TOOLS } from '../../domains/rules.ts';
import { UNSIGNED } from '../../log/append.ts';
import { recoverOpenCalls } from '../../log/audit-log.ts';
import { processIdentity } from '../../storage/process-identity.ts';
import { loadDriver, type SqliteDriver } from '../../storage/sqlite/driver.ts';
import { forwarding } from '../storage/drivers.ts';
import { type Answer, type Bench, openBench } from './bench.ts';

/** What may happen beside a call. After a failed commit nobody but the file knows whether it happened, so there are two. */
export const TROUBLES = [
  'restart',
  'clock jump',
  'busy',
  'full',
  'failed commit, not done',
  'failed commit, done',
] as const;
type Trouble = (typeof TROUBLES)[number];

/** No process has this number: calls that are left open are those of a process that is gone. */
const DEAD_PID = 2 ** 30;
/** Jumps stay within a day of each other: beyond that, a stored time is a finding and no lower bound. */
const DAY_MS = 86_400_000;
const WRITING = ['task_create', 'task_update', 'thought_record', 'audit_session_start', 'merkle_finalize'];

/**
 * A bench in a bad place: now and then the disk is full, busy or failing, the clock jumps, the server starts again. It does
 * what a careful client does: repeats what was certainly not done, and looks up what nobody knows.
 */
export async function openTroubledBench(
  folder: string,
  random: Random,
  happened: (trouble: Trouble) => void,
): Promise<Bench> {
  const disk = createDisk(await loadDriver());
  let skewMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + skewMs };
  const ground = {
    driver: disk.driver,
    clock,
    process: processIdentity(DEAD_PID),
    log: () => undefined,
  };
  let bench = await openBench(folder, {}, ground);

  async function restart(): Promise<void> {
    await bench.close();
    bench = await openBench(folder, {}, ground);
    const { storage } = bench;
    await recoverOpenCalls({ storage, clock, process: ground.process, keeper: UNSIGNED }, READING_TOOLS);
  }

  async function troubled<T>(name: string, args: object, actor?: string): Promise<Answer<T>> {
    const trouble = random.pick(TROUBLES);
    if (trouble === 'restart') await restart();
    else if (trouble === 'clock jump') skewMs = random.pick([0, -0.4, 0.5]) * DAY_MS;
    else if (WRITING.includes(name)) disk.arm(trouble, random);
    const before = await lastPosition(bench);
    const answer = await bench.call<T>(name, args, actor);
    const fired = disk.disarm();
    if (fired || trouble === 'restart' || trouble === 'clock jump') happened(trouble);
    if (!fired || trouble === 'busy') return answer;
    const expected = trouble === 'full' ? 'ERR_STORAGE_FULL' : 'ERR_STORAGE_UNCERTAIN';
    const isRefusal = !codeOf(answer).includes(expected);
    if (isRefusal || trouble !== 'full') await restart();
    if (isRefusal) {
      // It has nothing that could be lost. Only the row that says so was not written, and the start has explained that.
      expect(answer.ok).toBe(false);
      return answer;
    }
    if (trouble === 'full') return await bench.call<T>(name, args, actor);
    return (await lookUp<T>(bench, name, before)) ?? (await bench.call<T>(name, args, actor));
  }

  const callAlone = <T>(name: string, args: object, actor?: string) =>
    random.oneIn(6) ? troubled<T>(name, args, actor) : bench.call<T>(name, args, actor);

  return {
    path: bench.path,
    get storage() {
      return bench.storage;
    },
    call: callAlone,
    // What a failing disk does to a batch is another test's: which of its calls to repeat depends on how it was cut.
    together: async (calls) => {
      const [only, ...others] = calls;
      if (only !== undefined && others.length === 0) return [await callAlone(...only)];
      if (random.oneIn(6)) await restart();
      return await bench.together(calls);
    },
    findings: () => bench.findings(),
    close: () => bench.close(),
  };
}

function codeOf(answer: Answer<unknown>): string {
  return answer.ok ? 'ok' : `${answer.error.code} ${answer.error.message}`;
}

async function lastPosition(bench: Bench): Promise<number> {
  const row = await bench.storage.read((tx) =>
    tx.get<{ position: number }>('SELECT max(position) AS position FROM actions'),
  );
  return row?.position ?? 0;
}

/** What the call would have been answered if it was done after all, from what the log keeps of it. */
async function lookUp<T>(bench: Bench, tool: string, before: number): Promise<Answer<T> | undefined> {
  const kept = await bench.storage.read((tx) =>
    tx.get<{ body: string }>(
      `SELECT p.body FROM audit_rows a JOIN action_payloads p ON p.position = a.position
       WHERE a.position > ? AND a.stage = 'exit' AND a.tool = ? AND a.outcome = 'ok'`,
      before,
      tool,
    ),
  );
  return kept === undefined ? undefined : { ok: true, data: (JSON.parse(kept.body) as { result: T }).result };
}

/** An error as SQLite throws it. */
function diskError(errcode: number): Error {
  return Object.assign(new Error(`the disk was told to fail with ${errcode}`), { errcode });
}

const [BUSY, IO_ERROR, FULL] = [5, 10, 13];

/** A driver that fails once, at a statement drawn at random. */
function createDisk(real: SqliteDriver) {
  let armed: { trouble: Trouble; left: number } | undefined;
  let fired = false;

  function meets(trouble: Trouble, sql: string): boolean {
    if (armed?.trouble !== trouble) return false;
    armed.left -= 1;
    if (armed.left > 0 || !STATEMENTS[trouble]?.test(sql)) return false;
    armed = undefined;
    fired = true;
    return true;
  }

  function run<T>(sql: string, work: () => T): T {
    if (meets('busy', sql)) throw diskError(BUSY);
    if (meets('full', sql)) throw diskError(FULL);
    if (meets('failed commit, not done', sql)) throw diskError(IO_ERROR);
    const result = work();
    if (meets('failed commit, done', sql)) throw diskError(IO_ERROR);
    return result;
  }

  const driver: SqliteDriver = {
    ...real,
    open(path, options) {
      const connection = real.open(path, options);
      return {
        exec: (sql) => connection.exec(sql),
        close: () => connection.close(),
        function: (...of) => connection.function(...of),
        prepare(sql) {
          const statement = connection.prepare(sql);
          return {
            ...forwarding(statement),
            run: (...params) => run(sql, () => statement.run(...params)),
          };
        },
      };
    },
  };

  return {
    driver,
    arm(trouble: Trouble, random: Random) {
      fired = false;
      armed = { trouble, left: random.between(1, 12) };
    },
    /** Whether it came to it. */
    disarm(): boolean {
      armed = undefined;
      const did = fired;
      fired = false;
      return did;
    },
  };
}

/** Where each can strike: at the first such statement once the count has run down. */
const STATEMENTS: Partial<Record<Trouble, RegExp>> = {
  busy: /^BEGIN IMMEDIATE/,
  full: /^(INSERT|UPDATE|DELETE)/,
  'failed commit, not done': /^COMMIT/,
  'failed commit, done': /^COMMIT/,
};
