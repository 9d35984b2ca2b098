import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proves } from '../../../tests/contract/proves.ts';
import {
  ARROWS,
  allowedFrom,
  assertArrow,
  INITIAL,
  isDone,
  isFinal,
  QUEUE,
  queueOf,
  STATUSES,
  type Status,
  WORKFLOWS,
  type Workflow,
} from '../../domains/tasks/workflows.ts';
import { ColibriError } from '../../errors.ts';
import { scratchFolder } from '../storage/scratch.ts';
import { openBench } from './bench.ts';
import { trials } from './trials.ts';

/** The machines as the contract prints them. */
const CONTRACT: Readonly<Record<Workflow, string>> = {
  kanban: `backlog→todo,cancelled; todo→in_progress,blocked,cancelled; in_progress→review,blocked,cancelled;
    blocked→todo,in_progress,cancelled; review→done,backlog,blocked,cancelled; done→; cancelled→`,
  pipeline: `INIT→GATHER,CANCELLED; GATHER→ANALYZE,CANCELLED; ANALYZE→PLAN,CANCELLED; PLAN→APPLY,CANCELLED;
    APPLY→VERIFY,CANCELLED; VERIFY→DONE,GATHER,CANCELLED; DONE→; CANCELLED→`,
};

const machines = Object.fromEntries(
  Object.entries(CONTRACT).map(([workflow, text]) => [
    workflow,
    new Map(
      text.split(';').map((rule) => {
        const [from = '', to = ''] = rule.trim().split('→');
        return [from, to.split(',').filter((status) => status !== '')];
      }),
    ),
  ]),
) as Record<Workflow, Map<string, string[]>>;

const anyWorkflow = fc.constantFrom(...WORKFLOWS);

describe('the table', () => {
  test.each(WORKFLOWS)('%s is the one the contract prints, arrow by arrow', (workflow) => {
    const table = Object.entries(ARROWS[workflow]).map(([from, to]) => [from, to.toSorted()]);

    expect(Object.fromEntries(table)).toEqual(
      Object.fromEntries([...machines[workflow]].map(([from, to]) => [from, to.toSorted()])),
    );
  });

  test('each status belongs to one workflow, and every arrow stays inside its own', () => {
    const all = WORKFLOWS.flatMap((workflow) => Object.keys(ARROWS[workflow]));

    expect(all.toSorted()).toEqual([...STATUSES].toSorted());
    for (const workflow of WORKFLOWS) {
      const own = Object.keys(ARROWS[workflow]);
      for (const targets of Object.values(ARROWS[workflow])) {
        for (const to of targets) expect(own).toContain(to);
      }
    }
  });

  test.each(WORKFLOWS)(
    'in %s every status is reached from the first and can still be cancelled',
    (workflow) => {
      const reached = new Set<Status>([INITIAL[workflow]]);
      for (const status of reached) for (const to of allowedFrom(workflow, status)) reached.add(to);

      expect([...reached].toSorted()).toEqual(Object.keys(ARROWS[workflow]).toSorted());
      for (const status of reached) {
        const gone = allowedFrom(workflow, status).some((to) => to.toLowerCase() === 'cancelled');
        expect(gone).toBe(!isFinal(workflow, status));
      }
    },
  );

  test('what ends, what is finished and what is next follow from the arrows', () => {
    for (const workflow of WORKFLOWS) {
      for (const status of machines[workflow].keys() as Iterable<Status>) {
        const ends = machines[workflow].get(status)?.length === 0;
        const isNext = status === 'todo' || status === 'INIT';
        expect(isFinal(workflow, status)).toBe(ends);
        expect(isDone(status)).toBe(status.toLowerCase() === 'done');
        expect(queueOf(status)).toBe(status === 'blocked' ? QUEUE.blocked : isNext ? QUEUE.next : QUEUE.none);
      }
    }
  });

  test('a step is refused exactly where the contract has no arrow, and the refusal says which there are', () => {
    fc.assert(
      fc.property(
        anyWorkflow,
        fc.nat(),
        fc.constantFrom(...STATUSES),
        fc.boolean(),
        (workflow, pick, to, held) => {
          const hold = held ? { held_by: 'bob', held_process: 'p', held_since: 'later' } : NOBODY;
          const own = [...machines[workflow].keys()] as Status[];
          const status = own[pick % own.length] as Status;
          const allowed = machines[workflow].get(status) ?? [];
          const step = () =>
            assertArrow({ id: 1, workflow, status, status_by: 'ada', status_since: 'then', ...hold }, to, {
              actor: 'ada',
              process: 'q',
            });

          if (allowed.includes(to)) {
            expect(step).not.toThrow();
            return;
          }
          const refusal = thrownBy(step);
          expect(refusal.code).toBe('ERR_INVALID_TRANSITION');
          const who = held ? { held_by: 'bob', since: 'later' } : { status_by: 'ada', since: 'then' };
          expect(refusal.details).toMatchObject({ from: status, to, allowed, ...who });
          for (const next of allowed) expect(refusal.message).toContain(next);
        },
      ),
      trials('single steps', 500),
    );
  });
});

