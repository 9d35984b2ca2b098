import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { type AuditSink, inTurn } from '../../audit-sink.ts';
import type { Clock } from '../../clock.ts';
import { ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { UNSIGNED } from '../../log/append.ts';
import { createAuditLog } from '../../log/audit-log.ts';
import { type Backing, composeCall, UnknownToolError } from '../../middleware/compose.ts';
import type { StorageEngine, Transaction } from '../../storage/engine.ts';
import type { Tool, WritingContext, WritingTool } from '../../tool.ts';
import { openCalls, payloads, verifiedRows } from '../log/log-rows.ts';
import { stillClock } from '../log/still-clock.ts';
import { openScratch, scratchPath } from '../storage/scratch.ts';
import { aTool, aWritingTool } from './a-tool.ts';

/** State to write that no rule of the log looks at. */
const leaveMark = (tx: Transaction, mark: number) =>
  tx.run('INSERT INTO action_payloads (position, salt, body) VALUES (?, ?, ?)', mark, '', 'mark');

const marks = async (storage: StorageEngine) =>
  [...(await payloads(storage))].filter(([, { body }]) => body === 'mark').map(([position]) => position);

async function stages(
  tools: readonly Tool[],
  {
    sink: plain,
    clock = stillClock(),
    ...backing
  }: Partial<Omit<Backing, 'sink'>> & { readonly sink?: AuditSink; readonly clock?: Clock } = {},
  engine?: StorageEngine,
) {
  const storage = engine ?? (await openScratch());
  const log = vi.fn();
  const writer = { storage: backing.storage ?? storage, clock, process: 'here', keeper: UNSIGNED };
  const sink = plain === undefined ? createAuditLog(writer) : inTurn(plain, storage, clock);
  const { call, answered, close, figures } = composeCall({
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    clock,
    source: 'mcp',
    log,
    admission: { mode: 'FULL', degraded: () => undefined },
    ready: async () => ({ storage, sink, ...backing }),
  });
  return {
    ...{ storage, log, answered, close, figures },
    call: (name: string, raw: unknown = {}) => call(name, raw, 'ada'),
  };
}

const outcomes = async (storage: StorageEngine) =>
  (await verifiedRows(storage)).map(({ stage, tool, outcome }) => `${stage} ${tool} ${outcome}`);

const writing = (handle: WritingTool['handle'], parts: Partial<WritingTool> = {}) =>
  aWritingTool({ handle, ...parts });

describe('a writing call', () => {
  test('commits its effects and its exit row together', async () => {
    const effect = { table: 'things', id: 'X-0001', hash: 'a'.repeat(64), previous: 0 };
    const { storage, call } = await stages([
      writing(async (_args, context, tx) => {
        await leaveMark(tx, 100);
        context.effects.push(effect);
        return { done: true };
      }),
    ]);

    const envelope = await call('change');
    const rows = await verifiedRows(storage);

    expect(envelope).toEqual({ ok: true, data: { done: true } });
    expect(await marks(storage)).toEqual([100]);
    expect(rows.map(({ outcome }) => outcome)).toEqual(['running', 'ok']);
    expect(rows[1]?.effects).toEqual([effect]);
  });

  test('has its enter row in the file, open, before its handler starts', async () => {
    const path = scratchPath();
    const other = await openScratch(path);
    let seen: unknown;
    const { call } = await stages(
      [
        writing(async () => {
          seen = { rows: await outcomes(other), open: await openCalls(other) };
          return {};
        }),
      ],
      {},
      await openScratch(path),
    );

    await call('change');

    expect(seen).toEqual({ rows: ['enter change running'], open: [1] });
    expect(await openCalls(other)).toEqual([]);
  });

  test('that fails leaves no effect, and an exit row that says why', async () => {
    const { storage, call } = await stages([
      writing(
        async (_args, context, tx) => {
          await leaveMark(tx, 100);
          context.effects.push({ table: 'things', id: 'X-0001', hash: 'a'.repeat(64), previous: 0 });
          throw new ColibriError('ERR_INVALID_TRANSITION', 'Not from here.', { allowed: ['todo'] });
        },
        { family: 'tasks' },
      ),
    ]);

    const envelope = await call('change');
    const rows = await verifiedRows(storage);

    expect(envelope).toEqual({
      ok: true,
      data: {
        ok: false,
        error: { code: 'ERR_INVALID_TRANSITION', message: 'Not from here.', details: { allowed: ['todo'] } },
      },
    });
    expect(await marks(storage)).toEqual([]);
    expect(rows.map(({ outcome }) => outcome)).toEqual(['running', 'error']);
    expect(rows[1]).toMatchObject({ error_code: 'ERR_INVALID_TRANSITION', effects: [] });
    expect((await payloads(storage)).get(2)?.body).toBe(
      '{"error":{"code":"ERR_INVALID_TRANSITION","message":"Not from here."},"outside":{}}',
    );
    expect(await openCalls(storage)).toEqual([]);
  });

  test('whose exit row cannot be written is rolled back', async () => {
    const { storage, call } = await stages([
      // A big integer has no JSON text at all, so the digest of this result cannot be made.
      writing(async (_args, _context, tx) => {
        await leaveMark(tx, 100);
        return { when: 1n } as unknown as Record<string, never>;
      }),
    ]);

    const envelope = await call('change');

    expect(envelope).toMatchObject({ ok: false, error: { code: 'HANDLER_ERROR' } });
    expect(await marks(storage)).toEqual([]);
    expect(await outcomes(storage)).toEqual(['enter change running', 'exit change error']);
  });

  test('knows the position and the time its exit row will have', async () => {
    let known: Pick<WritingContext, 'position' | 'at' | 'actor' | 'correlationId'> | undefined;
    const { storage, call } = await stages([
      writing((_args, context) => {
        known = context;
        return {};
      }),
    ]);

    await call('change');
    const [, exit] = await verifiedRows(storage);

    expect(known).toMatchObject({
      position: exit?.position,
      at: exit?.at,
      actor: 'ada',
      correlationId: exit?.correlation_id,
    });
  });

  test('gets digests in the place of its texts, and the texts beside them', async () => {
    const seen: unknown[] = [];
    const { storage, call } = await stages([
      writing(
        (args, context) => {
          seen.push(args, context.texts);
          return {};
        },
        { input: z.strictObject({ title: z.string(), size: z.number() }), texts: ['title'] },
      ),
    ]);

    await call('change', { title: 'a secret plan', size: 3 });
    const [text] = await storage.read((tx) => tx.all('SELECT digest, salt, text FROM texts'));

    expect(text).toMatchObject({ text: 'a secret plan' });
    expect(seen).toEqual([{ title: text?.digest, size: 3 }, [{ ...text }]]);
    expect((await payloads(storage)).get(1)?.body).toBe(`{"size":3,"title":"${text?.digest}"}`);
  });

  test('is told what was seen outside before its transaction, and keeps it; defaults are kept with its arguments', async () => {
    let told: unknown;
    const { storage, call } = await stages([
      writing(
        (args, context) => {
          told = { args, outside: context.outside };
          return { done: true };
        },
        { prepare: async (args) => ({ args: { workflow: 'kanban', ...args }, outside: { git: 'main' } }) },
      ),
    ]);

    await call('change');
    const kept = await payloads(storage);

    expect(told).toEqual({ args: { workflow: 'kanban' }, outside: { git: 'main' } });
    expect(kept.get(1)?.body).toBe('{"workflow":"kanban"}');
    expect(kept.get(2)?.body).toBe('{"outside":{"git":"main"},"result":{"done":true}}');
  });

  test('looks at nothing outside for arguments that are refused', async () => {
    const prepare = vi.fn(async () => ({ args: {}, outside: {} }));
    const { call } = await stages([writing(() => ({}), { prepare })]);

    await call('change', { unknown: 1 });

    expect(prepare).not.toHaveBeenCalled();
  });

  test('tells the signer what is durable: what was committed before an fsync, after it; a reading call has none', async () => {
    const order: string[] = [];
    const engine = await openScratch();
    const sync = async () => void order.push('fsync');
    const signer = {
      committed: () => {
        order.push('committed');
        return 'a mark';
      },
      durable: (mark: unknown) => void order.push(`durable: ${mark}`),
    };
    const { call } = await stages(
      [writing(() => ({})), aTool()],
      { storage: wrap(engine, { sync }), signer },
      engine,
    );

    await call('change');
    await call('probe');

    expect(order).toEqual(['committed', 'fsync', 'durable: a mark', 'committed']);
  });

  test('is answered only after it is on the disk, and the next one runs meanwhile', async () => {
    const order: string[] = [];
    const engine = await openScratch();
    let synced: () => void = () => undefined;
    const storage: StorageEngine = wrap(engine, {
      sync: () => new Promise<void>((resolve) => (synced = resolve)),
    });
    const { call } = await stages(
      [
        writing(() => {
          order.push('handled');
          return {};
        }),
        aTool({ name: 'look', handle: () => ({}) }),
      ],
      { storage },
      engine,
    );

    const first = call('change').then(() => order.push('answered'));
    await vi.waitFor(() => expect(order).toEqual(['handled']), 10_000);
    await call('look');
    order.push('looked');
    synced();
    await first;

    expect(order).toEqual(['handled', 'looked', 'answered']);
  });

  test('whose disk fails is answered as uncertain', async () => {
    const engine = await openScratch();
    const sync = () => Promise.reject(new ColibriError('ERR_STORAGE_UNCERTAIN', 'The disk failed.'));
    const { call } = await stages([writing(() => ({}))], { storage: wrap(engine, { sync }) }, engine);

    expect(await call('change')).toEqual({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: 'ERR_STORAGE_UNCERTAIN: The disk failed.' },
    });
  });

  test('whose commit nobody knows the end of stays open for the next start to explain', async () => {
    const engine = await openScratch();
    let writes = 0;
    const storage = wrap(engine, {
      write: async (work) => {
        writes += 1;
        if (writes === 1) return await engine.write(work);
        throw new ColibriError('ERR_STORAGE_UNCERTAIN', 'The disk failed.');
      },
    });
    const { call } = await stages([writing(() => ({}))], { storage }, engine);

    expect(await call('change')).toMatchObject({
      error: { message: 'ERR_STORAGE_UNCERTAIN: The disk failed.' },
    });

    expect(writes).toBe(2);
    expect(await outcomes(engine)).toEqual(['enter change running']);
    expect(await openCalls(engine)).toEqual([1]);
  });
});

