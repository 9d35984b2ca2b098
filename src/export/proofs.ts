import { verifyConsistency } from '../integrity/proof-verifier.ts';
import { consistencyProof, rootAt } from '../integrity/proofs.ts';
import { logNodes } from '../log/tree.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { formatConsistency } from '../verify/sources/proofs.ts';
import { readHeads, requireNewest } from './heads.ts';

/** Shows that the newest checkpoint goes on from the log as it was at `old` rows. */
export async function buildConsistency(
  storage: StorageEngine,
  old: number,
): Promise<{ readonly text: string; readonly size: number }> {
  return await storage.read(async (tx) => {
    const { size, root, note } = requireNewest(await readHeads(tx, []), old);
    const nodes = logNodes(tx);
    const proof = await consistencyProof(nodes, old, size);
    const root1 = await rootAt(nodes, old);
    try {
      verifyConsistency({ size1: old, size2: size, root1, root2: root, proof });
    } catch (cause) {
      // A log that was changed must not hand out a proof that only others find wanting.
      throw new Error(
        `The log does not lead to the checkpoint of ${size} rows: it was changed after it was signed. "colibri verify" shows where.`,
        { cause },
      );
    }
    return { text: formatConsistency(old, proof, note), size };
  });
}
