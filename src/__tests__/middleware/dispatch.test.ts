import { describe, expect, test } from 'vitest';
import { type Admission, objectionTo } from '../../middleware/compose.ts';
import type { Tool, ToolFamily } from '../../tool.ts';
import { aTool, aWritingTool } from './a-tool.ts';

const healthy: Admission = { mode: 'FULL', degraded: () => undefined };
const degraded: Admission = { mode: 'FULL', degraded: () => 'the file is no database. Move it away.' };

const refusal = (admission: Admission, tool: Tool) => objectionTo(tool, admission);

test('a tool the mode admits passes the gate', () => {
  expect(refusal(healthy, aTool())).toBeUndefined();
  expect(refusal(healthy, aWritingTool({ family: 'tasks' }))).toBeUndefined();
  expect(refusal({ ...healthy, mode: 'READONLY' }, aTool({ family: 'tasks' }))).toBeUndefined();
});

describe('a tool the mode does not admit', () => {
  test.each([
    ['READONLY', aWritingTool({ name: 'task_create' })],
    ['MINIMAL', aTool({ name: 'task_get' })],
  ] as const)('is refused in %s, and the message says what would help', (mode, tool) => {
    const error = refusal({ ...healthy, mode }, tool);

    expect(error).toMatchObject({
      code: 'TOOL_NOT_ADMITTED',
      message: expect.stringMatching(new RegExp(`^${tool.name} .*${mode}.*COLIBRI_MODE=FULL`)),
      details: { mode },
    });
  });

  test('hears of the mode before it hears of the database', () => {
    const error = refusal({ ...degraded, mode: 'READONLY' }, aWritingTool({ family: 'tasks' }));

    expect(error).toMatchObject({ code: 'TOOL_NOT_ADMITTED' });
  });
});

describe('without the database there should be', () => {
  test.each<ToolFamily>(['tasks', 'trail', 'proof', 'skills', 'owner'])(
    '%s is refused, and is told why',
    (family) => {
      expect(refusal(degraded, aTool({ family }))).toMatchObject({
        code: 'ERR_INIT_FAILED',
        message: expect.stringContaining('the file is no database. Move it away.'),
        details: { reason: 'the file is no database. Move it away.' },
      });
    },
  );

  test('the system family still answers', () => {
    expect(refusal(degraded, aTool())).toBeUndefined();
  });
});
