import { describe, expect, test } from 'vitest';
import type { CallSink, ToolEnterEvent, ToolExitEvent } from '../../audit-sink.ts';
import { type HeadKeeper, readHead, UNSIGNED } from '../../log/append.ts';
import { createAuditLog, recoverOpenCalls } from '../../log/audit-log.ts';
import { takeTexts } from '../../log/texts.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openScratch, scratchPath } from '../storage/scratch.ts';
import { openCalls, payloads, saltedSha256, taskCalls, verifiedRows } from './log-rows.ts';
import { NEW_YEAR, stillClock } from './still-clock.ts';

const GONE = 'another.machine.1.1';

type Facts = Partial<ToolEnterEvent> & { readonly texts?: readonly string[] };

async function aLog(storage?: StorageEngine, keeper: HeadKeeper = UNSIGNED) {
  const engine = storage ?? (await openScratch());
  const clock = stillClock();
  const log = createAuditLog({ storage: engine, clock, process: GONE, keeper });
  const entering = ({ texts = [], ...facts }: Facts = {}): ToolEnterEvent => {
    const { args = { b: 1, a: 'é' }, schemaValid = true } = facts;
    return Object.freeze({
      tool: 'probe',
      args,
      kept: schemaValid ? takeTexts(args as Record<string, unknown>, texts, clock) : undefined,
      timestamp: clock.monotonic(),
      correlationId: clock.uuid(),
      actor: 'ada',
      source: 'mcp',
      mutates: true,
      schemaValid,
      repaired: [],
      outside: {},
      ...facts,
    });
  };
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
    outside: entered.outside,
    ...facts,
  });

/** A whole writing call, as the stages make it. */
async function call(log: CallSink, event: ToolEnterEvent, facts: Partial<ToolExitEvent> = {}) {
  await log.enter([event]);
  await log.write((rows) => rows.exit(leaving(event, facts), rows.reserve(event)));
}

