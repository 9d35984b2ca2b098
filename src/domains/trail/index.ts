export type { ThoughtType } from './schema.ts';
export { type ChainReport, type ChainSubject, type Evidence, type TrailDeps, trailTools } from './tools.ts';