describe('a reading call', () => {
  test('is two rows and no fsync', async () => {
    const engine = await openScratch();
    const sync = vi.fn(() => Promise.resolve());
    const { call } = await stages(
      [aTool({ handle: () => ({ n: 1 }) })],
      { storage: wrap(engine, { sync }) },
      engine,
    );

    const envelope = await call('probe');

    expect(envelope).toEqual({ ok: true, data: { n: 1 } });
    expect(await outcomes(engine)).toEqual(['enter probe running', 'exit probe ok']);
    expect(sync).not.toHaveBeenCalled();
  });

  test('cannot write, and what it tried is an error like any other', async () => {
    const { storage, call } = await stages([
      aTool({
        handle: async (_args, _context, tx) => {
          // Its type has no `run`; what has one underneath is still a snapshot that takes no writing.
          await leaveMark(tx as Transaction, 100);
          return {};
        },
      }),
    ]);

    const envelope = await call('probe');

    expect(envelope.ok).toBe(false);
    expect(await marks(storage)).toEqual([]);
    expect(await outcomes(storage)).toEqual(['enter probe running', 'exit probe error']);
  });

  test('whose rows cannot be written is answered all the same, and logged', async () => {
    const { storage, call, log } = await stages([aTool({ handle: () => ({ n: 1 }) })], {
      sink: { enter() {}, exit: () => Promise.reject(new Error('no room')) },
    });

    const envelope = await call('probe');

    expect(envelope).toEqual({ ok: true, data: { n: 1 } });
    expect(log.mock.calls.flat().join(' ')).toMatch(/the end of probe .* could not be recorded: no room/);
    expect(await outcomes(storage)).toEqual([]);
  });

  test('of a few rows waits once for a lock that nobody lets go, and is answered all the same', async () => {
    const engine = await openScratch();
    const write = vi.fn(() => Promise.reject(new ColibriError('ERR_STORAGE_BUSY', 'Somebody writes.')));
    const { call, log } = await stages(
      [aTool({ kind: 'point', handle: () => ({ n: 1 }) })],
      { storage: wrap(engine, { write }) },
      engine,
    );

    const envelope = await call('probe');

    expect(envelope).toEqual({ ok: true, data: { n: 1 } });
    expect(write).toHaveBeenCalledTimes(1);
    expect(log.mock.calls.flat().join(' ')).toMatch(
      /the end of probe .* could not be recorded: Somebody writes/,
    );
  });

  test('that is long lets others pass, has its enter row first, and ends with its own answer', async () => {
    const order: string[] = [];
    const { storage, call } = await stages([
      aTool({
        name: 'long',
        kind: 'long',
        handle: async () => {
          order.push('long begins');
          await turn();
          await turn();
          order.push('long ends');
          return { long: true };
        },
      }),
      writing(() => {
        order.push('change');
        return {};
      }),
    ]);

    const [long] = await Promise.all([call('long'), call('change')]);

    expect(order).toEqual(['long begins', 'change', 'long ends']);
    expect(long).toEqual({ ok: true, data: { long: true } });
    expect(await outcomes(storage)).toEqual([
      'enter long running',
      'enter change running',
      'exit change ok',
      'exit long ok',
    ]);
  });
});