describe('a writing call', () => {
  test('is two rows that share their number, and say everything of the call', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ repaired: ['a: text taken as number'] });
    const effects = [{ table: 'tasks', id: 'T-0001', hash: 'b'.repeat(64), previous: 0 }];

    await call(log, event, { result: { done: true }, effects });
    const [enter, exit] = await verifiedRows(engine);

    expect(enter).toEqual({
      position: 1,
      sequence_no: 1,
      stage: 'enter',
      tool: 'probe',
      actor: 'ada',
      source: 'mcp',
      correlation_id: event.correlationId,
      at: '2026-01-01T00:00:00.000Z',
      rules: 1,
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

  test('keeps arguments and result beside its rows, under salted digests with a salt each', async () => {
    const { engine, log, entering } = await aLog();

    await call(log, entering({ outside: { seen: true } }), { result: { z: 1, y: [2] } });
    const [enter, exit] = await verifiedRows(engine);
    const kept = await payloads(engine);
    const [args, result] = [kept.get(1), kept.get(2)];

    expect(args?.body).toBe('{"a":"é","b":1}');
    expect(result?.body).toBe('{"outside":{"seen":true},"result":{"y":[2],"z":1}}');
    expect(enter?.args_hash).toBe(saltedSha256(args?.salt, args?.body));
    expect(exit?.result_hash).toBe(saltedSha256(result?.salt, result?.body));
    expect(args?.salt).not.toBe(result?.salt);
  });

  test('that was refused keeps the code, the message and what was seen outside', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ outside: { seen: true } });
    const error = new Error('Not from here.');

    await log.enter([event]);
    await log.exit([leaving(event, { outcome: 'error', errorCode: 'ERR_INVALID_TRANSITION', error })]);
    const [, exit] = await verifiedRows(engine);
    const kept = (await payloads(engine)).get(2);

    expect(kept?.body).toBe(
      '{"error":{"code":"ERR_INVALID_TRANSITION","message":"Not from here."},"outside":{"seen":true}}',
    );
    expect(exit).toMatchObject({
      error_code: 'ERR_INVALID_TRANSITION',
      result_hash: saltedSha256(kept?.salt, kept?.body),
    });
  });

  test('keeps each of its texts beside the call, with a digest in the place of it', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({
      args: { title: 'a title', size: 1, list: ['b', 'a'] },
      texts: ['title', 'list'],
    });

    await call(log, event);
    const args = JSON.parse((await payloads(engine)).get(1)?.body ?? '') as Record<string, unknown>;
    const texts = await engine.read((tx) =>
      tx.all<{ id: number; digest: string; salt: string; text: string }>('SELECT * FROM texts ORDER BY id'),
    );

    expect(texts.map(({ id, text }) => [id, text])).toEqual([
      [8, 'a title'],
      [9, '["b","a"]'],
    ]);
    for (const { digest, salt, text } of texts) expect(digest).toBe(saltedSha256(salt, text));
    expect(args).toEqual({ title: texts[0]?.digest, size: 1, list: texts[1]?.digest });
  });

  test.each<[what: string, facts: Facts, ended: Partial<ToolExitEvent>, indexed: [number, number][]]>([
    ['by the task that its arguments name', { args: { task_id: 'T-0012' } }, {}, [[12, 2]]],
    [
      'by the task that it made',
      { tool: 'task_create', args: { parent_id: 'T-0001' } },
      { result: { task_id: 'T-0007' } },
      [[7, 2]],
    ],
    [
      'also when it was refused',
      { args: { task_id: 'T-0012' } },
      { outcome: 'error', errorCode: 'ERR_TASK_NOT_FOUND', error: new Error('no') },
      [[12, 2]],
    ],
    ['not by a text that is no id', { args: { task_id: 'T-12' } }, {}, []],
    ['not where it names none', {}, {}, []],
    ['not where it only reads', { args: { task_id: 'T-0012' }, mutates: false }, {}, []],
  ])('is found %s', async (_, facts, ended, indexed) => {
    const { engine, log, entering } = await aLog();
    const event = entering(facts);

    await log.enter([event]);
    await log.exit([leaving(event, ended)]);

    expect(await taskCalls(engine)).toEqual(indexed);
  });

  test('has another digest for the same arguments each time', async () => {
    const { engine, log, entering } = await aLog();

    await call(log, entering());
    await call(log, entering());
    const [first, , second] = await verifiedRows(engine);

    expect(first?.args_hash).not.toBe(second?.args_hash);
  });

  test('is in the file, marked open, before it is done, for another process to see', async () => {
    const path = scratchPath();
    const { log, entering } = await aLog(await openScratch(path));
    const other = await openScratch(path);

    await log.enter([entering()]);

    expect((await verifiedRows(other)).map(({ outcome }) => outcome)).toEqual(['running']);
    expect(await openCalls(other)).toEqual([1]);
  });

  test('is no longer open when it has ended, well or badly', async () => {
    const { engine, log, entering } = await aLog();
    const failing = entering();

    await call(log, entering());
    await log.enter([failing]);
    await log.exit([
      leaving(failing, { outcome: 'error', errorCode: 'HANDLER_ERROR', error: new Error('no') }),
    ]);

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
    await log.enter([event]);

    await log
      .write(async (rows) => {
        await rows.exit(leaving(event));
        throw new Error('the commit did not happen');
      })
      .catch(() => undefined);

    expect((await verifiedRows(engine)).map(({ stage }) => stage)).toEqual(['enter']);
    expect(await openCalls(engine)).toEqual([1]);
  });

  test('cannot end once recovery has explained it', async () => {
    const { engine, clock, log, entering } = await aLog();
    const event = entering();
    await log.enter([event]);
    clock.set(NEW_YEAR + 3_600_000);
    await recoverOpenCalls({ storage: engine, clock, process: 'the next one', keeper: UNSIGNED }, new Set());

    const late = log.write(async (rows) => {
      await rows.tx.run("INSERT INTO action_payloads VALUES (99, '', '')");
      await rows.exit(leaving(event));
    });

    await expect(late).rejects.toThrow('0 rows changed instead of 1: DELETE FROM open_calls');
    expect((await verifiedRows(engine)).map(({ outcome }) => outcome)).toEqual(['running', 'crashed']);
    expect((await payloads(engine)).has(99)).toBe(false);
  });
});

