export type { TaskSettings } from './rules.ts';
export { taskTools } from './tools.ts';