describe('calls that come together', () => {
  const look = aTool({ name: 'look', kind: 'point', handle: () => ({ seen: true }) });

  test('share their commits: two where one of them writes, one where none does', async () => {
    const { storage, call, figures } = await stages([writing(() => ({})), look]);

    await Promise.all([call('look'), call('change'), call('look')]);
    const afterWriting = { ...figures };
    await Promise.all([call('look'), call('look'), call('change', { unknown: 1 })]);

    expect(afterWriting).toMatchObject({ calls: 3, commits: 2, largest: 3 });
    expect(figures).toMatchObject({ calls: 6, commits: 3 });
    expect((await verifiedRows(storage)).map(({ stage }) => stage).join(' ')).toBe(
      'enter enter enter exit exit exit enter exit enter exit enter exit',
    );
    expect(await openCalls(storage)).toEqual([]);
  });

  test('are told to a plain sink one after the other', async () => {
    const told: string[] = [];
    const sink: AuditSink = {
      enter: ({ tool }) => void told.push(`enter ${tool}`),
      exit: ({ tool }) => void told.push(`exit ${tool}`),
    };
    const { call } = await stages([writing(() => ({})), look], { sink });

    await Promise.all([call('change'), call('look')]);

    expect(told).toEqual(['enter change', 'exit change', 'enter look', 'exit look']);
  });

  test('and cannot be recorded fail if they write; the others are recorded when they end', async () => {
    const engine = await openScratch();
    let isFull = true;
    const storage = wrap(engine, {
      write: async (work) => {
        if (!isFull) return await engine.write(work);
        isFull = false;
        throw new ColibriError('ERR_STORAGE_FULL', 'The disk is full.');
      },
    });
    const handle = vi.fn(() => ({}));
    const { call } = await stages([writing(handle), look], { storage }, engine);

    const answers = await Promise.all([call('change'), call('look'), call('change', { unknown: 1 })]);

    expect(handle).not.toHaveBeenCalled();
    expect(answers).toMatchObject([
      { error: { message: 'ERR_STORAGE_FULL: The disk is full.' } },
      { ok: true },
      { error: { code: 'INVALID_PARAMS' } },
    ]);
    expect(await outcomes(engine)).toEqual([
      ...['enter look running', 'exit look ok', 'enter change running', 'exit change rejected'],
    ]);
  });

  describe('and meet a lock that nobody lets go wait for it once, and none stays open', () => {
    /** Each call has a transaction of its own. The writes of these numbers meet the lock. */
    async function locked(busy: readonly number[]) {
      const engine = await openScratch();
      let writes = 0;
      const storage = wrap(engine, {
        batchMsMax: -1,
        write: async (work) => {
          writes += 1;
          if (!busy.includes(writes)) return await engine.write(work);
          throw new ColibriError('ERR_STORAGE_BUSY', 'Somebody writes.');
        },
      });
      const { call } = await stages([writing(() => ({})), look, list], { storage }, engine);
      return { engine, call, writes: () => writes };
    }
    const list = aTool({ name: 'list', kind: 'snapshot' });
    const isRefused = { error: { message: 'ERR_STORAGE_BUSY: Somebody writes.' } };

    test('before they begin', async () => {
      const { engine, call, writes } = await locked([1]);

      const answers = await Promise.all([call('change'), call('look')]);

      expect(answers).toMatchObject([isRefused, { ok: true }]);
      expect(writes()).toBe(1);
      expect(await outcomes(engine)).toEqual([]);
    });

    test.each(['look', 'list'])('where all of them read: %s', async (tool) => {
      const { engine, call, writes } = await locked([1, 2, 3]);

      const answers = await Promise.all([call(tool), call(tool), call(tool)]);

      expect(answers).toMatchObject([{ ok: true }, { ok: true }, { ok: true }]);
      expect(writes()).toBe(1);
      expect(await outcomes(engine)).toEqual([]);
    });

    test.each([
      { met: 'in their own transaction', busy: [2], first: isRefused, ends: ['exit change error'] },
      { met: 'behind one that was stored', busy: [3], first: { ok: true }, ends: ['exit change ok'] },
    ])('$met', async ({ busy, first, ends }) => {
      const { engine, call, writes } = await locked(busy);

      const answers = await Promise.all([call('change'), call('look')]);
      const before = writes();
      await call('look');

      expect(answers).toMatchObject([first, { ok: true }]);
      expect(before).toBe(busy[0]);
      expect(await outcomes(engine)).toEqual([
        ...['enter change running', 'enter look running', ...ends, 'exit look ok'],
        ...['enter look running', 'exit look ok'],
      ]);
      expect(await openCalls(engine)).toEqual([]);
    });
  });

  test('that last longer than one commit may are committed in several', async () => {
    const clock = { ...stillClock(), monotonic: () => performance.now() * 1_000 };
    const storage = await openScratch();
    const sink = createAuditLog({ storage, clock, process: 'here', keeper: UNSIGNED });
    const { call, figures } = composeCall({
      tools: new Map([['change', writing(() => ({}))]]),
      clock,
      source: 'mcp',
      log: () => undefined,
      admission: { mode: 'FULL', degraded: () => undefined },
      ready: async () => ({ storage, sink }),
    });

    await Promise.all(Array.from({ length: 4 }, () => call('change', {}, 'ada')));

    expect(figures).toMatchObject({ calls: 4, commits: 5, largest: 4 });
    expect((await verifiedRows(storage)).map(({ stage }) => stage).join(' ')).toBe(
      'enter enter enter enter exit exit exit exit',
    );
  });
});

