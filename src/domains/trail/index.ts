export type { ThoughtType } from './schema.ts';
export { type ChainReport, type ChainSubject, type TrailDeps, trailTools } from './tools.ts';
