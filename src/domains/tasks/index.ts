export type { TaskSettings } from './rules.ts';
export { taskTools } from './tools.ts';
export { allowedFrom, INITIAL, isDone, STATUSES, type Status, WORKFLOWS } from './workflows.ts';