test.each(['mcp', 'cli'] as const)('both rows of a call say that it came from %s', async (source) => {
  const storage = await openScratch();
  const clock = stillClock();
  const sink = createAuditLog({ storage, clock, process: 'here', keeper: UNSIGNED });
  const { call } = composeCall({
    tools: new Map([['probe', aTool()]]),
    clock,
    source,
    log: () => undefined,
    admission: { mode: 'FULL', degraded: () => undefined },
    ready: async () => ({ storage, sink }),
  });

  await call('probe', {}, 'ada');

  expect((await verifiedRows(storage)).map((row) => row.source)).toEqual([source, source]);
});

describe('a call that is refused', () => {
  test('for its arguments is one pair, and its handler does not run', async () => {
    const handle = vi.fn(() => ({}));
    const { storage, call } = await stages([
      writing(handle, { input: z.strictObject({ title: z.string() }), family: 'tasks' }),
    ]);

    const envelope = await call('change', { title: 7 });

    expect(envelope).toMatchObject({ ok: false, error: { code: 'INVALID_PARAMS' } });
    expect(handle).not.toHaveBeenCalled();
    expect(await verifiedRows(storage)).toMatchObject([
      { stage: 'enter', schema_valid: false, outcome: 'running' },
      { stage: 'exit', schema_valid: false, outcome: 'rejected', error_code: 'INVALID_PARAMS' },
    ]);
    expect(await payloads(storage)).toEqual(new Map());
  });

  test.each([
    ['nested a hundred thousand levels deep', '{"a":'.repeat(100_000) + '1'.padEnd(100_001, '}')],
    ['with an infinite number', '{"a":1e999}'],
  ])('for what no schema would notice is one pair too: %s', async (_, metadata) => {
    const input = z.strictObject({ metadata: z.record(z.string(), z.unknown()) });
    const { storage, call } = await stages([writing(() => ({}), { input })]);

    const raw = await call('change', { metadata: JSON.parse(metadata) as unknown });
    const asText = await call('change', { metadata });

    expect([raw, asText]).toMatchObject([
      { error: { code: 'INVALID_PARAMS' } },
      { error: { code: 'INVALID_PARAMS' } },
    ]);
    expect(await outcomes(storage)).toEqual([
      'enter change running',
      'exit change rejected',
      'enter change running',
      'exit change rejected',
    ]);
  });

  test('for its name is one pair, then an error of the protocol', async () => {
    const { storage, call } = await stages([aTool({ name: 'task_create' }), aTool({ name: 'task_get' })]);

    const refused = call('task_creat', { a: 1 });

    await expect(refused).rejects.toThrow(UnknownToolError);
    await expect(refused).rejects.toThrow(
      'Unknown tool "task_creat". Did you mean task_create? The tools are: task_create, task_get.',
    );
    expect(await outcomes(storage)).toEqual(['enter task_creat running', 'exit task_creat rejected']);
  });

  test.each([
    ['endless', 'x'.repeat(100_000), 'x'.repeat(LIMITS.toolNameCharsMax)],
    ['ill-formed', 'task\ud800', 'task\ufffd'],
    [
      'cut through a character',
      `${'x'.repeat(LIMITS.toolNameCharsMax - 1)}🐦`,
      `${'x'.repeat(LIMITS.toolNameCharsMax - 1)}\ufffd`,
    ],
    ['a name every object has', 'constructor', 'constructor'],
  ])('for a name that is %s can still be recorded', async (_, name, recorded) => {
    const { storage, call } = await stages([aTool()]);

    await expect(call(name)).rejects.toThrow(UnknownToolError);

    expect((await verifiedRows(storage)).map(({ tool }) => tool)).toEqual([recorded, recorded]);
  });
});

