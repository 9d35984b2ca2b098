import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { ProofError, verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { consistencyProof, inclusionProof, nodesInMemory, rootAt } from '../../integrity/proofs.ts';
import { EMPTY_ROOT, leafHash, nodeHash, treeRoot } from '../../integrity/tree.ts';

const RECORDS = Array.from({ length: 70 }, (_, i) => sha256Hex(`record ${i}`));
const LEAVES = RECORDS.map(leafHash);
const NODES = nodesInMemory(LEAVES);
const ROOTS = RECORDS.map((_, i) => treeRoot(RECORDS.slice(0, i + 1)));
const ROOT_OF = (size: number) => ROOTS[size - 1] ?? EMPTY_ROOT;

async function inclusionClaim(index: number, size: number) {
  const proof = await inclusionProof(NODES, index, size);
  return { index, size, leafHash: LEAVES[index]!, root: ROOT_OF(size), proof };
}

async function consistencyClaim(size1: number, size2: number) {
  const proof = await consistencyProof(NODES, size1, size2);
  return { size1, size2, root1: ROOT_OF(size1), root2: ROOT_OF(size2), proof };
}

const sizes = fc.integer({ min: 1, max: RECORDS.length });
const places = sizes.chain((size) => fc.tuple(fc.nat(size - 1), fc.constant(size)));
const growths = sizes.chain((size2) => fc.tuple(fc.integer({ min: 1, max: size2 }), fc.constant(size2)));

/** Every way to spoil a list of hashes a little, each with the sentence that names it. */
function spoiled(proof: readonly string[], bit: number): [what: string, proof: readonly string[]][] {
  const changes: [string, readonly string[]][] = [
    ['a hash more', [...proof, LEAVES[0]!]],
    ['a hash before', [LEAVES[0]!, ...proof]],
  ];
  for (const [at, hash] of proof.entries()) {
    changes.push([`a bit changed in hash ${at}`, proof.with(at, withBitChanged(hash, bit))]);
    changes.push([`hash ${at} left out`, proof.toSpliced(at, 1)]);
    changes.push([`hash ${at} doubled`, proof.toSpliced(at, 0, hash)]);
    changes.push([`hash ${at} empty`, proof.with(at, '')]);
    changes.push([`hash ${at} in capitals`, proof.with(at, hash.toUpperCase())]);
  }
  return changes;
}

function withBitChanged(hash: string, bit: number): string {
  const bytes = Buffer.from(hash, 'hex');
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return bytes.toString('hex');
}

const bits = fc.nat(255);

describe('inclusion', () => {
  test(proving('log-tree.inclusion', 'is shown for every leaf of every size'), async () => {
    for (let size = 1; size <= RECORDS.length; size += 1) {
      for (let index = 0; index < size; index += 1) verifyInclusion(await inclusionClaim(index, size));
    }
  });

  test('is refused with any one hash changed, added or left out', async () => {
    await fc.assert(
      fc.asyncProperty(places, bits, async ([index, size], bit) => {
        const claim = await inclusionClaim(index, size);

        for (const [what, proof] of spoiled(claim.proof, bit)) {
          expect(() => verifyInclusion({ ...claim, proof }), what).toThrow(ProofError);
        }
        for (const field of ['leafHash', 'root'] as const) {
          const changed = { ...claim, [field]: withBitChanged(claim[field], bit) };
          expect(() => verifyInclusion(changed), field).toThrow(ProofError);
        }
      }),
    );
  });

  test('is refused at every other place', async () => {
    await fc.assert(
      fc.asyncProperty(places, fc.nat(RECORDS.length), async ([index, size], other) => {
        fc.pre(other !== index);
        const claim = await inclusionClaim(index, size);

        expect(() => verifyInclusion({ ...claim, index: other })).toThrow(ProofError);
      }),
    );
  });

  test(proving('log-tree.strict', 'is refused for every other size with the root of that size'), async () => {
    await fc.assert(
      fc.asyncProperty(places, sizes, async ([index, size], other) => {
        fc.pre(other !== size);
        const claim = await inclusionClaim(index, size);

        expect(() => verifyInclusion({ ...claim, size: other, root: ROOT_OF(other) })).toThrow(ProofError);
      }),
    );
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])(
    proving('log-tree.strict', 'is refused for a tree of size %d'),
    (size) => {
      const claim = { index: 0, leafHash: LEAVES[0]!, root: LEAVES[0]!, proof: [] };

      expect(() => verifyInclusion({ ...claim, size })).toThrow(ProofError);
    },
  );

  test.each([-1, 0.5, Number.NaN, 1])('is refused at index %d of one leaf', (index) => {
    const claim = { size: 1, leafHash: LEAVES[0]!, root: LEAVES[0]!, proof: [] };

    expect(() => verifyInclusion({ ...claim, index })).toThrow(ProofError);
  });

  test('is refused for a proof of a million hashes without exhausting the stack', () => {
    const proof = new Array<string>(1_000_000).fill(LEAVES[0]!);

    expect(() =>
      verifyInclusion({ index: 0, size: 1, leafHash: LEAVES[0]!, root: LEAVES[0]!, proof }),
    ).toThrow(new ProofError('the proof is too long'));
  });

  test.each([
    [0, 0],
    [3, 3],
    [-1, 3],
    [0.5, 3],
    [0, 2 ** 53 + 2],
  ])('is not proved for index %d of size %d', async (index, size) => {
    await expect(inclusionProof(NODES, index, size)).rejects.toThrow(RangeError);
  });
});

describe('consistency', () => {
  test(proving('log-tree.consistency', 'is shown between every two sizes'), async () => {
    for (let size2 = 1; size2 <= RECORDS.length; size2 += 1) {
      for (let size1 = 1; size1 <= size2; size1 += 1) verifyConsistency(await consistencyClaim(size1, size2));
    }
  });

  test('is refused with any one hash changed, added or left out', async () => {
    await fc.assert(
      fc.asyncProperty(growths, bits, async ([size1, size2], bit) => {
        const claim = await consistencyClaim(size1, size2);

        for (const [what, proof] of spoiled(claim.proof, bit)) {
          expect(() => verifyConsistency({ ...claim, proof }), what).toThrow(ProofError);
        }
        for (const field of ['root1', 'root2'] as const) {
          const changed = { ...claim, [field]: withBitChanged(claim[field], bit) };
          expect(() => verifyConsistency(changed), field).toThrow(ProofError);
        }
      }),
    );
  });

  test('is refused for every other pair of sizes with the roots of those sizes', async () => {
    await fc.assert(
      fc.asyncProperty(growths, growths, async ([size1, size2], [other1, other2]) => {
        // Equal sizes have equal, empty proofs: one is not wrong for the other.
        fc.pre((size1 !== other1 || size2 !== other2) && (size1 !== size2 || other1 !== other2));
        const { proof } = await consistencyClaim(size1, size2);
        const claim = { size1: other1, size2: other2, root1: ROOT_OF(other1), root2: ROOT_OF(other2), proof };

        expect(() => verifyConsistency(claim)).toThrow(ProofError);
      }),
    );
  });

  test.each([
    [0, 1],
    [0, 0],
    [2, 1],
    [-1, 1],
    [1, 1.5],
    [1, 2 ** 53],
  ])('is refused from size %d to size %d', (size1, size2) => {
    const claim = { size1, size2, root1: EMPTY_ROOT, root2: EMPTY_ROOT, proof: [] };

    expect(() => verifyConsistency(claim)).toThrow(ProofError);
  });

  test('is refused between roots that are equal and no hashes', () => {
    for (const root of ['', 'aa', ROOT_OF(1).toUpperCase()]) {
      const claim = { size1: 1, size2: 1, root1: root, root2: root, proof: [] };

      expect(() => verifyConsistency(claim)).toThrow(ProofError);
    }
  });

  test.each([
    [0, 3],
    [4, 3],
    [1.5, 3],
  ])('is not proved from size %d to size %d', async (size1, size2) => {
    await expect(consistencyProof(NODES, size1, size2)).rejects.toThrow(RangeError);
  });
});

describe('a reader of nodes', () => {
  test('is asked for full subtrees only, and may answer later', async () => {
    const asked: [level: number, index: number][] = [];
    const slow = {
      node: async (level: number, index: number) => {
        asked.push([level, index]);
        return NODES.node(level, index);
      },
    };

    expect(await rootAt(slow, 70)).toBe(ROOT_OF(70));
    expect(await inclusionProof(slow, 3, 70)).toEqual(await inclusionProof(NODES, 3, 70));
    expect(asked.every(([level, index]) => (index + 1) * 2 ** level <= 70)).toBe(true);
    expect(asked.slice(0, 3)).toEqual([
      [6, 0],
      [2, 16],
      [1, 34],
    ]);
  });

  test('gives the root of every earlier size', async () => {
    for (let size = 0; size <= RECORDS.length; size += 1)
      expect(await rootAt(NODES, size)).toBe(ROOT_OF(size));
  });

  test('is refused where it has no hash', async () => {
    await expect(rootAt(nodesInMemory(LEAVES.slice(0, 3)), 4)).rejects.toThrow(RangeError);
    await expect(rootAt({ node: () => '' }, 1)).rejects.toThrow(RangeError);
  });

  test('serves a tree of more than 2^32 leaves', async () => {
    // A tree whose leaves are all alike has one hash a level, so its nodes need no storage.
    const levels = [LEAVES[0]!];
    for (let below = LEAVES[0]!; levels.length <= 40; levels.push(below)) below = nodeHash(below, below);
    const nodes = { node: (level: number) => levels[level]! };
    const size1 = 2 ** 34 + 5;
    const size2 = 2 ** 40 + 3;
    const proof = await consistencyProof(nodes, size1, size2);
    const root1 = await rootAt(nodes, size1);
    const root2 = await rootAt(nodes, size2);

    verifyConsistency({ size1, size2, root1, root2, proof });
    const index = 2 ** 36 + 1;
    const path = await inclusionProof(nodes, index, size2);
    verifyInclusion({ index, size: size2, leafHash: LEAVES[0]!, root: root2, proof: path });
    expect(() => verifyConsistency({ size1: size1 + 1, size2, root1, root2, proof })).toThrow(ProofError);
  });
});
