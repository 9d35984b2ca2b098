import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createToolLock, NotBegunError, type ToolLock } from '../../middleware/tool-lock.ts';

/** Work that ends when the test says so. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('run', () => {
  test('gives back what the work gives back', async () => {
    const lock = createToolLock();

    await expect(lock.run(async () => 'an answer')).resolves.toBe('an answer');
  });

  test('lets those who ask go in the order they asked', async () => {
    const lock = createToolLock();
    const order: number[] = [];

    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        lock.run(async () => {
          // The earlier ones take longer: without the queue they would be overtaken.
          for (let turns = 50 - i; turns > 0; turns -= 10) await turn();
          order.push(i);
        }),
      ),
    );

    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  test('begins nothing while something runs', async () => {
    const lock = createToolLock();
    const { opened, open } = gate();
    let begun = false;

    const first = lock.run(() => opened);
    const second = lock.run(async () => {
      begun = true;
    });
    await turn();
    const whileTheFirstRan = begun;
    open();
    await Promise.all([first, second]);

    expect(whileTheFirstRan).toBe(false);
    expect(begun).toBe(true);
  });

  test.each<[string, () => Promise<never>]>([
    ['rejects', () => Promise.reject(new Error('it failed'))],
    [
      'throws before its first await',
      () => {
        throw new Error('it failed');
      },
    ],
  ])('passes the error on and frees the lock when the work %s', async (_, work) => {
    const lock = createToolLock();

    const failed = lock.run(work);
    const next = lock.run(async () => 'still served');

    await expect(failed).rejects.toThrow('it failed');
    await expect(next).resolves.toBe('still served');
  });
});

describe('yieldToWaiting', () => {
  test('lets everybody who waits go first, then goes on', async () => {
    const lock = createToolLock();
    const order: string[] = [];

    const long = lock.run(async () => {
      order.push('long begins');
      await lock.yieldToWaiting();
      order.push('long goes on');
    });
    const waiting = ['a', 'b'].map((name) => lock.run(async () => void order.push(name)));
    await Promise.all([long, ...waiting]);

    expect(order).toEqual(['long begins', 'a', 'b', 'long goes on']);
  });

  test('returns at once when nobody waits', async () => {
    const lock = createToolLock();

    await expect(lock.run(() => lock.yieldToWaiting())).resolves.toBeUndefined();
  });

  test('lets in what arrives in the same moment', async () => {
    const lock = createToolLock();
    const order: string[] = [];
    let late: Promise<void> | undefined;

    await lock.run(async () => {
      const yielded = lock.yieldToWaiting();
      late = lock.run(async () => void order.push('late'));
      await yielded;
      order.push('long goes on');
    });
    await late;

    expect(order).toEqual(['late', 'long goes on']);
  });

  test('keeps one at a time, whoever yields and whoever fails', async () => {
    const works = fc.array(fc.record({ yields: fc.nat(3), turns: fc.nat(2), fails: fc.boolean() }), {
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(works, async (plans) => {
        const lock = createToolLock();
        let running = 0;
        let mostAtOnce = 0;
        const alone = async (turns: number) => {
          running += 1;
          mostAtOnce = Math.max(mostAtOnce, running);
          for (let i = 0; i < turns; i += 1) await Promise.resolve();
          running -= 1;
        };

        const ends = await Promise.allSettled(
          plans.map(({ yields, turns, fails }) =>
            lock.run(async () => {
              await alone(turns);
              for (let i = 0; i < yields; i += 1) {
                await lock.yieldToWaiting();
                await alone(turns);
              }
              if (fails) throw new Error('as planned');
            }),
          ),
        );

        expect(mostAtOnce).toBeLessThanOrEqual(1);
        expect(ends.map((end) => end.status === 'rejected')).toEqual(plans.map(({ fails }) => fails));
        await expect(lock.run(async () => 'free')).resolves.toBe('free');
      }),
    );
  });
});

describe('close', () => {
  test('resolves at once when nothing runs', async () => {
    await expect(createToolLock().close()).resolves.toBeUndefined();
  });

  test('waits for what runs, and begins nothing that waited', async () => {
    const lock = createToolLock();
    const { opened, open } = gate();
    const order: string[] = [];
    const running = lock.run(async () => {
      await opened;
      order.push('ran to its end');
    });
    const waiting = lock.run(async () => void order.push('begun'));
    await turn();

    const closed = lock.close().then(() => order.push('closed'));
    const tooLate = lock.run(async () => void order.push('begun'));
    open();

    await expect(waiting).rejects.toThrow(NotBegunError);
    await expect(tooLate).rejects.toThrow('did not begin this call');
    await Promise.all([running, closed]);
    expect(order).toEqual(['ran to its end', 'closed']);
  });

  test('lets work that is yielding come back and end', async () => {
    const lock = createToolLock();
    const { opened, open } = gate();
    const long = lock.run(async () => {
      await lock.yieldToWaiting();
      return 'ended';
    });
    const begun = gate();
    const running = lock.run(() => {
      begun.open();
      return opened;
    });
    await begun.opened;

    const closed = lock.close();
    open();

    await expect(long).resolves.toBe('ended');
    await Promise.all([running, closed]);
  });

  test.each([1, 3])('waits for work that yields %i times with nobody else there', async (yields) => {
    const lock = createToolLock();
    const order: string[] = [];
    const begun = gate();
    const long = lock.run(async () => {
      begun.open();
      for (let i = 0; i < yields; i += 1) await lock.yieldToWaiting();
      order.push('ran to its end');
    });
    await begun.opened;

    await lock.close();
    order.push('closed');
    await long;

    expect(order).toEqual(['ran to its end', 'closed']);
  });

  test('may be asked for twice', async () => {
    const lock: ToolLock = createToolLock();

    await Promise.all([lock.close(), lock.close()]);

    await expect(lock.run(async () => 1)).rejects.toThrow(NotBegunError);
  });
});