describe('a reading call', () => {
  test('leaves nothing before its end, then both rows at once', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ mutates: false });

    await log.enter([event]);
    const before = await verifiedRows(engine);
    await log.exit([leaving(event, { result: { found: 1 } })]);
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

    await log.enter([event]);
    await log.exit([leaving(event, { result: { found: 1 } })]);
    const [, exit] = await verifiedRows(engine);
    const kept = await payloads(engine);

    expect([...kept.keys()]).toEqual([1]);
    expect(exit?.result_hash).toMatch(/^[0-9a-f]{64}$/);
    // Its salt is kept nowhere: nobody can confirm a guess of what was read.
    expect(exit?.result_hash).not.toBe(saltedSha256(kept.get(1)?.salt, '{"found":1}'));
  });

  test('that fails has no digest of a result', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ mutates: false });

    await log.enter([event]);
    await log.exit([
      leaving(event, { outcome: 'error', errorCode: 'HANDLER_ERROR', error: new Error('no') }),
    ]);

    expect((await verifiedRows(engine))[1]).toMatchObject({ outcome: 'error', result_hash: null });
    expect([...(await payloads(engine)).keys()]).toEqual([1]);
  });
});

describe('a rejected call', () => {
  test('is one pair with a digest of the arguments, and not the arguments', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering({ schemaValid: false, args: { secret: 'hunter2' } });

    await log.enter([event]);
    await log.exit([leaving(event, { outcome: 'rejected', errorCode: 'INVALID_PARAMS' })]);
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

    await log.enter([event]);
    await log.exit([leaving(event, { outcome: 'rejected' })]);

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
      logs.flatMap(({ log, entering }) => Array.from({ length: 10 }, () => call(log, entering()))),
    );
    const rows = await verifiedRows(await openScratch(path));

    expect(rows).toHaveLength(40);
    for (const exit of rows.filter(({ stage }) => stage === 'exit')) {
      expect(rows[exit.sequence_no - 1]).toMatchObject({ stage: 'enter', position: exit.sequence_no });
    }
  });

  test('never runs backwards in time while the clock is wrong by a day at most', async () => {
    const { engine, clock, log, entering } = await aLog();
    const jumps = [0, 5_000, -86_395_000, 4_999, 5_001, -1];

    for (const jump of jumps) {
      clock.set(NEW_YEAR + jump);
      await call(log, entering());
    }
    const times = (await verifiedRows(engine)).map(({ at }) => at);

    expect(times).toEqual([...times].sort());
    expect([...new Set(times)]).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T00:00:05.000Z',
      '2026-01-01T00:00:05.001Z',
    ]);
  });

  test('starts over from the clock where the last time is more than a day ahead of it', async () => {
    const { engine, clock, log, entering } = await aLog();

    for (const jump of [86_400_001, 0, -1]) {
      clock.set(NEW_YEAR + jump);
      await call(log, entering());
    }
    const times = (await verifiedRows(engine)).filter(({ stage }) => stage === 'exit').map(({ at }) => at);

    expect(times).toEqual([
      '2026-01-02T00:00:00.001Z',
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T00:00:00.000Z',
    ]);
  });

  test('knows where the end of the call that runs will stand, and its time', async () => {
    const { engine, log, entering } = await aLog();
    const event = entering();
    await log.enter([event]);

    const promised = await log.write(async (rows) => {
      const reserved = rows.reserve(event);
      await rows.exit(leaving(event), reserved);
      return reserved;
    });
    const [, exit] = await verifiedRows(engine);

    expect(promised).toEqual({ enter: 1, position: exit?.position, at: exit?.at, process: exit?.process });
  });

  test('cannot be changed', async () => {
    const { log } = await aLog();

    expect(Object.isFrozen(log)).toBe(true);
  });

  test('says nothing of a call it was not told to begin', async () => {
    const { engine, log, entering } = await aLog();

    await log.exit([leaving(entering())]);

    expect(await verifiedRows(engine)).toEqual([]);
  });

  test('does not begin a call whose arguments it could not write down', async () => {
    const { engine, log, entering } = await aLog();

    await expect(log.enter([entering({ args: { when: new Date() } })])).rejects.toThrow();

    expect(await verifiedRows(engine)).toEqual([]);
  });

  test('knows when each process last wrote for whom', async () => {
    const { engine, clock, log, entering } = await aLog();
    await call(log, entering());
    await call(log, entering({ actor: 'bob' }));
    clock.set(NEW_YEAR + 1_000);

    await call(log, entering());

    expect(await engine.read((tx) => tx.all('SELECT process, actor, last_seen FROM processes'))).toEqual([
      { process: GONE, actor: 'ada', last_seen: '2026-01-01T00:00:01.000Z' },
      { process: GONE, actor: 'bob', last_seen: '2026-01-01T00:00:00.000Z' },
    ]);
  });
});

