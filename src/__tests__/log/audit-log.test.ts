import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AuditSink, ToolEnterEvent, ToolExitEvent } from '../../audit-sink.ts';
import { appendRow, readHead, timeAfter } from '../../log/append.ts';
import { createAuditLog } from '../../log/audit-log.ts';
import { recoverOpenCalls } from '../../log/recovery.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openScratch, scratchPath } from '../storage/scratch.ts';
import { ENTER_ROW, openCalls, payloads, verifiedRows } from './log-rows.ts';
import { NEW_YEAR, stillClock } from './still-clock.ts';

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

const GONE = 'another.machine.1.1';

async function aLog(storage?: StorageEngine) {
  const engine = storage ?? (await openScratch());
  const clock = stillClock();
  const log = createAuditLog({ storage: engine, clock, process: GONE });
  const entering = (facts: Partial<ToolEnterEvent> = {}): ToolEnterEvent =>
    Object.freeze({
      tool: 'probe',
      args: { b: 1, a: 'é' },
      timestamp: clock.monotonic(),
      correlationId: clock.uuid(),
      actor: 'ada',
      mutates: true,
      schemaValid: true,
      repaired: [],
      ...facts,
    });
  return { engine, clock, log, entering };
}

const leaving = (entered: ToolEnterEvent, facts: Partial<ToolExitEvent> = {}): ToolExitEvent =>
  Object.freeze({
    entered,
    tool: entered.tool,
    correlationId: entered.correlationId,
    durationMs: 5,
    outcome: 'ok',
    effects: [],
    ...facts,
  });

/** A whole writing call, its end in a transaction of its own as the stages do it. */
async function call(
  log: AuditSink,
  engine: StorageEngine,
  event: ToolEnterEvent,
  facts: Partial<ToolExitEvent> = {},
) {
  await log.enter(event);
  await engine.write(async (tx) => log.exit(leaving(event, facts), tx));
}

describe('a writing call', () => {
  test('is two rows that share their number, and say everything of the call', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ repaired: ['a: text taken as number'] });
    const effects = [{ table: 'tasks', id: 'T-0001', hash: 'b'.repeat(64), columns: '0123' }];

    await call(log, engine, event, { result: { done: true }, effects });
    const [enter, exit] = await verifiedRows(engine);

    expect(enter).toEqual({
      position: 1,
      sequence_no: 1,
      stage: 'enter',
      tool: 'probe',
      actor: 'ada',
      correlation_id: event.correlationId,
      at: '2026-01-01T00:00:00.000Z',
      schema_valid: true,
      args_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      outcome: 'running',
      error_code: null,
      duration_ms: null,
      result_hash: null,
      effects: [],
      process: GONE,
      repaired: ['a: text taken as number'],
    });
    expect(exit).toEqual({
      ...enter,
      position: 2,
      stage: 'exit',
      args_hash: null,
      outcome: 'ok',
      duration_ms: 5,
      result_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      effects,
      repaired: [],
    });
  });

  test('keeps arguments and result beside its rows, under salted digests', async () => {
    const { engine, log, entering } = await aLog();

    await call(log, engine, entering(), { result: { z: 1, y: [2] } });
    const [enter, exit] = await verifiedRows(engine);
    const kept = await payloads(engine);
    const [args, result] = [kept.get(1), kept.get(2)];

    expect(args?.body).toBe('{"a":"é","b":1}');
    expect(result?.body).toBe('{"y":[2],"z":1}');
    expect(enter?.args_hash).toBe(sha256(`${args?.salt}${args?.body}`));
    expect(exit?.result_hash).toBe(sha256(`${result?.salt}${result?.body}`));
  });

  test('has another digest for the same arguments each time', async () => {
    const { engine, log, entering } = await aLog();

    await call(log, engine, entering());
    await call(log, engine, entering());
    const [first, , second] = await verifiedRows(engine);

    expect(first?.args_hash).not.toBe(second?.args_hash);
  });

  test('is in the file, marked open, before it is done, for another process to see', async () => {
    const path = scratchPath();
    const { log, entering } = await aLog(await openScratch(path));
    const other = await openScratch(path);

    await log.enter(entering());

    expect((await verifiedRows(other)).map(({ outcome }) => outcome)).toEqual(['running']);
    expect(await openCalls(other)).toEqual([1]);
  });

  test('is no longer open when it has ended, well or badly', async () => {
    const { engine, log, entering } = await aLog();
    const failing = entering();

    await call(log, engine, entering());
    await log.enter(failing);
    await log.exit(
      leaving(failing, { outcome: 'error', errorCode: 'HANDLER_ERROR', error: new Error('no') }),
    );

    expect(await openCalls(engine)).toEqual([]);
    expect((await verifiedRows(engine)).map(({ outcome, error_code }) => [outcome, error_code])).toEqual([
      ['running', null],
      ['ok', null],
      ['running', null],
      ['error', 'HANDLER_ERROR'],
    ]);
  });

  test('whose transaction is taken back has no end yet', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering();
    await log.enter(event);

    await engine
      .write(async (tx) => {
        await log.exit(leaving(event), tx);
        throw new Error('the commit did not happen');
      })
      .catch(() => undefined);

    expect((await verifiedRows(engine)).map(({ stage }) => stage)).toEqual(['enter']);
    expect(await openCalls(engine)).toEqual([1]);
  });

  test('cannot end once recovery has explained it', async () => {
    const { engine, clock, log, entering } = await aLog();
    const event = entering();
    await log.enter(event);
    clock.set(NEW_YEAR + 3_600_000);
    await recoverOpenCalls(engine, clock, 'the next one');

    const late = engine.write(async (tx) => {
      await tx.run("INSERT INTO action_payloads VALUES (99, '', '')");
      await log.exit(leaving(event), tx);
    });

    await expect(late).rejects.toThrow('already explained');
    expect((await verifiedRows(engine)).map(({ outcome }) => outcome)).toEqual(['running', 'crashed']);
    expect((await payloads(engine)).has(99)).toBe(false);
  });
});

