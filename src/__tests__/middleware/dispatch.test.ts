import { describe, expect, test, vi } from 'vitest';
import { type Admission, dispatch } from '../../middleware/dispatch.ts';
import type { Transaction } from '../../storage/engine.ts';
import type { Tool, ToolFamily } from '../../tool.ts';
import { aCall, aTool } from './a-tool.ts';

const healthy: Admission = { mode: 'FULL', degraded: () => undefined };
const degraded: Admission = { mode: 'FULL', degraded: () => 'the file is no database. Move it away.' };
const tx = {} as Transaction;
const call = aCall();

const run = (admission: Admission, tool: Tool, args = {}) => dispatch(admission, tool, args, call, tx);

describe('a tool the mode admits', () => {
  test('gets its arguments, its call and its transaction, and its value comes back', async () => {
    const handle = vi.fn(() => ({ found: 1 }));

    const result = await run(healthy, aTool({ handle }), { a: 1 });

    expect(handle.mock.calls).toEqual([[{ a: 1 }, call, tx]]);
    expect(result).toEqual({ found: 1 });
  });

  test('has its error passed on as it is, thrown at once or later', async () => {
    const error = new Error('it failed');
    const throws = aTool({
      handle: () => {
        throw error;
      },
    });

    await expect(run(healthy, throws)).rejects.toBe(error);
    await expect(run(healthy, aTool({ handle: () => Promise.reject(error) }))).rejects.toBe(error);
  });
});

describe('a tool the mode does not admit', () => {
  test.each([
    ['READONLY', aTool({ name: 'task_create', effect: 'writes' })],
    ['MINIMAL', aTool({ name: 'task_get' })],
  ] as const)('is not run in %s, and the message says what would help', async (mode, tool) => {
    const handle = vi.fn(() => ({}));

    const refused = run({ ...healthy, mode }, { ...tool, handle });

    await expect(refused).rejects.toMatchObject({
      code: 'TOOL_NOT_ADMITTED',
      message: expect.stringMatching(new RegExp(`^${tool.name} .*${mode}.*COLIBRI_MODE=FULL`)),
      details: { mode },
    });
    expect(handle).not.toHaveBeenCalled();
  });

  test('hears of the mode before it hears of the database', async () => {
    const refused = run({ ...degraded, mode: 'READONLY' }, aTool({ family: 'tasks', effect: 'writes' }));

    await expect(refused).rejects.toMatchObject({ code: 'TOOL_NOT_ADMITTED' });
  });
});

describe('without the database there should be', () => {
  test.each<ToolFamily>(['tasks', 'trail', 'proof', 'skills'])(
    '%s is not run, and is told why',
    async (family) => {
      const handle = vi.fn(() => ({}));

      const refused = run(degraded, aTool({ family, handle }));

      await expect(refused).rejects.toMatchObject({
        code: 'ERR_INIT_FAILED',
        message: expect.stringContaining('the file is no database. Move it away. Then start it again.'),
        details: { reason: 'the file is no database. Move it away.' },
      });
      expect(handle).not.toHaveBeenCalled();
    },
  );

  test('the system family still answers', async () => {
    await expect(run(degraded, aTool({ handle: () => ({ alive: true }) }))).resolves.toEqual({ alive: true });
  });
});
