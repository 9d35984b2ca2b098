import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { leafHash, treeRoot } from '../../src/integrity/tree.ts';
import { sha256Hex } from '../../src/report/page/sha256.ts';
import { proofSteps, treeOf } from '../../src/report/page/view/tree-shape.ts';
import { BundleError } from '../../src/report/page/worker/files.ts';
import { verifyFiles } from '../../src/report/page/worker/verify.ts';
import { proving } from '../contract/proves.ts';
import { seededRandom } from '../driver/random.ts';
import { type PlayedLog, playLog } from './played-log.ts';

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

describe('the checks of the page', () => {
  let log: PlayedLog;

  beforeAll(async () => {
    log = await playLog();
  });

  afterAll(async () => {
    expect(await log.colibri.dispose()).toEqual([]);
  });

  test(proving('page.verifies', 'find nothing in a bundle as it was written'), async () => {
    expect(await findingsIn(readBundle(log.folder))).toEqual([]);
  });

  test(proving(['page.damage', 'bundle.damage'], 'find every changed byte, though the sums were made anew'), {
    timeout: 120_000,
  }, async () => {
    const random = seededRandom('one byte of a bundle');
    const good = readBundle(log.folder);
    const names = [...good.keys()].filter(
      (name) => !['SHA256SUMS', 'README.txt', 'verify.html'].includes(name),
    );
    const missed: string[] = [];

    for (let round = 0; round < 400; round += 1) {
      const name = random.pick(names);
      const bytes = Uint8Array.from(good.get(name) ?? []);
      const at = random.between(0, bytes.length - 1);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.between(0, 7));
      const changed = withSums(new Map(good).set(name, bytes));
      if ((await findingsIn(changed)).length === 0) missed.push(`${name} at ${at}`);
    }

    expect(missed).toEqual([]);
  });
});

type Bundle = Map<string, Uint8Array<ArrayBuffer>>;

function readBundle(folder: string): Bundle {
  return new Map(
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, Uint8Array.from(readFileSync(join(folder, name)))]),
  );
}

function withSums(bundle: Bundle): Bundle {
  const names = [...bundle.keys()].filter((name) => name !== 'SHA256SUMS').sort();
  const sums = names.map((name) => `${nodeHex(bundle.get(name) ?? '')}  ${name}\n`).join('');
  return bundle.set('SHA256SUMS', Uint8Array.from(Buffer.from(sums)));
}

/** What the page finds wrong; a bundle it refuses to read is one thing wrong. */
async function findingsIn(bundle: Bundle): Promise<string[]> {
  try {
    const { verdict } = await verifyFiles(bundle, () => undefined);
    return verdict.findings.map(({ message }) => message);
  } catch (error) {
    if (error instanceof BundleError) return [error.message];
    throw error;
  }
}
