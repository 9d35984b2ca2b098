export type { Priority, TaskType } from './schema.ts';
export { type TaskSettings, taskTools } from './tools.ts';
export type { Status, Workflow } from './workflows.ts';