describe('before boot is over', () => {
  test('a call waits at the gate, then is served', async () => {
    const storage = await openScratch();
    const clock = stillClock();
    const handle = vi.fn(() => ({}));
    let open: (backing: Backing) => void = () => undefined;
    const ready = new Promise<Backing>((resolve) => (open = resolve));
    const { call } = composeCall({
      tools: new Map([['probe', aTool({ handle })]]),
      clock,
      source: 'mcp',
      log: () => undefined,
      admission: { mode: 'FULL', degraded: () => undefined },
      ready: () => ready,
    });

    const answered = call('probe', {}, 'ada');
    await new Promise((resolve) => setImmediate(resolve));
    const before = handle.mock.calls.length;
    open({ storage, sink: createAuditLog({ storage, clock, process: 'here', keeper: UNSIGNED }) });

    expect(await answered).toEqual({ ok: true, data: {} });
    expect(before).toBe(0);
  });
});

/** The same engine with some of its methods replaced. */
function wrap(engine: StorageEngine, methods: Partial<StorageEngine>): StorageEngine {
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(name in methods ? methods : target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('R33: whatever a handler or a sink throws, there is one answer, one end in the log, and the lock is free', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;

  test.each<[what: string, thrown: unknown]>([
    ['a text', 'just a text'],
    ['null', null],
    ['undefined', undefined],
    ['an error of a megabyte', new Error('x'.repeat(1_000_000))],
    ['a circular object', circular],
    ['something without a text form', Object.create(null)],
    ['an error whose cause is circular', new Error('no', { cause: circular })],
  ])('%s', async (_, thrown) => {
    const { storage, call } = await stages([
      writing(() => {
        throw thrown;
      }),
      aTool({
        name: 'look',
        handle: () => {
          throw thrown;
        },
      }),
      aTool({ name: 'ping' }),
    ]);

    const answers = [await call('change'), await call('look'), await call('ping')];

    expect(answers).toMatchObject([
      { ok: false, error: { code: 'HANDLER_ERROR' } },
      { ok: false, error: { code: 'HANDLER_ERROR' } },
      { ok: true },
    ]);
    expect(JSON.stringify(answers).length).toBeLessThan(20_000);
    expect(await outcomes(storage)).toEqual([
      'enter change running',
      'exit change error',
      'enter look running',
      'exit look error',
      'enter ping running',
      'exit ping ok',
    ]);
    expect(await openCalls(storage)).toEqual([]);
  });

  test.each<[stage: 'enter' | 'exit', thrown: unknown]>([
    ['enter', 'a text'],
    ['enter', null],
    ['enter', circular],
    ['exit', 'a text'],
    ['exit', null],
    ['exit', circular],
  ])('in %s', async (stage, thrown) => {
    let broken = true;
    const sink = {
      enter() {
        if (broken && stage === 'enter') throw thrown;
      },
      exit() {
        if (broken && stage === 'exit') throw thrown;
      },
    };
    const { call } = await stages([writing(() => ({}))], { sink });

    const failed = await call('change');
    broken = false;
    const served = await call('change');

    expect(failed).toMatchObject({
      ok: false,
      error: { code: stage === 'enter' ? 'AUDIT_ENTER_FAILED' : 'HANDLER_ERROR' },
    });
    expect(served).toMatchObject({ ok: true });
  });
});

describe('an answer', () => {
  test('that was given is not kept by its batch', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const results: WeakRef<object>[] = [];
    const kept: number[] = [];
    const tool = aTool({
      async handle() {
        await turn();
        collect();
        kept.push(results.filter((result) => result.deref() !== undefined).length);
        const result = { items: Array.from({ length: 100 }, (_, i) => ({ i })) };
        results.push(new WeakRef(result));
        return result;
      },
    });
    // Each takes so long that it gets a commit of its own, and the answers of the first leave while the others run.
    let ms = 0;
    const monotonic = () => {
      ms += LIMITS.sliceMsMax;
      return ms;
    };
    const { call } = await stages([tool], { clock: { ...stillClock(), monotonic } });

    await Promise.all(Array.from({ length: 12 }, () => call('probe').then(() => undefined)));

    expect(Math.max(...kept)).toBeLessThan(6);
  });

  test('is given to the others where one is an error that has no text', async () => {
    const odd = Object.assign(new Error('odd'), { message: 7 });
    const { call, answered } = await stages([
      aTool({
        handle() {
          throw odd;
        },
      }),
      aTool({ name: 'fine' }),
    ]);

    const answers = await Promise.allSettled([call('probe'), call('fine')]);
    await answered();

    expect(answers).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: { ok: true } }]);
  });
});
