import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { leafHash, treeRoot } from '../../src/integrity/tree.ts';
import { sha256Hex } from '../../src/report/page/sha256.ts';
import { proofSteps, treeOf } from '../../src/report/page/view/tree-shape.ts';

const nodeHex = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('the SHA-256 of the page', () => {
  test('is the one of Node for every length around its blocks', () => {
    const bytes = randomBytes(300);
    const lengths = Array.from({ length: 301 }, (_, length) => length);

    const wrong = lengths.filter(
      (length) => sha256Hex(bytes.subarray(0, length)) !== nodeHex(bytes.subarray(0, length)),
    );

    expect(wrong).toEqual([]);
  });

  test('is the one of Node for texts of every script, and for a text larger than its scratch bytes', () => {
    const texts = ['', 'abc', 'Θ 漢字 🐦', '\u2028\0', 'é'.repeat(100_000)];

    expect(texts.map(sha256Hex)).toEqual(texts.map(nodeHex));
  });
});

describe('the tree of the picture', () => {
  test('has the root and the proofs of the log’s own trees, at every size up to 40', async () => {
    for (let size = 1; size <= 40; size += 1) {
      const hashes = Array.from({ length: size }, (_, i) => nodeHex(String(i)));
      const tree = treeOf(hashes);

      expect(tree?.hash).toBe(treeRoot(hashes));
      for (let index = 0; tree !== undefined && index < size; index += 1) {
        const proof = await inclusionProof(nodesInMemory(hashes.map(leafHash)), index, size);
        expect(proofSteps(tree, index).map(({ sibling }) => sibling.hash)).toEqual(proof);
      }
    }
  });
});
