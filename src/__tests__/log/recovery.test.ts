import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../clock.ts';
import { READING_TOOLS } from '../../domains/rules.ts';
import { UNSIGNED } from '../../log/append.ts';
import { createAuditLog, recoverOpenCalls } from '../../log/audit-log.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { isGone, processIdentity } from '../../storage/process-identity.ts';
import { openScratch, scratchPath } from '../storage/scratch.ts';
import { openCalls, taskCalls, verifiedRows } from './log-rows.ts';
import { NEW_YEAR, stillClock } from './still-clock.ts';

const clock = stillClock();

/** A process that does nothing until it is killed. */
async function aProcess(): Promise<{ identity: string; kill: () => Promise<void> }> {
  const child: ChildProcess = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
    stdio: 'ignore',
  });
  await once(child, 'spawn');
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  return { identity: processIdentity(child.pid), kill };
}

async function deadProcess(): Promise<string> {
  const { identity, kill } = await aProcess();
  await kill();
  return identity;
}

/** Begins a writing call in the name of a process, and leaves it open. */
async function begin(
  storage: StorageEngine,
  process: string,
  tool = 'probe',
  args = {},
  mutates = true,
): Promise<void> {
  const log = createAuditLog({ storage, clock, process, keeper: UNSIGNED });
  const event = {
    tool,
    args,
    kept: { args, texts: [] },
    source: 'cli' as const,
    timestamp: 0,
    correlationId: clock.uuid(),
    actor: 'ada',
    mutates,
    schemaValid: true,
    repaired: [],
    outside: {},
  };
  await log.enter([event], !mutates);
}

const recover = (storage: StorageEngine, process = processIdentity(), at: Clock = clock) =>
  recoverOpenCalls({ storage, clock: at, process, keeper: UNSIGNED }, READING_TOOLS);

const endings = async (storage: StorageEngine) =>
  (await verifiedRows(storage)).map(({ tool, outcome }) => `${tool} ${outcome}`);

describe('recovery', () => {
  test('explains a call whose process is gone with one exit row', async () => {
    const storage = await openScratch();
    await begin(storage, await deadProcess());

    const explained = await recover(storage);
    const [enter, exit] = await verifiedRows(storage);

    expect(explained).toBe(1);
    expect(exit).toEqual({
      ...enter,
      position: 2,
      stage: 'exit',
      args_hash: null,
      outcome: 'crashed',
      process: processIdentity(),
    });
    expect(await openCalls(storage)).toEqual([]);
  });

  test('files what it explains under the task that the call named', async () => {
    const storage = await openScratch();
    const dead = await deadProcess();
    await begin(storage, dead, 'task_update', { task_id: 'T-0003', progress: 5 });
    await begin(storage, dead, 'task_create', { title: 'a' });

    await recover(storage);

    expect(await taskCalls(storage)).toEqual([[3, 3]]);
  });

  test('explains a read too, and files it under no task', async () => {
    const storage = await openScratch();
    await begin(storage, await deadProcess(), 'audit_verify_chain', { task_id: 'T-0003' }, false);

    await recover(storage);

    expect(await endings(storage)).toEqual(['audit_verify_chain running', 'audit_verify_chain crashed']);
    expect(await openCalls(storage)).toEqual([]);
    expect(await taskCalls(storage)).toEqual([]);
  });

  test('explains each call once, however often it runs', async () => {
    const path = scratchPath();
    const [one, other] = [await openScratch(path), await openScratch(path)];
    const dead = await deadProcess();
    await begin(one, dead, 'first');
    await begin(one, dead, 'second');

    const explained = await Promise.all([recover(one, 'a'), recover(other, 'b'), recover(one, 'c')]);

    expect(explained.reduce((sum, count) => sum + count)).toBe(2);
    expect(await endings(one)).toEqual([
      'first running',
      'second running',
      'first crashed',
      'second crashed',
    ]);
  });

  test('leaves the call of a process that lives, however old', async () => {
    const storage = await openScratch();
    const { identity } = await aProcess();
    await begin(storage, identity);
    await begin(storage, processIdentity());

    const explained = await recover(storage, processIdentity(), stillClock(NEW_YEAR + 86_400_000));

    expect(explained).toBe(0);
    expect(await openCalls(storage)).toEqual([1, 2]);
  });

  test('explains what a process left as soon as it is gone', async () => {
    const storage = await openScratch();
    const { identity, kill } = await aProcess();
    await begin(storage, identity);
    const whileItLived = await recover(storage);

    await kill();

    expect(whileItLived).toBe(0);
    expect(await recover(storage)).toBe(1);
  });

  test('has nothing to say of a log without open calls', async () => {
    const storage = await openScratch();

    expect(await recover(storage)).toBe(0);
    expect(await verifiedRows(storage)).toEqual([]);
  });

  test('keeps time from running backwards', async () => {
    const storage = await openScratch();
    await begin(storage, await deadProcess());

    await recover(storage, processIdentity(), stillClock(NEW_YEAR - 5_000));

    expect((await verifiedRows(storage)).map(({ at }) => at)).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T00:00:00.000Z',
    ]);
  });
});

describe('a process', () => {
  const parts = () =>
    processIdentity().split('.') as [machine: string, boot: string, pid: string, start: string];

  test('has one name for as long as it lives, and not that of another', async () => {
    const { identity } = await aProcess();

    expect(processIdentity()).toBe(processIdentity());
    expect(identity).not.toBe(processIdentity());
    expect(processIdentity()).toMatch(/^[0-9a-f]{6}\.[0-9a-f]{6}\.\d+\.\w+$/);
  });

  test('that runs is not gone', () => {
    expect(isGone(processIdentity(), Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  test('that has ended is gone at once', async () => {
    expect(isGone(await deadProcess(), 0)).toBe(true);
  });

  test.runIf(process.platform === 'linux')('is gone when its number was given to another', () => {
    const [machine, boot, pid, start] = parts();

    expect(isGone([machine, boot, pid, `${start}0`].join('.'), 0)).toBe(true);
  });

  test('of an earlier boot is gone, whoever has its number now', () => {
    const [machine, , pid, start] = parts();

    expect(isGone([machine, 'ffffff', pid, start].join('.'), 0)).toBe(true);
  });

  test('of another machine is given a minute, since nobody here can look', () => {
    const [, boot, pid, start] = parts();
    const elsewhere = ['ffffff', boot, pid, start].join('.');

    expect(isGone(elsewhere, 60_000)).toBe(false);
    expect(isGone(elsewhere, 60_001)).toBe(true);
  });

  test.each(['', 'x', '....', 'not an identity at all'])(
    'with a name that makes no sense is not waited for: %j',
    (name) => {
      expect(isGone(name, 60_001)).toBe(true);
    },
  );
});
