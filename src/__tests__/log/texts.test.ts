import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import { RULES } from '../../domains/rules.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { eraseTexts, readTexts, type SaltedText, takeTexts } from '../../log/texts.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { callOfText, textId, textIdsOf } from '../../storage/text-ids.ts';
import { openScratch } from '../storage/scratch.ts';
import { trials } from '../tasks/trials.ts';
import { saltedSha256 } from './log-rows.ts';
import { stillClock } from './still-clock.ts';

describe('takeTexts', () => {
  test('puts a digest in the place of each text and leaves everything else as it is', () => {
    const args = { title: 'é', size: 3, labels: ['a'], metadata: { b: 1, a: [true] } };

    const { args: kept, texts } = takeTexts(args, ['title', 'metadata', 'description'], stillClock());

    expect(texts.map(({ text }) => text)).toEqual(['é', '{"a":[true],"b":1}']);
    expect(kept).toEqual({ ...args, title: texts[0]?.digest, metadata: texts[1]?.digest });
    for (const { digest, salt, text } of texts) expect(digest).toBe(saltedSha256(salt, text));
  });

  test('leaves out what is absent, and keeps an empty text as a text', () => {
    const { args, texts } = takeTexts({ description: '' }, ['title', 'description'], stillClock());

    expect(Object.keys(args)).toEqual(['description']);
    expect(texts).toHaveLength(1);
  });

  test('gives equal texts different salts, so that nobody sees that they are equal', () => {
    const { texts } = takeTexts(
      { title: 'same', description: 'same' },
      ['title', 'description'],
      systemClock,
    );

    expect(new Set(texts.map(({ salt }) => salt)).size).toBe(2);
    expect(new Set(texts.map(({ digest }) => digest)).size).toBe(2);
  });

  test('does not change the arguments it is given', () => {
    const args = Object.freeze({ title: 'a' });

    expect(() => takeTexts(args, ['title'], stillClock())).not.toThrow();
    expect(args).toEqual({ title: 'a' });
  });

  test('whatever the text is, its digest is that of the stored text under the stored salt', () => {
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.string({ unit: 'grapheme' })),
      fc.dictionary(fc.string({ unit: 'grapheme' }), fc.oneof(fc.integer(), fc.boolean(), fc.constant(null))),
    );
    fc.assert(
      fc.property(value, (given) => {
        const { args, texts } = takeTexts({ given }, ['given'], systemClock);
        const [only] = texts;

        expect(only?.text).toBe(typeof given === 'string' ? given : canonicalJson(given));
        expect(args.given).toBe(saltedSha256(only?.salt, only?.text));
      }),
      trials('salted texts', 200),
    );
  });
});

/** Stores texts of several calls, four each. */
const store = (engine: StorageEngine, texts: readonly SaltedText[]) =>
  engine.write((tx) =>
    tx.insert(
      'texts',
      ['id', 'digest', 'salt', 'text'],
      texts.map(({ digest, salt, text }, i) => [textId(1 + Math.floor(i / 4), i % 4), digest, salt, text]),
    ),
  );

describe('stored texts', () => {
  test('are found by their calls, and one that is not there is absent', async () => {
    const engine = await openScratch();
    const { texts } = takeTexts({ a: 'one', b: 'two' }, ['a', 'b'], systemClock);
    await store(engine, texts);
    const [one, two] = texts.map(({ digest }) => digest);
    await engine.write((tx) => eraseTexts(tx, [{ call: 1, digest: two ?? '' }], null, 1));

    const found = await engine.read((tx) =>
      readTexts(tx, [
        { call: 1, digest: one ?? '' },
        { call: 1, digest: two ?? '' },
        { call: 2, digest: 'f'.repeat(64) },
      ]),
    );

    expect([...found]).toEqual([[one, 'one']]);
  });

  test('are found however many are asked for at once', async () => {
    const engine = await openScratch();
    const args = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`f${i}`, `text ${i}`]));
    const { texts } = takeTexts(args, Object.keys(args), systemClock);
    await store(engine, texts);

    for (const count of [0, 4, 196, 200, 204, 250]) {
      const asked = texts.slice(0, count);
      const named = asked.map(({ digest }, i) => ({ call: 1 + Math.floor(i / 4), digest }));
      const found = await engine.read((tx) => readTexts(tx, [...named, ...named]));

      expect(found).toEqual(new Map(asked.map(({ digest, text }) => [digest, text])));
    }
  });
});

describe('the id of a text', () => {
  test('leads back to its call, and calls have ids of their own in their order', () => {
    const ids = [1, 2, 3].flatMap(textIdsOf);

    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    expect(ids.map(callOfText)).toEqual([1, 2, 3].flatMap((call) => textIdsOf(call).map(() => call)));
    expect(textIdsOf(7)[3]).toBe(textId(7, 3));
  });

  test('has room for every text that a tool takes', () => {
    const counts = Object.values(RULES).flatMap((tools) =>
      Object.values(tools).map(({ texts }) => texts.length),
    );

    expect(Math.max(...counts)).toBeLessThanOrEqual(textIdsOf(1).length);
  });
});
