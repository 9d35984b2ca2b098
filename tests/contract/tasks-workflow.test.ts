import { expect } from 'vitest';
import { canonical, withDatabase } from '../driver/audit-file.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { type Desk, openDesk, step } from './tasks-desk.ts';

/** Both tables once more, as the contract prints them; the server's own is not looked at. */
const ARROWS: Readonly<Record<'kanban' | 'pipeline', Readonly<Record<string, readonly string[]>>>> = {
  kanban: {
    backlog: ['todo', 'cancelled'],
    todo: ['in_progress', 'blocked', 'cancelled'],
    in_progress: ['review', 'blocked', 'cancelled'],
    blocked: ['todo', 'in_progress', 'cancelled'],
    review: ['done', 'backlog', 'blocked', 'cancelled'],
    done: [],
    cancelled: [],
  },
  pipeline: {
    INIT: ['GATHER', 'CANCELLED'],
    GATHER: ['ANALYZE', 'CANCELLED'],
    ANALYZE: ['PLAN', 'CANCELLED'],
    PLAN: ['APPLY', 'CANCELLED'],
    APPLY: ['VERIFY', 'CANCELLED'],
    VERIFY: ['DONE', 'GATHER', 'CANCELLED'],
    DONE: [],
    CANCELLED: [],
  },
};

const EVERY_STATUS = Object.values(ARROWS).flatMap((table) => Object.keys(table));

/** The shortest way from the first status to each. */
function pathsOf(workflow: 'kanban' | 'pipeline'): Map<string, readonly string[]> {
  const start = workflow === 'kanban' ? 'backlog' : 'INIT';
  const paths = new Map<string, readonly string[]>([[start, []]]);
  for (const [from, path] of paths) {
    for (const to of ARROWS[workflow][from] ?? []) if (!paths.has(to)) paths.set(to, [...path, to]);
  }
  return paths;
}

async function taskIn(desk: Desk, workflow: 'kanban' | 'pipeline', path: readonly string[]): Promise<string> {
  const id = await desk.create({ workflow });
  await desk.think(id);
  await desk.move(id, ...path);
  return id;
}

proves('tasks.workflow.kanban', 'every arrow of kanban can be walked', ({ colibri }) =>
  walkEveryArrow(colibri, 'kanban'),
);

proves('tasks.workflow.pipeline', 'every arrow of pipeline can be walked', ({ colibri }) =>
  walkEveryArrow(colibri, 'pipeline'),
);

async function walkEveryArrow(colibri: Playground, workflow: 'kanban' | 'pipeline'): Promise<void> {
  const desk = await openDesk(colibri, { clientName: 'ada' });
  for (const [from, path] of pathsOf(workflow)) {
    for (const to of ARROWS[workflow][from] ?? []) {
      const task_id = await taskIn(desk, workflow, path);
      const answer = await desk.ok('task_update', { task_id, ...step(to) });
      expect(answer).toMatchObject({ status: to, previous_status: from });
      expect(await desk.get(task_id)).toMatchObject({
        status: to,
        workflow,
        status_by: 'ada',
        status_since: answer.updated_at,
      });
    }
  }
}

proves(
  ['tasks.workflow.closed', 'tasks.workflow.kept'],
  'every pair outside the tables is refused with what is allowed, changes nothing, and is audited',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { clientName: 'ada' });
    let pairs = 0;

    for (const workflow of ['kanban', 'pipeline'] as const) {
      for (const [from, path] of pathsOf(workflow)) {
        const task_id = await taskIn(desk, workflow, path);
        const { status_since, holder } = await desk.get(task_id);
        const who =
          holder === undefined
            ? { status_by: 'ada', since: status_since }
            : { held_by: 'ada', since: holder.since };
        const before = tasksIn(colibri.dbPath);
        const allowed = ARROWS[workflow][from] ?? [];
        for (const to of EVERY_STATUS.filter((status) => !allowed.includes(status))) {
          pairs += 1;
          const error = await desk.refused('task_update', { task_id, ...step(to), title: 'must not stick' });

          expect(error.code).toBe('ERR_INVALID_TRANSITION');
          expect(error.details).toEqual({
            task_id,
            workflow,
            from,
            to,
            allowed,
            first: error.details.first,
            ...who,
          });
          expect([undefined, ...allowed]).toContain(error.details.first);
          const told = allowed.length === 0 ? 'final' : `Allowed next: ${allowed.join(', ')}.`;
          for (const part of [task_id, from, to, 'ada', status_since, told])
            expect(error.message).toContain(part);
        }
        expect(tasksIn(colibri.dbPath)).toBe(before);
      }
    }

    // 7 × 15 and 8 × 15 pairs without the 15 and 13 arrows.
    expect(pairs).toBe(225 - 15 - 13);
    const refusals = colibri
      .readAudit()
      .calls.filter(({ exits }) => exits[0]?.error_code === 'ERR_INVALID_TRANSITION');
    expect(refusals).toHaveLength(pairs);
    for (const { enter, exits } of refusals) {
      expect(enter).toMatchObject({ tool: 'task_update', schema_valid: true, actor: 'ada' });
      expect(exits).toMatchObject([{ outcome: 'error', effects: [] }]);
    }
  },
);

