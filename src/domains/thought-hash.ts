import { sha256Hex } from '../integrity/digest.ts';
import { formatId, TASKS } from '../log/tables.ts';
import type { HashedThought } from './rule.ts';

/**
 * The published formula: six fields in this order, as JSON without spaces. Anyone can recompute it from the listing.
 * `content` is the text itself here.
 */
export function thoughtHash(thought: HashedThought): string {
  const { task_id, type, content, previous_hash, recorded_at, recorded_by } = thought;
  return sha256Hex(
    JSON.stringify({
      task_id: formatId(TASKS, task_id),
      type,
      content,
      previous_hash,
      recorded_at,
      recorded_by,
    }),
  );
}
