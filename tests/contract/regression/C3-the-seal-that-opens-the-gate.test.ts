import { expect } from 'vitest';
import { proves } from '../proves.ts';
import { openDesk } from '../tasks-desk.ts';

proves(
  ['tasks.finish.proof', 'tasks.update.warnings'],
  'C3, C4, C6: a seal opens the gate only for what it holds, a session lists what it records, and odd progress is a warning',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const [above, below] = [
      await desk.create({ proof_grade: true }),
      await desk.create({ proof_grade: true, parent_id: 'T-0001' }),
    ];
    const open = async (task_id: string, scope: string) =>
      (await desk.other('audit_session_start', { task_id, auditor_id: 'eve', scope })).session_id;
    const listed = async (filter: object) => {
      const { thoughts } = await desk.other('thought_record_list', filter);
      return (thoughts as { task_id: string }[]).map(({ task_id }) => task_id);
    };
    const deep = await open(above, 'deep');
    await desk.think(above);
    await desk.think(below);
    for (const task_id of [above, below]) await desk.move(task_id, 'todo', 'in_progress', 'review');
    const finish = { status: 'done' } as const;

    // Sealed for the child alone: the seal holds no record of the parent.
    await desk.other('merkle_finalize', { session_id: deep, task_id: below });
    const unsealed = await desk.refused('task_update', { task_id: above, ...finish });
    const sealedAbove = await desk.update(below, finish);
    // Sealed, and then gone on in a second session.
    await open(above, 'shallow');
    await desk.think(above);
    const goingOn = await desk.refused('task_update', { task_id: above, ...finish });
    await desk.other('merkle_finalize', { session_id: 'A-0002' });
    const finished = await desk.update(above, finish);
    const less = await desk.update(above, { progress: 3 });

    for (const { code } of [unsealed, goingOn]) expect(code).toBe('ERR_PROOF_REQUIRED');
    expect(unsealed.message).toContain('Θ-0001 is not in a sealed session');
    expect(goingOn.message).toContain('A-0002 is still open');
    expect(sealedAbove).toMatchObject({ status: 'done', progress: 100 });
    expect(finished.warnings).toEqual([expect.stringContaining('1 older thought')]);
    expect(less).toMatchObject({ progress: 3, warnings: [expect.stringContaining('is finished')] });
    expect(await listed({ session_id: deep })).toEqual([above, below]);
    expect(await listed({ session_id: deep, task_id: below })).toEqual([below]);
    expect(await listed({})).toHaveLength(3);
  },
);
