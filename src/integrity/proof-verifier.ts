import { isHash } from './digest.ts';
import { nodeHash } from './tree.ts';

/** Says in its message what a proof fails to show. */
export class ProofError extends Error {
  override readonly name = 'ProofError';
}

/** Counts, hashes and a proof about them. */
type Claim<Counts extends string, Hashes extends string> = Readonly<
  Record<Counts, number> & Record<Hashes, string> & Record<'proof', readonly string[]>
>;

/**
 * Returns only if the leaf is at `index` of the tree with this size and root; throws `ProofError` otherwise, so that no
 * caller can forget to look at an answer. Every field may come from a stranger. The walk is RFC 9162 2.1.3.2 and shares no
 * step with the code that makes proofs.
 */
export function verifyInclusion(claim: Claim<'index' | 'size', 'leafHash' | 'root'>): void {
  const { index, size, leafHash, root, proof } = claim;
  requireSize('size', size);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) fail(`index ${index} is not below ${size}`);
  requireHashes([leafHash, root, ...proof]);
  let hash = leafHash;
  for (const { sibling, isLeft } of climb(index, size - 1, proof))
    hash = isLeft ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
  if (hash !== root) fail('the proof leads to another root');
}

/**
 * Returns only if the tree of `size1` is the beginning of the tree of `size2` (RFC 9162 2.1.4.2); throws `ProofError`
 * otherwise. A tree without leaves begins every tree, so a proof from size 0 says nothing and is refused.
 */
export function verifyConsistency(claim: Claim<'size1' | 'size2', 'root1' | 'root2'>): void {
  const { size1, size2, root1, root2, proof } = claim;
  requireSize('size1', size1);
  requireSize('size2', size2);
  if (size1 > size2) fail(`size1 ${size1} is above size2 ${size2}`);
  requireHashes([root1, root2, ...proof]);
  if (size1 === size2) {
    if (proof.length > 0) fail('equal sizes need no proof');
    if (root1 !== root2) fail('the roots differ at equal sizes');
    return;
  }
  let [node, last] = [size1 - 1, size2 - 1];
  while (node % 2 === 1) [node, last] = [half(node), half(last)];
  // An old tree that is a full subtree of the new one starts the walk itself and is not in the proof.
  const [first, ...siblings] = node === 0 ? [root1, ...proof] : proof;
  if (first === undefined) fail('the proof is too short');
  let [old, current] = [first, first];
  for (const { sibling, isLeft } of climb(node, last, siblings)) {
    if (isLeft) old = nodeHash(sibling, old);
    current = isLeft ? nodeHash(sibling, current) : nodeHash(current, sibling);
  }
  if (old !== root1) fail('the proof leads to another first root');
  if (current !== root2) fail('the proof leads to another second root');
}

/** The side of each sibling on the way from a node to the root; `last` is the last node of its level. */
function* climb(start: number, startLast: number, siblings: readonly string[]) {
  let [node, last] = [start, startLast];
  for (const sibling of siblings) {
    if (last === 0) fail('the proof is too long');
    yield { sibling, isLeft: node % 2 === 1 || node === last };
    // A last node without a sibling rises unchanged until it is a right child.
    if (node === last) while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    [node, last] = [half(node), half(last)];
  }
  if (last !== 0) fail('the proof is too short');
}

// Sizes outgrow 32 bits: no shifting.
function half(count: number): number {
  return Math.floor(count / 2);
}

function requireSize(what: string, size: number): void {
  if (!Number.isSafeInteger(size) || size < 1) fail(`${what} must be a whole number above 0, not ${size}`);
}

// An empty hash would otherwise equal another empty hash: every one must be 32 bytes.
function requireHashes(hashes: readonly string[]): void {
  if (!hashes.every(isHash)) fail('not every hash is a SHA-256 in lowercase hex');
}

function fail(reason: string): never {
  throw new ProofError(reason);
}
