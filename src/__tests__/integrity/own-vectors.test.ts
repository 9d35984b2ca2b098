import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { formatCheckpoint, formatTlogProof, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { consistencyProof, inclusionProof, nodesInMemory } from '../../integrity/proofs.ts';
import { openNote, parseVerifierKey, signNote } from '../../integrity/signed-note.ts';
import { leafHash, treeRoot } from '../../integrity/tree.ts';
import { isTaken } from './exact-json.ts';
import { readVectors, signerFromSeed } from './test-key.ts';

interface Tree {
  readonly records: readonly string[];
  readonly record_hashes: readonly string[];
  readonly leaf_hashes: readonly string[];
  readonly roots: readonly string[];
  readonly inclusion: readonly { index: number; size: number; proof: readonly string[] }[];
  readonly consistency: readonly { size1: number; size2: number; proof: readonly string[] }[];
}

interface CanonicalCase {
  readonly name: string;
  readonly input: string;
  readonly canonical: string;
  readonly sha256: string;
}

describe('the vectors of this repository', () => {
  const canonical = readVectors('canonical-json.json');

  test.each<CanonicalCase>(canonical.cases)('$name has its canonical text and digest', (vector) => {
    const text = canonicalJson(JSON.parse(vector.input));

    expect(text).toBe(vector.canonical);
    expect(isTaken(text)).toBe(true);
    expect(sha256Hex(text)).toBe(vector.sha256);
  });

  test.each<{ name: string; input: string }>(canonical.refused)('$name is refused', ({ input }) => {
    expect(isTaken(input)).toBe(false);
  });

  test('every record, leaf and root of the tree is found again', () => {
    const tree: Tree = readVectors('tree.json');

    expect(tree.records.map(sha256Hex)).toEqual(tree.record_hashes);
    expect(tree.record_hashes.map(leafHash)).toEqual(tree.leaf_hashes);
    expect(tree.roots.map((_, size) => treeRoot(tree.record_hashes.slice(0, size)))).toEqual(tree.roots);
  });

  test('every proof of the tree is made again and verifies', async () => {
    const tree: Tree = readVectors('tree.json');
    const nodes = nodesInMemory(tree.leaf_hashes);

    for (const { index, size, proof } of tree.inclusion) {
      expect(await inclusionProof(nodes, index, size)).toEqual(proof);
      verifyInclusion({ index, size, proof, leafHash: tree.leaf_hashes[index]!, root: tree.roots[size]! });
    }
    for (const { size1, size2, proof } of tree.consistency) {
      expect(await consistencyProof(nodes, size1, size2)).toEqual(proof);
      verifyConsistency({ size1, size2, proof, root1: tree.roots[size1]!, root2: tree.roots[size2]! });
    }
  });

  test('the checkpoint is signed again to the same note, and the proof written again to the same text', () => {
    const vectors = readVectors('signed-note.json');
    const tree: Tree = readVectors('tree.json');
    const signer = signerFromSeed(vectors.name, vectors.seed_hex);
    const text = formatCheckpoint(vectors.checkpoint);
    const { index, extra } = vectors.proof;
    const path = tree.inclusion.find((vector) => vector.index === index && vector.size === 13)?.proof ?? [];

    expect(signer.verifierKey).toBe(vectors.verifier_key);
    expect(text).toBe(vectors.text);
    expect(signNote(text, signer)).toBe(vectors.note);
    expect(parseCheckpoint(openNote(vectors.note, [parseVerifierKey(vectors.verifier_key)]).text)).toEqual(
      vectors.checkpoint,
    );
    expect(
      formatTlogProof({ index, proof: path, checkpoint: vectors.note, extra: Buffer.from(extra, 'base64') }),
    ).toBe(vectors.proof.text);
  });
});

const python = spawnSync('python3', ['--version']).status === 0;

describe(python ? 'an independent verifier' : 'an independent verifier: NOT RUN, there is no python3', () => {
  test.skipIf(!python)('finds that every vector of this repository holds', () => {
    const script = fileURLToPath(new URL('../../../tests/vectors/check.py', import.meta.url));

    const { status, stdout, stderr } = spawnSync('python3', [script], { encoding: 'utf8' });

    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^\d+ canonical texts, \d+ trees and proofs, \d+ notes and keys\n$/);
  });
});
