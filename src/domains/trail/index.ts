export type { BrokenLink, ThoughtType, TraceEntry } from './schema.ts';
export { type ChainReport, type ChainSubject, type TrailDeps, trailTools } from './tools.ts';
