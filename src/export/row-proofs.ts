import { verifyInclusion } from '../integrity/proof-verifier.ts';
import { inclusionProof, type NodeReader } from '../integrity/proofs.ts';
import { leafHash } from '../integrity/tree.ts';
import { logNodes } from '../log/tree.ts';
import type { Reader } from '../storage/engine.ts';

/** The log is not the one that was signed. */
export class NotSigned extends Error {}

/** Proves that rows are in the log as a checkpoint signs it. */
export type RowProver = (position: number, contentHash: string) => Promise<readonly string[]>;

/** Neighbouring rows share most of their way up: each node is read once. Bounded, so that many rows cost no more than some. */
const NODES_MAX = 50_000;

export function createRowProver(
  tx: Reader,
  head: { readonly size: number; readonly root: string },
): RowProver {
  const nodes = remembering(logNodes(tx));
  return async (position, contentHash) => {
    const index = position - 1;
    try {
      const proof = await inclusionProof(nodes, index, head.size);
      verifyInclusion({ index, size: head.size, leafHash: leafHash(contentHash), root: head.root, proof });
      return proof;
    } catch (cause) {
      throw new NotSigned(
        `Audit row ${position} does not lead to the checkpoint of ${head.size} rows: the log was changed after it was signed. "colibri verify" shows where.`,
        { cause },
      );
    }
  };
}

function remembering(nodes: NodeReader): NodeReader {
  const known = new Map<string, string>();
  return {
    async node(level, index) {
      const name = `${level}/${index}`;
      const found = known.get(name);
      if (found !== undefined) return found;
      const hash = await nodes.node(level, index);
      if (known.size >= NODES_MAX) known.clear();
      known.set(name, hash);
      return hash;
    },
  };
}
