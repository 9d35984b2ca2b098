import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { EMPTY_ROOT, Frontier, leafHash, nodeHash, treeDepth, treeRoot } from '../../integrity/tree.ts';
import { referenceLeaf, referenceRoot } from './reference-tree.ts';

const RECORDS = Array.from({ length: 300 }, (_, i) => sha256Hex(`record ${i}`));
const A = sha256Hex('a');
const B = sha256Hex('b');

function referenceTreeRoot(records: readonly string[]): string {
  return referenceRoot(records.map((hash) => referenceLeaf(Buffer.from(hash, 'hex')))).toString('hex');
}

describe('hashing', () => {
  test(proving('tree.hash', 'a leaf and a node have preimages that differ in their first byte'), () => {
    expect(leafHash(A)).toBe(sha256Hex(Buffer.from(`00${A}`, 'hex')));
    expect(nodeHash(A, B)).toBe(sha256Hex(Buffer.from(`01${A}${B}`, 'hex')));
  });

  test.each([
    ['an empty one', ''],
    ['a short one', A.slice(1)],
    ['a capital one', A.toUpperCase()],
    ['one with a letter beyond f', `x${A.slice(1)}`],
  ])('refuses %s for a hash', (_, hash) => {
    expect(() => leafHash(hash)).toThrow(RangeError);
    expect(() => nodeHash(hash, A)).toThrow(RangeError);
    expect(() => nodeHash(A, hash)).toThrow(RangeError);
    expect(() => new Frontier().addLeaf(hash)).toThrow(RangeError);
  });
});

describe('Frontier', () => {
  test(proving('tree.shape', 'has the root of RFC 6962 at every size'), () => {
    const frontier = new Frontier();

    for (const [count, record] of RECORDS.entries()) {
      expect(frontier.root()).toBe(referenceTreeRoot(RECORDS.slice(0, count)));
      frontier.add(record);
    }
  });

  test('has the root of RFC 6962 over any records', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 })), (data) => {
        const records = data.map((bytes) => Buffer.from(bytes).toString('hex'));

        expect(treeRoot(records)).toBe(referenceTreeRoot(records));
      }),
    );
  });

  test('goes on from a saved state as if it had never stopped', () => {
    fc.assert(
      fc.property(fc.nat(RECORDS.length), (stop) => {
        const before = new Frontier();
        for (const record of RECORDS.slice(0, stop)) before.add(record);
        const after = new Frontier(JSON.parse(JSON.stringify(before.state)));
        for (const record of RECORDS.slice(stop)) after.add(record);

        expect(after.size).toBe(RECORDS.length);
        expect(after.root()).toBe(treeRoot(RECORDS));
      }),
    );
  });

  test('takes a leaf hash for the record it belongs to', () => {
    const byRecord = new Frontier();
    const byLeaf = new Frontier();

    for (const record of RECORDS) byLeaf.addLeaf(byRecord.add(record));

    expect(byLeaf.state).toEqual(byRecord.state);
  });

  test('does not change when it is asked for its root or when its saved state is changed', () => {
    const frontier = new Frontier();
    for (const record of RECORDS.slice(0, 7)) frontier.add(record);
    const { hashes } = frontier.state;
    const root = frontier.root();

    Reflect.set(hashes, 0, A);

    expect(frontier.root()).toBe(root);
  });

  test('leaves the state it was given as it was', () => {
    const saved = { size: 1, hashes: [A] };

    new Frontier(saved).addLeaf(B);

    expect(saved).toEqual({ size: 1, hashes: [A] });
  });

  test.each([
    ['too few hashes', { size: 3, hashes: [A] }],
    ['too many hashes', { size: 2, hashes: [A, B] }],
    ['a hash for no leaf', { size: 0, hashes: [A] }],
    ['a hash that is none', { size: 1, hashes: [''] }],
    ['a negative size', { size: -1, hashes: [A] }],
    ['half a leaf', { size: 1.5, hashes: [A] }],
    ['a size that is not exact', { size: 2 ** 53, hashes: [A] }],
  ])('refuses a saved state with %s', (_, state) => {
    expect(() => new Frontier(state)).toThrow(RangeError);
  });

  test('grows past 2^32 leaves', () => {
    const frontier = new Frontier({ size: 2 ** 33 - 1, hashes: Array.from({ length: 33 }, () => A) });

    frontier.addLeaf(B);

    expect(frontier.size).toBe(2 ** 33);
    expect(frontier.state.hashes).toHaveLength(1);
  });
});

describe('treeRoot', () => {
  test(proving('tree.hash', 'of nothing is the digest of nothing'), () => {
    expect(treeRoot([])).toBe(EMPTY_ROOT);
    expect(EMPTY_ROOT).toBe(sha256Hex(''));
  });

  test('tells three leaves from the same three with the last repeated', () => {
    const [a, b, c] = RECORDS;

    expect(treeRoot([a!, b!, c!])).not.toBe(treeRoot([a!, b!, c!, c!]));
  });

  test('tells four leaves from two leaves that are their parents', () => {
    const [a, b, c, d] = RECORDS.map(leafHash);

    const parents = [nodeHash(a!, b!), nodeHash(c!, d!)];

    expect(treeRoot(parents)).not.toBe(treeRoot(RECORDS.slice(0, 4)));
  });
});

describe('treeDepth', () => {
  test.each([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 3],
    [5, 4],
    [8, 4],
    [9, 5],
    [1024, 11],
    [1025, 12],
  ])('of %i leaves is %i levels', (leaves, levels) => {
    expect(treeDepth(leaves)).toBe(levels);
  });
});