describe('a reading call', () => {
  test('leaves nothing before its end, then both rows at once', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ mutates: false });

    await log.enter(event);
    const before = await verifiedRows(engine);
    await log.exit(leaving(event, { result: { found: 1 } }));
    const after = await verifiedRows(engine);

    expect(before).toEqual([]);
    expect(after.map(({ stage, sequence_no }) => [stage, sequence_no])).toEqual([
      ['enter', 1],
      ['exit', 1],
    ]);
    expect(await openCalls(engine)).toEqual([]);
  });

  test('keeps its arguments and not its result, whose digest it still has', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ mutates: false });

    await log.enter(event);
    await log.exit(leaving(event, { result: { found: 1 } }));
    const [, exit] = await verifiedRows(engine);
    const kept = await payloads(engine);

    expect([...kept.keys()]).toEqual([1]);
    expect(exit?.result_hash).toBe(sha256(`${kept.get(1)?.salt}{"found":1}`));
  });
});

describe('a rejected call', () => {
  test('is one pair with a digest of the arguments, and not the arguments', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ schemaValid: false, args: { secret: 'hunter2' } });

    await log.enter(event);
    await log.exit(leaving(event, { outcome: 'rejected', errorCode: 'INVALID_PARAMS' }));
    const rows = await verifiedRows(engine);

    expect(rows).toMatchObject([
      { stage: 'enter', schema_valid: false, args_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { stage: 'exit', schema_valid: false, outcome: 'rejected', error_code: 'INVALID_PARAMS' },
    ]);
    expect(await payloads(engine)).toEqual(new Map());
    expect(JSON.stringify(rows)).not.toContain('hunter2');
  });

  test.each<[string, unknown]>([
    ['half a character', '\ud800'],
    ['a number without an exact text', 2 ** 60],
    ['nothing at all', undefined],
    ['a nest too deep for anything recursive', deepNest(200_000)],
  ])('has a digest whatever the arguments are: %s', async (_, args) => {
    const { engine, log, entering } = await aLog();
    const event = entering({ schemaValid: false, args });

    await log.enter(event);
    await log.exit(leaving(event, { outcome: 'rejected' }));

    expect((await verifiedRows(engine)).map(({ args_hash }) => args_hash)).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      null,
    ]);
  });
});

function deepNest(depth: number): unknown {
  let nest: unknown = 1;
  for (let i = 0; i < depth; i += 1) nest = [nest];
  return nest;
}

