import { describe, expect, test } from 'vitest';
import { type Carrier, isTextOf } from '../../domains/owner/rules.ts';

const call = (tool: string, wrote?: string, task = 'T-0001'): Carrier => ({ position: 5, tool, task, wrote });

const MADE = call('task_create', 'T-0001');
const CHANGED = call('task_update', 'T-0001');
const THOUGHT = call('thought_record', 'Θ-0007');
const OTHER_THOUGHT = call('thought_record', 'Θ-0008');
const SESSION = call('audit_session_start', 'A-0002');
const REFUSED_CHANGE = call('task_update');
const REFUSED_THOUGHT = call('thought_record');
const REFUSED_SESSION = call('audit_session_start');
const OF_ANOTHER_TASK = call('task_update', undefined, 'T-0009');
const OF_NO_TASK: Carrier = { position: 5, tool: 'task_create', task: undefined, wrote: undefined };
const OWNERS = call('owner_erase');
const ALL = {
  ...{ MADE, CHANGED, THOUGHT, OTHER_THOUGHT, SESSION, REFUSED_CHANGE, REFUSED_THOUGHT, REFUSED_SESSION },
  ...{ OF_ANOTHER_TASK, OF_NO_TASK, OWNERS },
};

describe('what an erasure takes with it', () => {
  test.each([
    ['T-0001', 'T-0001', ['MADE', 'CHANGED', 'REFUSED_CHANGE', 'REFUSED_THOUGHT', 'REFUSED_SESSION']],
    ['Θ-0007', 'T-0001', ['THOUGHT', 'REFUSED_THOUGHT']],
    ['A-0002', 'T-0001', ['SESSION', 'REFUSED_SESSION']],
    ['Θ-0007', 'T-0009', []],
    ['T-0009', 'T-0009', ['OF_ANOTHER_TASK']],
    ['T-0001', undefined, []],
    [
      '#5',
      undefined,
      ['REFUSED_CHANGE', 'REFUSED_THOUGHT', 'REFUSED_SESSION', 'OF_ANOTHER_TASK', 'OF_NO_TASK'],
    ],
    ['#6', undefined, []],
  ])('%s of %s takes %j', (record, task_id, taken) => {
    const found = Object.entries(ALL).filter(([, one]) => isTextOf({ record, task_id }, one));

    expect(found.map(([name]) => name)).toEqual(taken);
  });
});