/** Whoever asks is seen at that moment. */
function withoutTime(answer: object): unknown {
  return JSON.parse(JSON.stringify(answer, (name, value) => (name === 'last_seen' ? undefined : value)));
}

/** Half of the steps follow an arrow, the other half ask for anything at all. */
const anyStep = fc.record({ follow: fc.boolean(), pick: fc.nat({ max: 1_000 }) });

proves(
  'tasks.workflow.walk',
  'random walks never leave the contract, and what is refused changes nothing',
  async () => {
    const bench = await openBench(scratchFolder());
    try {
      await fc.assert(
        fc.asyncProperty(anyWorkflow, fc.array(anyStep, { maxLength: 40 }), async (workflow, steps) => {
          const created = await bench.call<{ task_id: string; status: string }>('task_create', {
            title: 'walker',
            project: 'p',
            workflow,
          });
          if (!created.ok) throw new Error(created.error.message);
          const { task_id } = created.data;
          await bench.call('thought_record', { task_id, type: 'plan', content: 'walk' });
          let at = created.data.status;
          expect(at).toBe(workflow === 'kanban' ? 'backlog' : 'INIT');

          for (const { follow, pick } of steps) {
            const allowed = machines[workflow].get(at) ?? [];
            const choice = follow && allowed.length > 0 ? allowed : STATUSES;
            const to = choice[pick % choice.length] as string;
            const before = await bench.call('task_get', { task_id });
            const reason = to === 'blocked' ? { blocked_reason: 'waits' } : {};
            const answer = await bench.call('task_update', { task_id, status: to, ...reason });
            const after = await bench.call('task_get', { task_id });

            expect(answer.ok, `${at} → ${to}`).toBe(allowed.includes(to));
            if (answer.ok) at = to;
            else expect(withoutTime(after)).toEqual(withoutTime(before));
            expect(after).toMatchObject({ ok: true, data: { status: at, workflow } });
          }
        }),
        trials('random walks', 40),
      );
      expect(await bench.findings()).toEqual([]);
    } finally {
      await bench.close();
    }
  },
);

function thrownBy(work: () => void): ColibriError {
  try {
    work();
  } catch (error) {
    if (error instanceof ColibriError) return error;
  }
  throw new Error('nothing was refused');
}

const NOBODY = { held_by: null, held_process: null, held_since: null };

describe('a refused move says who holds the task', () => {
  const refusalOf = (held_process: string | null, actor: string) => {
    const held = { held_by: 'ada', held_process, held_since: 'then' };
    const task = {
      id: 1,
      workflow: 'kanban',
      status: 'in_progress',
      status_by: 'ada',
      status_since: 'then',
    } as const;
    return thrownBy(() => assertArrow({ ...task, ...held }, 'done', { actor, process: 'p' })).message;
  };

  test.each([
    ['the caller', 'p', 'ada', 'You have held it since then. Set it to review first.'],
    ['the caller at the command line', null, 'ada', 'You have held it since then.'],
    ['another agent', 'p', 'bob', 'ada has held it since then: take another task.'],
    ['a process of the same name', 'q', 'ada', 'in another process: unless that was you before a restart,'],
  ])('%s', (_, process, actor, sentence) => {
    expect(refusalOf(process, actor)).toContain(sentence);
  });
});