describe('the log', () => {
  test('has no gaps and no forks when two processes write to one file', async () => {
    const path = scratchPath();
    const logs = [await aLog(await openScratch(path)), await aLog(await openScratch(path))];

    await Promise.all(
      logs.flatMap(({ engine, log, entering }) =>
        Array.from({ length: 10 }, () => call(log, engine, entering())),
      ),
    );
    const rows = await verifiedRows(await openScratch(path));

    expect(rows).toHaveLength(40);
    for (const exit of rows.filter(({ stage }) => stage === 'exit')) {
      expect(rows[exit.sequence_no - 1]).toMatchObject({ stage: 'enter', position: exit.sequence_no });
    }
  });

  test('never runs backwards in time, whatever the clock does', async () => {
    const { engine, clock, log, entering } = await aLog();
    const jumps = [0, 5_000, -86_400_000, 4_999, 5_001, -1];

    for (const jump of jumps) {
      clock.set(NEW_YEAR + jump);
      await call(log, engine, entering());
    }
    const times = (await verifiedRows(engine)).map(({ at }) => at);

    expect(times).toEqual([...times].sort());
    expect([...new Set(times)]).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T00:00:05.000Z',
      '2026-01-01T00:00:05.001Z',
    ]);
  });

  test('knows where the end of the call that runs will stand, and its time', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering();
    await log.enter(event);

    const place = await engine.write(async (tx) => {
      const promised = await log.place?.(tx);
      await log.exit(leaving(event), tx);
      return promised;
    });
    const [, exit] = await verifiedRows(engine);

    expect(place).toEqual({ position: exit?.position, at: exit?.at });
  });

  test('cannot be changed', async () => {
    const { log } = await aLog();

    expect(Object.isFrozen(log)).toBe(true);
  });

  test('says nothing of a call it was not told to begin', async () => {
    const { engine, log, entering } = await aLog();

    await log.exit(leaving(entering()));

    expect(await verifiedRows(engine)).toEqual([]);
  });

  test('does not begin a call whose arguments it could not write down', async () => {
    const { engine, log, entering } = await aLog();

    await expect(log.enter(entering({ args: { when: new Date() } }))).rejects.toThrow();

    expect(await verifiedRows(engine)).toEqual([]);
  });
});

describe('the columns for whoever looks with SQL', () => {
  test('are read from the text and so cannot disagree with it', async () => {
    const { engine, log, entering } = await aLog();
    await call(log, engine, entering(), { result: {} });

    const seen = await engine.read((tx) =>
      tx.all(
        'SELECT position, sequence_no, stage, tool, actor, outcome, schema_valid, duration_ms FROM actions',
      ),
    );

    expect(seen.map((row) => ({ ...row }))).toEqual([
      {
        position: 1,
        sequence_no: 1,
        stage: 'enter',
        tool: 'probe',
        actor: 'ada',
        outcome: 'running',
        schema_valid: 1,
        duration_ms: null,
      },
      {
        position: 2,
        sequence_no: 1,
        stage: 'exit',
        tool: 'probe',
        actor: 'ada',
        outcome: 'ok',
        schema_valid: 1,
        duration_ms: 5,
      },
    ]);
  });
});

describe('appendRow', () => {
  test('continues behind the head it is given and gives the next', async () => {
    const { engine, clock } = await aLog();
    const fields = { ...ENTER_ROW, process: GONE };

    const [empty, first, read] = await engine.write(async (tx) => {
      const none = await readHead(tx);
      return [none, await appendRow(tx, none, fields, clock), await readHead(tx)];
    });

    expect(empty).toEqual({ position: 0, chainHash: '0'.repeat(64), at: '' });
    expect(first).toEqual(read);
    expect(first).toMatchObject({ position: 1, at: '2026-01-01T00:00:00.000Z' });
  });

  test('timeAfter is now, or the last time when the clock is behind it', () => {
    const head = { position: 1, chainHash: '', at: '2026-01-01T00:00:00.000Z' };

    expect(timeAfter(head, stillClock(NEW_YEAR + 1))).toBe('2026-01-01T00:00:00.001Z');
    expect(timeAfter(head, stillClock(NEW_YEAR))).toBe('2026-01-01T00:00:00.000Z');
    expect(timeAfter(head, stillClock(NEW_YEAR - 1))).toBe('2026-01-01T00:00:00.000Z');
  });
});
