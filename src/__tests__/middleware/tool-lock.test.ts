import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { createToolLock, NotBegunError, type Queued } from '../../middleware/tool-lock.ts';

interface Named extends Queued {
  readonly name: string;
}

/** A queue whose batches are written down, and which serves for as long as the test says. */
function aQueue(
  work: (batch: readonly string[]) => Promise<void> = async () => undefined,
  room: () => Promise<void> | undefined = () => undefined,
  left?: () => Promise<void>,
) {
  const batches: string[][] = [];
  const refused: string[] = [];
  const serve = async (batch: readonly Named[]) => {
    const names = batch.map(({ name }) => name);
    batches.push(names);
    await work(names);
    return { left: left?.() };
  };
  const lock = createToolLock<Named>({ serve, room });
  const add = (name: string, kind: Queued['kind'] = 'writes', raw: unknown = {}) =>
    lock.add({ name, kind, raw, refuse: (error) => void refused.push(`${name}: ${error.message}`) });
  return { lock, add, batches, refused };
}

/** Work that ends when the test says so. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

async function idle(turns = 200): Promise<void> {
  for (let i = 0; i < turns; i += 1) await turn();
}

describe('a batch', () => {
  test('is everything that came at once, in the order it came, and what comes a moment later is the next', async () => {
    const { add, batches } = aQueue();

    for (const name of ['a', 'b', 'c']) add(name);
    await Promise.resolve().then(() => add('d'));
    add('e');
    await idle();

    expect(batches).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });

  test('begins when the one before has ended, with everything that waits by then', async () => {
    const { opened, open } = gate();
    const { add, batches } = aQueue((names) => (names.includes('slow') ? opened : Promise.resolve()));

    add('slow');
    await idle(5);
    for (const name of ['b', 'c']) add(name);
    await idle(5);
    const whileItRan = [...batches];
    open();
    await idle();

    expect(whileItRan).toEqual([['slow']]);
    expect(batches).toEqual([['slow'], ['b', 'c']]);
  });

  test(`has ${LIMITS.batchCallsMax} calls at most`, async () => {
    const { add, batches } = aQueue();

    for (let i = 0; i < 2 * LIMITS.batchCallsMax + 1; i += 1) add(String(i));
    await idle();

    expect(batches.map((batch) => batch.length)).toEqual([LIMITS.batchCallsMax, LIMITS.batchCallsMax, 1]);
    expect(batches.flat()).toEqual(Array.from({ length: 2 * LIMITS.batchCallsMax + 1 }, (_, i) => String(i)));
  });

  test('has a bounded size, and a call beyond it is taken alone', async () => {
    const { add, batches } = aQueue();
    const half = { text: 'x'.repeat(LIMITS.batchBytesMax / 2) };
    let deep: unknown = {};
    for (let i = 0; i < 100_000; i += 1) deep = [deep];

    add('half', 'writes', half);
    add('and half', 'writes', half);
    add('small');
    add('deep', 'writes', deep);
    add('huge', 'writes', [half, half, half]);
    add('last');
    await idle();

    expect(batches).toEqual([['half'], ['and half', 'small'], ['deep'], ['huge'], ['last']]);
  });

  test.each<[what: string, kinds: Queued['kind'][], batches: number[]]>([
    ['point reads stay among writes', ['writes', 'point', 'writes'], [3]],
    [
      'a snapshot between two writes is read between their commits',
      ['writes', 'snapshot', 'writes'],
      [1, 1, 1],
    ],
    ['reads of any kind are taken together', ['snapshot', 'point', 'snapshot', 'writes'], [3, 1]],
    ['a long read is alone', ['point', 'long', 'long', 'writes', 'writes'], [1, 1, 1, 2]],
  ])('%s', async (_, kinds, lengths) => {
    const { add, batches } = aQueue();

    for (const [i, kind] of kinds.entries()) add(String(i), kind);
    await idle();

    expect(batches.map((batch) => batch.length)).toEqual(lengths);
  });

  test('whatever comes when, every call is served once and in order, one batch at a time', async () => {
    const kind = fc.constantFrom<Queued['kind']>('writes', 'point', 'snapshot', 'long');
    const plan = fc.array(fc.record({ kind, turnsBefore: fc.nat(2) }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(plan, fc.nat(3), async (calls, turnsServed) => {
        let [running, atOnce] = [0, 0];
        const { lock, add, batches } = aQueue(async () => {
          running += 1;
          atOnce = Math.max(atOnce, running);
          for (let i = 0; i < turnsServed; i += 1) await turn();
          running -= 1;
        });

        for (const [i, { kind: of, turnsBefore }] of calls.entries()) {
          for (let turns = 0; turns < turnsBefore; turns += 1) await turn();
          add(String(i), of);
        }
        while (batches.flat().length < calls.length) await turn();
        await lock.close();

        expect(batches.flat()).toEqual(calls.map((_, i) => String(i)));
        expect(atOnce).toBeLessThanOrEqual(1);
      }),
      { numRuns: 50 },
    );
  });
});

describe('calls that come back', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  /** A queue that is answered when the test says so, after a batch of two. */
  async function afterTwo(left?: () => Promise<void>) {
    const answering = gate();
    const queue = aQueue(undefined, undefined, left ?? (() => answering.opened));
    for (const name of ['a', 'b']) queue.add(name);
    await idle(5);
    return { ...queue, answer: answering.open };
  }

  test('are taken together with those that waited for them', async () => {
    const { add, answer, batches } = await afterTwo();

    add('c');
    await idle(5);
    const beforeTheAnswers = [...batches];
    answer();
    add('d');
    await idle(5);

    expect(beforeTheAnswers).toEqual([['a', 'b']]);
    expect(batches).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  test('are not waited for longer than the limit, nor again at once', async () => {
    const { add, answer, batches } = await afterTwo();

    add('c');
    vi.advanceTimersByTime(LIMITS.holdMsMax - 1);
    answer();
    await idle(5);
    vi.advanceTimersByTime(LIMITS.holdMsMax - 1);
    await idle(5);
    const inTime = [...batches];
    vi.advanceTimersByTime(1);
    await idle(5);
    const late = [...batches];
    for (const name of ['d', 'e']) add(name);
    await idle(5);
    add('f');
    await idle(5);

    expect(inTime).toEqual([['a', 'b']]);
    expect(late).toEqual([['a', 'b'], ['c']]);
    expect(batches).toEqual([['a', 'b'], ['c'], ['d', 'e'], ['f']]);
  });

  test('are not waited for while their answers wait for a slow disk', async () => {
    const { add, answer, batches } = await afterTwo();

    add('c');
    vi.advanceTimersByTime(LIMITS.holdMsMax);
    await idle(5);
    answer();
    await idle(5);

    expect(batches).toEqual([['a', 'b'], ['c']]);
  });

  test('are not waited for at once again because they came in time once', async () => {
    const { add, answer, batches } = await afterTwo();
    const bothCome = async (first: string, second: string) => {
      for (const name of [first, second]) add(name);
      await idle(5);
    };

    answer();
    await idle(5);
    vi.advanceTimersByTime(LIMITS.holdMsMax);
    for (const name of ['c', 'd', 'e']) await bothCome(name, name);
    await bothCome('waited', 'for');
    await bothCome('in', 'time');
    add('f');
    await idle(5);

    expect(batches.slice(-3)).toEqual([['waited', 'for'], ['in', 'time'], ['f']]);
  });

  test('are waited for again at once after many that came in time', async () => {
    const { add, answer, batches } = await afterTwo();
    const bothCome = async (first: string, second: string) => {
      for (const name of [first, second]) {
        add(name);
        await idle(5);
      }
    };

    answer();
    await idle(5);
    for (let i = 0; i < 8; i += 1) await bothCome('in', 'time');
    vi.advanceTimersByTime(LIMITS.holdMsMax);
    for (const name of ['c', 'd']) add(name);
    await idle(5);
    await bothCome('e', 'f');

    expect(batches.slice(1, 9)).toEqual(Array.from({ length: 8 }, () => ['in', 'time']));
    expect(batches.slice(9)).toEqual([
      ['c', 'd'],
      ['e', 'f'],
    ]);
  });

  test.each<Queued['kind']>(['point', 'snapshot', 'long'])(
    'are not waited for by a %s read',
    async (kind) => {
      const { add, batches } = await afterTwo();

      add('read', kind);
      await idle(5);

      expect(batches).toEqual([['a', 'b'], ['read']]);
    },
  );

  test('are writes: nothing waits for a read that was in flight with them', async () => {
    const { add, batches } = aQueue(undefined, undefined, () => new Promise(() => undefined));

    for (const name of ['a', 'b']) add(name);
    add('read', 'point');
    await idle(5);
    add('c');
    await idle(5);
    const before = [...batches];
    add('d');
    await idle(5);

    expect(before).toEqual([['a', 'b', 'read']]);
    expect(batches.slice(1)).toEqual([['c', 'd']]);
  });

  test('are not waited for where one call comes after the other', async () => {
    const { add, batches } = aQueue(undefined, undefined, () => new Promise(() => undefined));

    add('a');
    await idle(5);
    expect(batches).toEqual([['a']]);
  });

  test('are not waited for where more are in flight than a batch takes', async () => {
    const { add, batches } = aQueue(undefined, undefined, () => new Promise(() => undefined));

    for (let i = 0; i < LIMITS.batchCallsMax + 2; i += 1) add(String(i));
    await idle(5);

    expect(batches.map((batch) => batch.length)).toEqual([LIMITS.batchCallsMax, 2]);
  });

  test('are not waited for by a stop', async () => {
    const { lock, add, answer, batches, refused } = await afterTwo();

    add('c');
    const closed = lock.close();
    answer();
    await closed;

    expect(batches).toEqual([['a', 'b']]);
    expect(refused).toHaveLength(1);
  });
});

