export {
  hasFinalizedSession,
  insertSession,
  lastChangeOf,
  noteTaskChange,
  openSessionOf,
  requireSession,
  requireTaskReference,
  type SessionRow,
  sessionId,
  sessionLeaves,
  updateSession,
} from './sessions.ts';
export { hasThought, thoughtIds } from './thoughts.ts';
export { type TrailDeps, trailTools } from './tools.ts';