describe('a call whose end could not be written', () => {
  /** A keeper that fails for as long as it is told to, as a full disk does. */
  function failing() {
    const state = { fails: false };
    const keeper: HeadKeeper = {
      open: readHead,
      close: () => (state.fails ? Promise.reject(new Error('no room')) : Promise.resolve(undefined)),
    };
    return { state, keeper };
  }

  test('is closed by the next commit of this process, whichever call that is', async () => {
    const { state, keeper } = failing();
    const { engine, log, entering } = await aLog(undefined, keeper);
    const [first, next] = [entering({ tool: 'first' }), entering({ tool: 'next', mutates: false })];
    await log.enter([first]);
    state.fails = true;
    const refused = log.exit([
      leaving(first, { outcome: 'error', errorCode: 'HANDLER_ERROR', error: new Error('no') }),
    ]);
    await expect(refused).rejects.toThrow('no room');
    state.fails = false;

    await log.enter([next]);
    await log.exit([leaving(next, { result: {} })]);

    expect((await verifiedRows(engine)).map(({ tool, outcome }) => `${tool} ${outcome}`)).toEqual([
      'first running',
      'first error',
      'next running',
      'next ok',
    ]);
    expect(await openCalls(engine)).toEqual([]);
  });

  test('is closed once, also when the disk fails several times in between', async () => {
    const { state, keeper } = failing();
    const { engine, log, entering } = await aLog(undefined, keeper);
    const first = entering({ tool: 'first' });
    await log.enter([first]);
    state.fails = true;
    await expect(log.exit([leaving(first, { outcome: 'error', error: new Error('no') })])).rejects.toThrow(
      'no room',
    );
    await expect(log.enter([entering({ tool: 'second' })])).rejects.toThrow('no room');
    state.fails = false;

    await call(log, entering({ tool: 'third' }));
    await call(log, entering({ tool: 'fourth' }));

    expect((await verifiedRows(engine)).map(({ tool, outcome }) => `${tool} ${outcome}`)).toEqual([
      'first running',
      'first error',
      'third running',
      'third ok',
      'fourth running',
      'fourth ok',
    ]);
  });
});

describe('the keeper of heads', () => {
  test('sees every commit before it is made, with the hashes of exactly the rows it adds', async () => {
    const seen: { hashes: number; position: number; keep: boolean }[] = [];
    const keeper: HeadKeeper = {
      open: readHead,
      close: async (_tx, head, hashes, keep) => {
        seen.push({ hashes: hashes.length, position: head.position, keep });
      },
    };
    const { log, entering } = await aLog(undefined, keeper);
    const reading = entering({ mutates: false });

    await call(log, entering());
    await call(log, entering({ tool: 'merkle_finalize' }));
    await log.enter([reading]);
    await log.exit([leaving(reading)]);

    expect(seen).toEqual([
      { hashes: 1, position: 1, keep: false },
      { hashes: 1, position: 2, keep: false },
      { hashes: 1, position: 3, keep: false },
      // A sealed session is worth a checkpoint that is kept for good.
      { hashes: 1, position: 4, keep: true },
      { hashes: 2, position: 6, keep: false },
    ]);
  });
});

describe('the columns for whoever looks with SQL', () => {
  test('are read from the text and so cannot disagree with it', async () => {
    const { engine, log, entering } = await aLog();
    await call(log, entering(), { result: {} });

    const seen = await engine.read((tx) =>
      tx.all(
        'SELECT position, sequence_no, stage, tool, actor, outcome, schema_valid, duration_ms FROM audit_rows',
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
