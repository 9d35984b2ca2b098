export { checkSeals } from './seals.ts';
export {
  hasFinalizedSession,
  insertSession,
  lastChangeOf,
  noteTaskChange,
  openSessionOf,
  requireSession,
  requireTaskReference,
  type SessionRow,
  type StoredSession,
  sessionId,
  sessionLeaves,
  updateSession,
} from './sessions.ts';
export { hasThought, thoughtHash, thoughtIds } from './thoughts.ts';
export { type TrailDeps, trailTools } from './tools.ts';
