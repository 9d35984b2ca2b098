import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { parseCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { ProofError, verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { consistencyProof, inclusionProof, nodesInMemory, rootAt } from '../../integrity/proofs.ts';
import { openNote, parseVerifierKey } from '../../integrity/signed-note.ts';
import { EMPTY_ROOT, Frontier, nodeHash } from '../../integrity/tree.ts';
import { describePublished, readPublished, readPublishedJson } from './published.ts';

interface Suite<T> {
  readonly vectors: readonly (T & { file: string; wantErr: boolean; proof: readonly string[] | null })[];
}

interface Constants {
  readonly leaf_inputs_hex: readonly string[];
  readonly node_hashes_by_level_hex: readonly (readonly string[])[];
  readonly root_by_tree_size_hex: readonly string[];
  readonly hasher: Readonly<Record<string, string>>;
}

// A missing hash in these files is a hash of no bytes.
const hex = (base64: string | null) => Buffer.from(base64 ?? '', 'base64').toString('hex');

/** The leaf hash of data that is no record hash, which Colibri itself never has. */
const foreignLeaf = (data: Uint8Array) => sha256Hex(Buffer.concat([Buffer.of(0), data]));

describePublished(proving(['vectors.tree', 'log-tree.strict'], 'published inclusion proofs'), () => {
  const { vectors } = readPublishedJson<
    Suite<{ leafIdx: number; treeSize: number; leafHash: string | null; root: string | null }>
  >('rfc6962', 'inclusion.json');

  test.each(vectors)(
    '$file is judged as published',
    ({ leafIdx, treeSize, leafHash, root, proof, wantErr }) => {
      const claim = { index: leafIdx, size: treeSize, leafHash: hex(leafHash), root: hex(root) };
      const judge = () => verifyInclusion({ ...claim, proof: (proof ?? []).map(hex) });

      if (wantErr) expect(judge).toThrow(ProofError);
      else expect(judge).not.toThrow();
    },
  );

  test('there are 98 of them, 92 to be refused', () => {
    expect(vectors).toHaveLength(98);
    expect(vectors.filter(({ wantErr }) => wantErr)).toHaveLength(92);
  });
});

describePublished(
  proving(['vectors.tree', 'log-tree.consistency', 'log-tree.strict'], 'published consistency proofs'),
  () => {
    const { vectors } = readPublishedJson<
      Suite<{ size1: number; size2: number; root1: string | null; root2: string | null }>
    >('rfc6962', 'consistency.json');

    // Some of these files write "don't care" where any root would do. Colibri refuses what is not 32 bytes, so
    // the digest of those words stands for them, and the case is judged by what it is about.
    const anyRoot = (base64: string | null) => {
      const words = Buffer.from(base64 ?? '', 'base64').toString('latin1');
      return words.startsWith("don't care") ? sha256Hex(words) : hex(base64);
    };

    test.each(vectors)('$file is judged as published', ({ size1, size2, root1, root2, proof, wantErr }) => {
      const claim = { size1, size2, root1: anyRoot(root1), root2: anyRoot(root2) };
      const judge = () => verifyConsistency({ ...claim, proof: (proof ?? []).map(hex) });

      if (wantErr) expect(judge).toThrow(ProofError);
      else expect(judge).not.toThrow();
    });

    test('there are 98 of them, 92 to be refused', () => {
      expect(vectors).toHaveLength(98);
      expect(vectors.filter(({ wantErr }) => wantErr)).toHaveLength(92);
    });
  },
);

describePublished(proving(['vectors.tree', 'tree.hash', 'tree.shape'], 'published tree constants'), () => {
  const constants = readPublishedJson<Constants>('rfc6962', 'tree-constants.json');
  const leaves = constants.leaf_inputs_hex.map((data) => foreignLeaf(Buffer.from(data, 'hex')));

  test('every node of the tree has its hash', async () => {
    const nodes = nodesInMemory(leaves);

    for (const [level, hashes] of constants.node_hashes_by_level_hex.entries()) {
      for (const [index, hash] of hashes.entries()) expect(await nodes.node(level, index)).toBe(hash);
    }
    const [first, second] = constants.node_hashes_by_level_hex[1]!;
    expect(nodeHash(first!, second!)).toBe(constants.node_hashes_by_level_hex[2]![0]);
  });

  test('the root at each size is found by a frontier and by a reader', async () => {
    const frontier = new Frontier();
    for (const [size, root] of constants.root_by_tree_size_hex.entries()) {
      expect(frontier.root()).toBe(root);
      expect(await rootAt(nodesInMemory(leaves), size)).toBe(root);
      if (size < leaves.length) frontier.addLeaf(leaves[size]!);
    }
  });

  test('the hasher has its values', () => {
    const node = Buffer.concat([Buffer.of(1), Buffer.from('N123'), Buffer.from('N456')]);

    expect(EMPTY_ROOT).toBe(constants.hasher.empty_root);
    expect(foreignLeaf(Buffer.alloc(0))).toBe(constants.hasher.leaf_hash_of_empty);
    expect(foreignLeaf(Buffer.from('L123456'))).toBe(constants.hasher.leaf_hash_of_ascii_L123456);
    expect(sha256Hex(node)).toBe(constants.hasher.node_hash_of_ascii_N123_N456);
  });
});

// A subtree [start, end) of the published tree is the tree over those leaves alone, so its hash and its
// inclusion proofs are those of a small tree. Subtree consistency is not built here.
describePublished('published subtrees of a tree of 130 leaves', () => {
  const { results } = readPublishedJson<{ results: Record<string, string> }>(
    'rfc6962',
    'subtree-accumulated.json',
  );
  const expected = (name: string) =>
    results[Object.keys(results).find((key) => key.startsWith(`${name}:`)) ?? ''];
  const leaves = Array.from({ length: 130 }, (_, i) => foreignLeaf(Buffer.of(i)));

  function* subtrees() {
    for (let end = 0; end <= leaves.length; end += 1) {
      for (let start = 0; start <= end; start += 1) {
        let width = 1;
        while (width < end - start) width *= 2;
        if (start % width === 0) yield { start, end, nodes: nodesInMemory(leaves.slice(start, end)) };
      }
    }
  }

  test('fold to the published hash of all subtree hashes', async () => {
    const fold = createHash('sha256');
    for (const { start, end, nodes } of subtrees()) {
      fold.update(`[${start}, ${end}) ${await rootAt(nodes, end - start)}\n`);
    }

    expect(fold.digest('hex')).toBe(expected('subtree_hash'));
  });

  test('fold to the published hash of all inclusion proofs', async () => {
    const fold = createHash('sha256');
    for (const { start, end, nodes } of subtrees()) {
      for (let index = start; index < end; index += 1) {
        const proof = await inclusionProof(nodes, index - start, end - start);
        fold.update(`${[index, `[${start},`, `${end})`, ...proof].join(' ')}\n`);
      }
    }

    expect(fold.digest('hex')).toBe(expected('subtree_inclusion'));
  });
});

describePublished(proving(['vectors.tree', 'checkpoint.format'], 'a published log'), () => {
  const log = readPublishedJson<{ vkey: string; origin_line: string; entries_in_order: readonly string[] }>(
    'tlog-tiles',
    'log.json',
  );
  const key = parseVerifierKey(log.vkey);
  const leaves = log.entries_in_order.map((entry) => foreignLeaf(Buffer.from(entry)));
  const headAt = (size: number) =>
    parseCheckpoint(openNote(readPublished('tlog-tiles', `checkpoint.${size}`), [key]).text);
  const sizes = Array.from({ length: 16 }, (_, size) => size);

  test.each(sizes)('its checkpoint at size %i is signed and has the root of its entries', async (size) => {
    const root = await rootAt(nodesInMemory(leaves), size);

    expect(headAt(size)).toEqual({ origin: log.origin_line, size, root });
  });

  test.each(sizes.slice(1))('its tile and its entries at size %i are those of the tree', (size) => {
    const tile = readPublished('tlog-tiles', 'tile', '0', '000.p', String(size));
    const bundle = readPublished('tlog-tiles', 'tile', 'entries', '000.p', String(size));
    const entries: Buffer[] = [];
    for (let at = 0; at < bundle.length; at += 2 + bundle.readUInt16BE(at)) {
      entries.push(bundle.subarray(at + 2, at + 2 + bundle.readUInt16BE(at)));
    }
    const frontier = new Frontier();
    for (let at = 0; at < tile.length; at += 32) frontier.addLeaf(tile.toString('hex', at, at + 32));

    expect(tile.toString('hex')).toBe(entries.map(foreignLeaf).join(''));
    expect(frontier.root()).toBe(headAt(size).root);
  });

  test('each two of its checkpoints are shown to be consistent from its tile', async () => {
    const nodes = nodesInMemory(leaves);
    for (const size2 of sizes.slice(1)) {
      for (const size1 of sizes.slice(1, size2 + 1)) {
        const [root1, root2] = [headAt(size1).root, headAt(size2).root];
        verifyConsistency({ size1, size2, root1, root2, proof: await consistencyProof(nodes, size1, size2) });
      }
    }
  });

  test('its newest checkpoint is the one at its last size', () => {
    expect(readPublished('tlog-tiles', 'checkpoint')).toEqual(readPublished('tlog-tiles', 'checkpoint.15'));
  });
});