proves(
  'tasks.workflow.default',
  'a task that names no workflow gets the configured one',
  async ({ colibri }) => {
    const kanban = await openDesk(colibri);
    const pipeline = await openDesk(colibri, { env: { COLIBRI_WORKFLOW: 'pipeline' } });

    expect(await kanban.ok('task_create', { title: 'x', project: 'p' })).toMatchObject({
      workflow: 'kanban',
      status: 'backlog',
    });
    expect(await pipeline.ok('task_create', { title: 'x', project: 'p' })).toMatchObject({
      workflow: 'pipeline',
      status: 'INIT',
    });
    expect(await kanban.ok('task_create', { title: 'x', project: 'p', workflow: 'pipeline' })).toMatchObject({
      status: 'INIT',
    });
    expect(await pipeline.ok('task_create', { title: 'x', project: 'p', workflow: 'kanban' })).toMatchObject({
      status: 'backlog',
    });
  },
);

proves(
  'tasks.workflow.kept',
  'no call changes the workflow of a task, whatever the server is set to',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { env: { COLIBRI_WORKFLOW: 'pipeline' } });
    await desk.create({ workflow: 'kanban' });

    const error = await desk.rejected('task_update', { task_id: 'T-0001', workflow: 'pipeline' });
    await desk.move('T-0001', 'todo', 'blocked', 'in_progress', 'review', 'backlog');

    expect(error.message).toContain('Unknown field "workflow"');
    expect(await desk.get('T-0001')).toMatchObject({ workflow: 'kanban', status: 'backlog' });
  },
);

proves(
  ['tasks.finish.thought', 'tasks.finish.progress', 'tasks.update.warnings'],
  'finishing needs a thought, in both workflows, and then sets progress to 100',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);

    for (const [workflow, path, done] of [
      ['kanban', ['todo', 'in_progress', 'review'], 'done'],
      ['pipeline', ['GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY'], 'DONE'],
    ] as const) {
      const task_id = await desk.create({ workflow });
      const other = await desk.create();
      await desk.think(other);
      await desk.move(task_id, ...path);
      await desk.update(task_id, { progress: 70 });
      const before = await desk.get(task_id);

      const error = await desk.refused('task_update', { task_id, status: done });
      const still = await desk.get(task_id);
      await desk.think(task_id);
      const answer = await desk.ok('task_update', { task_id, status: done, progress: 80 });

      expect(error.code).toBe('ERR_WRITEBACK_REQUIRED');
      expect(error.details).toEqual({ task_id, missing_fields: ['thought_record'] });
      for (const part of [task_id, 'thought_record']) expect(error.message).toContain(part);
      expect({ ...still, holder: undefined }).toEqual({ ...before, holder: undefined });
      expect(answer).toMatchObject({ status: done, progress: 100, previous_status: path.at(-1) });
      expect(answer.warnings).toEqual([expect.stringContaining('80')]);
      expect(await desk.get(task_id)).toMatchObject({ status: done, progress: 100 });
    }
  },
);

proves(
  'tasks.finish.proof',
  'a proof_grade task also needs its newest thought sealed and no session of its own open, and is told what is not',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ proof_grade: true });
    await desk.move('T-0001', 'todo', 'in_progress', 'review');
    const done = { task_id: 'T-0001', status: 'done' };

    const noThought = await desk.refused('task_update', done);
    await desk.other('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve' });
    await desk.think('T-0001');
    const stillOpen = await desk.refused('task_update', done);
    await desk.other('merkle_finalize', { session_id: 'A-0001' });
    const finished = await desk.ok('task_update', done);

    expect(noThought.code).toBe('ERR_WRITEBACK_REQUIRED');
    expect(stillOpen.code).toBe('ERR_PROOF_REQUIRED');
    expect(stillOpen.details).toEqual({ task_id: 'T-0001', missing_fields: ['merkle_finalize'] });
    for (const part of ['T-0001', 'A-0001', 'merkle_finalize']) expect(stillOpen.message).toContain(part);
    expect(finished).toMatchObject({ status: 'done', progress: 100 });
    expect(finished.warnings).toBeUndefined();
  },
);

