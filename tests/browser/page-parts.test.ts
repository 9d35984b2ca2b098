import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { leafHash, treeRoot } from '../../src/integrity/tree.ts';
import { EVERYTHING } from '../../src/report/filter.ts';
import { verifyEd25519 } from '../../src/report/page/ed25519.ts';
import { Sha256Stream, sha256Hex, sha512 } from '../../src/report/page/sha2.ts';
import { proofOf, treeOf } from '../../src/report/page/view/tree.ts';
import { heldLog } from '../../src/report/page/worker/held-log.ts';
import { openSource } from '../../src/report/page/worker/open.ts';
import { loadTexts, pairRows, tellCalls } from '../../src/report/records.ts';
import { textFields } from '../../src/report/telling.ts';
import { proving } from '../contract/proves.ts';
import { seededRandom } from '../driver/random.ts';
import { tier } from '../driver/tier.ts';
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

  test('is the one of Node for bytes that come in pieces, others being hashed in between', () => {
    const bytes = randomBytes(1_000);
    const random = seededRandom('pieces');
    const wrong: number[][] = [];

    for (let round = 0; round < 200; round += 1) {
      const cuts = [random.between(0, 1_000), random.between(0, 1_000)].sort((a, b) => a - b);
      const [first = 0, second = 0] = cuts;
      const stream = new Sha256Stream();
      for (const part of [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]) {
        stream.update(part);
        sha256Hex('another');
      }
      if (stream.digest() !== nodeHex(bytes)) wrong.push(cuts);
    }

    expect(wrong).toEqual([]);
  });
});

describe('the Ed25519 of the page', () => {
  test('hashes with the SHA-512 of Node, for every length around its blocks', () => {
    const bytes = randomBytes(300);
    const lengths = Array.from({ length: 301 }, (_, length) => length);

    const wrong = lengths.filter((length) => {
      const part = bytes.subarray(0, length);
      return Buffer.from(sha512(part)).toString('hex') !== createHash('sha512').update(part).digest('hex');
    });

    expect(wrong).toEqual([]);
  });

  test(proving('page.verifies', 'judges signatures, whole and with any bit changed, as Node does'), () => {
    const random = seededRandom('signatures');
    const differences: string[] = [];

    for (let round = 0; round < 60; round += 1) {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519');
      const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
      const message = randomBytes(random.between(0, 300));
      const signature = sign(null, message, privateKey);
      if (round % 2 === 1) signature[random.between(0, 63)]! ^= 1 << random.between(0, 7);
      const expected = verify(null, message, publicKey, signature);
      if (verifyEd25519(message, point, signature) !== expected) differences.push(signature.toString('hex'));
    }

    expect(differences).toEqual([]);
  });

  test('refuses keys and signatures of another length, and an S that has a second spelling', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
    const message = Buffer.from('a text');
    const signature = sign(null, message, privateKey);
    const order = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
    const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
    const second = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();

    const answers = [
      verifyEd25519(message, point, signature),
      verifyEd25519(message, point.subarray(1), signature),
      verifyEd25519(message, point, signature.subarray(1)),
      verifyEd25519(message, point, Buffer.concat([signature.subarray(0, 32), second])),
      verifyEd25519(message, Buffer.alloc(32, 0xff), signature),
    ];

    expect(answers).toEqual([true, false, false, false, false]);
  });

  test('refuses, as Node does, a signature that holds only after a multiplication by the cofactor', () => {
    const point = Buffer.from('17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db', 'hex');
    const [r, s] = [
      '6999d5cb5126005c325892f1c6eab824b310708befff12fbaf45dda050cb12f0',
      '32c7eeb003e8201118b5ea05a66b9dafa5d4127ef941706d52b0a6d57fc2490a',
    ];
    const signature = Buffer.from(`${r}${s}`, 'hex');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') };
    const key = createPublicKey({ key: jwk, format: 'jwk' });

    const message = Buffer.from('hello');

    const answers = [verify(null, message, key, signature), verifyEd25519(message, point, signature)];

    expect(answers).toEqual([false, false]);
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
        expect(proofOf(tree, index).map(({ hash }) => hash)).toEqual(proof);
      }
    }
  });
});

