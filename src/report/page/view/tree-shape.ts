import { leafHash, nodeHash } from '../../../integrity/tree.ts';

/** A node of a tree as RFC 6962 shapes it, over the leaves from `start` up to but not including `end`. */
export interface TreeNode {
  readonly start: number;
  readonly end: number;
  readonly hash: string;
  /** Levels above the leaves. */
  readonly height: number;
  readonly left?: TreeNode;
  readonly right?: TreeNode;
}

/** One step of a proof: the hash that stands beside the way up. */
export interface ProofStep {
  readonly sibling: TreeNode;
  readonly side: 'left' | 'right';
  /** What the two together make. */
  readonly parent: TreeNode;
}

/** The tree over records in their order, or undefined where there are none. */
export function treeOf(recordHashes: readonly string[]): TreeNode | undefined {
  return recordHashes.length === 0 ? undefined : build(recordHashes, 0, recordHashes.length);
}

function build(hashes: readonly string[], start: number, end: number): TreeNode {
  const count = end - start;
  if (count === 1) return { start, end, height: 0, hash: leafHash(hashes[start] ?? '') };
  let split = 1;
  while (split * 2 < count) split *= 2;
  const left = build(hashes, start, start + split);
  const right = build(hashes, start + split, end);
  return { start, end, height: left.height + 1, left, right, hash: nodeHash(left.hash, right.hash) };
}

/** The way of a leaf to the root, the leaf's own sibling first. */
export function proofSteps(root: TreeNode, index: number): ProofStep[] {
  const steps: ProofStep[] = [];
  for (let node = root; node.left !== undefined && node.right !== undefined; ) {
    const goesLeft = index < node.left.end;
    steps.unshift({
      sibling: goesLeft ? node.right : node.left,
      side: goesLeft ? 'right' : 'left',
      parent: node,
    });
    node = goesLeft ? node.left : node.right;
  }
  return steps;
}