proves(
  'tasks.finish.proof',
  'the seal of an older thought is not enough, and an older one without a seal is a warning',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ title: 'above' });
    await desk.create({ proof_grade: true, parent_id: 'T-0001' });
    await desk.move('T-0002', 'todo', 'in_progress', 'review');
    const done = { task_id: 'T-0002', status: 'done' };
    // Recorded in a deep session of the task above, which seals the records of that task only.
    await desk.other('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve', scope: 'deep' });
    await desk.think('T-0001');
    await desk.think('T-0002');
    await desk.other('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0001' });

    const noSeal = await desk.refused('task_update', done);
    await desk.other('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve', scope: 'deep' });
    await desk.think('T-0002');
    const inOpenSession = await desk.refused('task_update', done);
    await desk.other('merkle_finalize', { session_id: 'A-0002' });
    const finished = await desk.ok('task_update', done);

    for (const part of ['Θ-0002', 'audit_session_start', 'merkle_finalize'])
      expect(noSeal.message).toContain(part);
    expect(inOpenSession).toMatchObject({
      code: 'ERR_PROOF_REQUIRED',
      message: expect.stringContaining('Θ-0003'),
    });
    expect(finished.warnings).toEqual([expect.stringContaining('1 older thought')]);
  },
);

proves('tasks.finish.proof', 'the finalized session of another task is not enough', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  for (const proof_grade of [true, false]) await desk.create({ proof_grade });
  await desk.move('T-0001', 'todo', 'in_progress', 'review');
  await desk.other('audit_session_start', { task_id: 'T-0002', auditor_id: 'eve' });
  await desk.think('T-0002');
  await desk.other('merkle_finalize', { session_id: 'A-0001' });
  await desk.other('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve' });
  await desk.think('T-0001');

  const error = await desk.refused('task_update', { task_id: 'T-0001', status: 'done' });

  expect(error.code).toBe('ERR_PROOF_REQUIRED');
});

proves(
  'tasks.cancel.free',
  'cancelling needs neither thought nor session and leaves progress alone',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);

    for (const [workflow, path, cancelled] of [
      ['kanban', ['todo', 'in_progress'], 'cancelled'],
      ['pipeline', ['GATHER'], 'CANCELLED'],
    ] as const) {
      const task_id = await desk.create({ workflow, proof_grade: true });
      await desk.move(task_id, ...path);
      await desk.update(task_id, { progress: 30 });
      const answer = await desk.update(task_id, { status: cancelled });
      expect(answer).toMatchObject({ status: cancelled, progress: 30, previous_status: path.at(-1) });
      expect(answer).not.toHaveProperty('warnings');
    }
  },
);

proves(
  'tasks.blocked.reason',
  'blocked needs a reason, which is gone when the task moves on',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    await desk.move('T-0001', 'todo');

    const error = await desk.rejected('task_update', { task_id: 'T-0001', status: 'blocked' });
    const isNull = await desk.rejected('task_update', {
      task_id: 'T-0001',
      status: 'blocked',
      blocked_reason: null,
    });
    await desk.update('T-0001', { status: 'blocked', blocked_reason: 'no key yet' });
    const blocked = await desk.get('T-0001');
    const reworded = await desk.update('T-0001', { blocked_reason: 'still no key' });
    const waiting = await desk.get('T-0001');
    await desk.move('T-0001', 'in_progress');
    const going = await desk.get('T-0001');

    for (const refusal of [error, isNull]) {
      expect(refusal.message).toContain('blocked_reason: required when status is blocked');
      expect(refusal.details.issues).toMatchObject([{ path: ['blocked_reason'] }]);
    }
    expect(blocked).toMatchObject({ status: 'blocked', blocked_reason: 'no key yet' });
    expect(reworded).not.toHaveProperty('warnings');
    expect(waiting).toMatchObject({
      status: 'blocked',
      blocked_reason: 'still no key',
      status_since: blocked.status_since,
    });
    expect(going).not.toHaveProperty('blocked_reason');
  },
);

proves('tasks.update.warnings', 'what may not be meant is done and said', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  await desk.create();
  await desk.create({ parent_id: 'T-0001' });
  await desk.think('T-0001');

  const full = await desk.update('T-0001', { progress: 100 });
  const almost = await desk.update('T-0001', { progress: 99.9 });
  const reason = await desk.update('T-0001', { blocked_reason: 'not really' });
  await desk.move('T-0001', 'todo', 'in_progress', 'review');
  const early = await desk.update('T-0001', { status: 'done', progress: 100 });
  const plain = await desk.update('T-0002', { progress: 50, title: 'x' });

  expect(full).toMatchObject({ progress: 100, warnings: [expect.stringMatching(/100.*backlog/)] });
  expect(almost).not.toHaveProperty('warnings');
  expect(reason.warnings).toEqual([expect.stringMatching(/blocked_reason.*backlog/)]);
  expect(early).toMatchObject({ status: 'done', warnings: [expect.stringMatching(/1 of its children/)] });
  expect(plain).not.toHaveProperty('warnings');
});

function tasksIn(path: string): string {
  return withDatabase(path, (db) => canonical(db.prepare('SELECT * FROM tasks ORDER BY id').all()));
}
