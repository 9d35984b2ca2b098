import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';
import { PATIENCE } from '../driver/server-process.ts';
import type { RequirementId } from './requirements.ts';

export interface ProofOptions {
  /** Why the proof cannot be given here; undefined where it can. Shown in the name of the skipped test. */
  readonly unless?: string | undefined;
  readonly timeoutMs?: number;
  /** For proofs that wait more than they work. */
  readonly concurrent?: boolean;
}

export interface ProofContext {
  readonly colibri: Playground;
}

/**
 * A test that says which promises it proves. It plays in a folder of its own; whatever else it finds, stdout must have
 * been pure and no request answered twice.
 */
export function proves(
  ids: RequirementId | readonly RequirementId[],
  sentence: string,
  prove: (context: ProofContext) => Promise<void> | void,
  { unless, timeoutMs = 60_000, concurrent = false }: ProofOptions = {},
): void {
  const name = proving(ids, sentence);
  if (unless !== undefined) {
    test.skip(`${name} — skipped: ${unless}`);
    return;
  }
  test(name, { timeout: timeoutMs * PATIENCE * (PATIENCE > 1 ? 2 : 1), concurrent }, async () => {
    const colibri = new Playground();
    let complaints: string[] = [];
    try {
      await prove({ colibri });
    } finally {
      complaints = await colibri.dispose();
    }
    expect(complaints).toEqual([]);
  });
}

/** The name of a test that proves promises in a way of its own: one of many cases, or on what others prepared. */
export function proving(ids: RequirementId | readonly RequirementId[], sentence: string): string {
  return `${sentence} [${[ids].flat().join(', ')}]`;
}
