import type { Config } from '../config.ts';
import { parseCheckpoint } from '../integrity/checkpoint.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import type { ProofReach } from './story.ts';

/**
 * How far the newest checkpoint beside the database claims to reach. Only for the marks beside a line: whether the claim
 * holds is what `colibri verify` checks.
 */
export function proofReach(config: Config): ProofReach {
  const note = new CheckpointFiles(config.dbPath).newest();
  try {
    const text = note?.slice(0, note.indexOf('\n\n') + 1) ?? '';
    return { checkpointed: parseCheckpoint(text).size, anchored: 0 };
  } catch {
    return { checkpointed: 0, anchored: 0 };
  }
}