describe('beside the batches', () => {
  test('one piece of work runs after the other, while batches go on', async () => {
    const { lock, add, batches } = aQueue();
    const first = gate();
    const order: string[] = [];

    lock.runBeside(async () => {
      await first.opened;
      order.push('first');
    });
    lock.runBeside(async () => void order.push('second'));
    add('a');
    await idle(5);
    const before = [...order];
    first.open();
    await idle(5);

    expect(batches).toEqual([['a']]);
    expect(before).toEqual([]);
    expect(order).toEqual(['first', 'second']);
  });
});

describe('while the client does not read', () => {
  test('nothing begins, beside the batches neither, and everything does once it reads', async () => {
    const reading = gate();
    let isFull = true;
    const { lock, add, batches } = aQueue(undefined, () => (isFull ? reading.opened : undefined));
    const beside: string[] = [];

    add('a');
    lock.runBeside(async () => void beside.push('long'));
    await idle(5);
    const before = [...batches.flat(), ...beside];
    isFull = false;
    reading.open();
    await idle(5);

    expect(before).toEqual([]);
    expect([...batches.flat(), ...beside]).toEqual(['a', 'long']);
  });

  test('a stop need not wait for it: what waits is refused', async () => {
    const { lock, add, batches, refused } = aQueue(undefined, () => new Promise(() => undefined));

    add('a');
    await idle(5);
    await lock.close();

    expect(batches).toEqual([]);
    expect(refused).toEqual([`a: ${new NotBegunError().message}`]);
    expect(await lock.hasRoom()).toBe(false);
  });
});

