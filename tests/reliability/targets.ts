import type { Recorder } from './recorder.ts';

/** One call of a writing tool, and what must be there before it. */
export interface Target {
  readonly tool: string;
  /** Does the calls that come first; returns the arguments of the one that is looked at. */
  prepare(recorder: Recorder): Promise<object>;
}

const TASK = { title: 'a task', project: 'demo', labels: ['x', 'y'], description: 'words to find' };

async function aTask(recorder: Recorder): Promise<string> {
  return (await recorder.data('task_create', TASK)).task_id as string;
}

async function aSession(recorder: Recorder, task_id: string): Promise<string> {
  return (await recorder.data('audit_session_start', { task_id, auditor_id: 'a' })).session_id as string;
}

/** The five tools that write. */
export const TARGETS: readonly Target[] = [
  {
    tool: 'task_create',
    prepare: async (recorder) => ({ ...TASK, depends_on: [await aTask(recorder)] }),
  },
  {
    tool: 'task_update',
    prepare: async (recorder) => ({ task_id: await aTask(recorder), status: 'todo', title: 'renamed' }),
  },
  {
    tool: 'thought_record',
    async prepare(recorder) {
      const task_id = await aTask(recorder);
      await aSession(recorder, task_id);
      return { task_id, type: 'decision', content: 'because' };
    },
  },
  {
    tool: 'audit_session_start',
    prepare: async (recorder) => ({ task_id: await aTask(recorder), auditor_id: 'a', reason: 'to see' }),
  },
  {
    tool: 'merkle_finalize',
    async prepare(recorder) {
      const task_id = await aTask(recorder);
      const session_id = await aSession(recorder, task_id);
      await recorder.data('thought_record', { task_id, type: 'plan', content: 'so' });
      return { session_id };
    },
  },
];
