import { createHash } from 'node:crypto';

// The definitions of RFC 6962 2.1 as they are printed: slow, recursive, and sharing nothing with the code they
// are compared to.

export function referenceRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0]!;
  const k = 2 ** Math.floor(Math.log2(leaves.length - 1));
  return sha256(Buffer.of(1), referenceRoot(leaves.slice(0, k)), referenceRoot(leaves.slice(k)));
}

export function referenceLeaf(data: Uint8Array): Buffer {
  return sha256(Buffer.of(0), data);
}

function sha256(...parts: readonly Uint8Array[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}