describe('close', () => {
  test('resolves at once when nothing runs', async () => {
    await expect(aQueue().lock.close()).resolves.toBeUndefined();
  });

  test('waits for what runs, also beside the batches, and begins nothing that waited', async () => {
    const [batch, long] = [gate(), gate()];
    const order: string[] = [];
    const { lock, add, batches, refused } = aQueue(async () => {
      await batch.opened;
      order.push('the batch ran to its end');
    });
    lock.runBeside(async () => {
      await long.opened;
      order.push('the long read ran to its end');
    });
    add('running');
    await idle(5);
    add('waiting');

    const closed = lock.close().then(() => order.push('closed'));
    add('too late');
    batch.open();
    await idle(5);
    long.open();
    await closed;

    expect(order).toEqual(['the batch ran to its end', 'the long read ran to its end', 'closed']);
    expect(batches).toEqual([['running']]);
    const { message } = new NotBegunError();
    expect(refused).toEqual([`waiting: ${message}`, `too late: ${message}`]);
    expect(message).toContain('did not start this call');
  });

  test('refuses what came in the same moment and was not begun', async () => {
    const { lock, add, batches, refused } = aQueue();

    add('a');
    await lock.close();
    await idle(5);

    expect(batches).toEqual([]);
    expect(refused).toHaveLength(1);
  });

  test('may be asked for twice', async () => {
    const { lock } = aQueue();

    await expect(Promise.all([lock.close(), lock.close()])).resolves.toHaveLength(2);
  });
});