describe('the worker of the page', () => {
  let log: PlayedLog;

  beforeAll(async () => {
    log = await playLog();
  });

  afterAll(async () => {
    expect(await log.colibri.dispose()).toEqual([]);
  });

  test(proving('page.verifies', 'finds nothing in a bundle as it was written'), async () => {
    expect(await findingsIn(readBundle(log.folder))).toEqual([]);
  });

  test(proving('page.damage', 'finds a marker whose line does not end'), async () => {
    const good = readBundle(log.folder);
    const marker = Uint8Array.from(good.get('bundle.json') ?? []);
    marker[marker.length - 1] = 0x4a;

    expect(await findingsIn(withSums(good.set('bundle.json', marker)))).toHaveLength(1);
  });

  test(proving(
    ['page.damage', 'bundle.damage'],
    'finds every changed byte, though the sums were made anew',
  ), { timeout: 240_000 }, async () => {
    const random = seededRandom('one byte of a bundle');
    const good = readBundle(log.folder);
    const names = [...good.keys()].filter(
      (name) => !['SHA256SUMS', 'README.txt', 'verify.html'].includes(name) && !name.startsWith('scripts/'),
    );
    const missed: string[] = [];

    for (let round = 0; round < tier(50, 300); round += 1) {
      const name = random.pick(names);
      const bytes = Uint8Array.from(good.get(name) ?? []);
      const at = random.between(0, bytes.length - 1);
      const bit = random.between(0, 7);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
      const changed = withSums(new Map(good).set(name, bytes));
      const found = await findingsIn(changed).catch((error: unknown) => error);
      if (!Array.isArray(found)) missed.push(`${name}, bit ${bit} of byte ${at}: ${found}`);
      else if (found.length === 0) missed.push(`${name}, bit ${bit} of byte ${at} is not found`);
    }

    expect(missed, `COLIBRI_TEST_SEED=${random.seed}`).toEqual([]);
  });
});

describe('the texts of the page', () => {
  test(proving('page.verifies', 'tell what was erased from what is missing'), async () => {
    const [kept, erased, missing] = ['1', '2', '3'].map((digit) => digit.repeat(64)) as [
      string,
      string,
      string,
    ];
    const source = { texts: async () => new Map([[8, { digest: kept, salt: '', text: 'Dig.' }]]) };

    const shown = await loadTexts(source, [], new Set([missing]));

    expect([kept, erased, missing, undefined].map(shown)).toEqual(['Dig.', '[erased]', '[missing]', '']);
    expect(textFields({ rules: 1, tool: 'thought_record' }, { content: kept, task_id: 'T-0001' })).toEqual([
      'content',
    ]);
    expect(textFields({ rules: 1, tool: 'toString' }, { content: kept })).toEqual([]);
  });
});

describe('the calls of the page', () => {
  test(proving('page.hostile', 'are told by texts, even where an outcome is named like a built-in'), () => {
    const ended = { stage: 'exit', tool: 'toString', outcome: 'constructor', sequence_no: 1 };
    const row = { ...ended, at: '2026-01-31T12:00:00.000Z', actor: 'eve' };
    const told = pairRows([{ position: 2, text: JSON.stringify(row) }]);

    const [call] = tellCalls(told, new Map(), () => '', new Set());

    expect(call).toMatchObject({ kind: 'failure', verb: 'constructor', tool: 'toString' });
    expect(structuredClone(call)).toEqual(call);
  });

  test(
    proving('page.hostile', 'are told as damaged where a row no longer says who did what, and when'),
    () => {
      const row = { stage: 'exit', tool: 'task_create', outcome: 'ok', actor: 'eve', sequence_no: 1 };
      const told = pairRows([{ position: 2, text: JSON.stringify(row) }]);

      expect(tellCalls(told, new Map(), () => '', new Set())).toMatchObject([
        { kind: 'failure', verb: 'damaged' },
      ]);
    },
  );
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

/** What the page finds wrong; what it shows besides must not fail on it either. */
async function findingsIn(bundle: Bundle): Promise<string[]> {
  const files = [...bundle].map(([name, bytes]) => [name, new Blob([bytes])] as const);
  const opened = await openSource({ files }, () => undefined);
  const log = heldLog(opened);
  await Promise.all([log.summary(EVERYTHING), log.board(EVERYTHING), log.sessions(EVERYTHING, 0)]);
  for (const { id } of opened.tasks.slice(0, 5)) await log.task(id);
  return opened.verdictView.findings.map(({ message }) => message);
}
