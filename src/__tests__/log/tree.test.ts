import { expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { consistencyProof, inclusionProof } from '../../integrity/proofs.ts';
import { leafHash, treeRoot } from '../../integrity/tree.ts';
import { closeBlocks, logNodes } from '../../log/tree.ts';
import type { Reader, StorageEngine } from '../../storage/engine.ts';
import { openScratch } from '../storage/scratch.ts';

const BLOCK_ROWS = 256;
const ROWS = 20 * BLOCK_ROWS + 37;
const HASHES = Array.from({ length: ROWS }, (_, i) => sha256Hex(`row ${i + 1}`));

/** A log as long as the test needs, without the calls. */
async function filled(): Promise<StorageEngine> {
  const storage = await openScratch();
  await storage.write(async (tx) => {
    for (const [i, hash] of HASHES.entries()) {
      const sql = 'INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)';
      const bytes = Buffer.from(hash, 'hex');
      await tx.run(sql, i + 1, `{"position":${i + 1}}`, bytes, bytes);
    }
    await closeBlocks(tx, 0, HASHES.length);
  });
  return storage;
}

/** A reader that counts what it is given. */
function counting(tx: Reader): Reader & { rows: number } {
  const reader = {
    rows: 0,
    async get<T extends object>(sql: string, ...params: Parameters<Reader['get']>[1][]) {
      const row = await tx.get<T>(sql, ...params);
      reader.rows += row === undefined ? 0 : 1;
      return row;
    },
    async all<T extends object>(sql: string, ...params: Parameters<Reader['all']>[1][]) {
      const rows = await tx.all<T>(sql, ...params);
      reader.rows += rows.length;
      return rows;
    },
    lists: () => Promise.reject(new Error('nobody reads lists here')),
    isPresent: (process: string) => tx.isPresent(process),
    dialect: tx.dialect,
  };
  return reader;
}

test(
  proving(
    ['log-tree.inclusion', 'log-tree.stored'],
    'any row at any size is proved by reading a block of rows and the stored roots',
  ),
  async () => {
    const random = seededRandom('inclusion from a stored log');
    const storage = await filled();

    const most = await storage.read(async (snapshot) => {
      let read = 0;
      for (let i = 0; i < 60; i += 1) {
        const size = random.between(1, ROWS);
        const index = random.between(0, size - 1);
        const tx = counting(snapshot);
        const proof = await inclusionProof(logNodes(tx), index, size);
        const root = treeRoot(HASHES.slice(0, size));
        verifyInclusion({ index, size, leafHash: leafHash(HASHES[index] ?? ''), root, proof });
        read = Math.max(read, tx.rows);
      }
      return read;
    });

    expect(most).toBeGreaterThan(0);
    // The block of the row, the rows behind the last full block, and a root for each block.
    expect(most).toBeLessThanOrEqual(2 * BLOCK_ROWS + ROWS / BLOCK_ROWS);
  },
);

test(
  proving(
    ['log-tree.consistency', 'log-tree.stored'],
    'the log at any size is shown to be the beginning of any later one, and of no other',
  ),
  async () => {
    const random = seededRandom('consistency from a stored log');
    const storage = await filled();

    await storage.read(async (tx) => {
      for (let i = 0; i < 40; i += 1) {
        const size2 = random.between(2, ROWS);
        const size1 = random.between(1, size2 - 1);
        const proof = await consistencyProof(logNodes(tx), size1, size2);
        const [root1, root2] = [treeRoot(HASHES.slice(0, size1)), treeRoot(HASHES.slice(0, size2))];
        verifyConsistency({ size1, size2, root1, root2, proof });
        const other = treeRoot([...HASHES.slice(0, size1 - 1), sha256Hex('another last row')]);
        expect(() => verifyConsistency({ size1, size2, root1: other, root2, proof })).toThrow();
      }
    });
  },
);
