import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { idAtEnds, keepEnds } from '../../transport/line-reader.ts';

function idOf(text: string, sizeOfChunk = text.length): unknown {
  let line: Uint8Array = Buffer.alloc(0);
  const bytes = Buffer.from(text);
  for (let i = 0; i < bytes.length; i += sizeOfChunk)
    line = keepEnds(line, bytes.subarray(i, i + sizeOfChunk));
  return idAtEnds(line);
}

const long = 'x'.repeat(2_000);

describe('the id of a line that passes', () => {
  test.each<[string, string, string | number]>([
    ['first', `{"id":7,"params":"${long}"}`, 7],
    ['last', `{"params":{"a":"${long}"},"id":7}`, 7],
    ['in between', `{"jsonrpc":"2.0","id":7,"params":["${long}"]}`, 7],
    ['a text', `{"params":"${long}","id":"req-1"}`, 'req-1'],
    ['an empty text', `{"params":"${long}","id":""}`, ''],
    ['negative', `{"id":-1,"params":"${long}"}`, -1],
    ['a fraction', `{"id":1.5,"params":"${long}"}`, 1.5],
    ['among spaces', `  { "params" : "${long}" , "id" :  7  }  `, 7],
    ['before the end of a line cut off', `{"id":7,"params":"${long}`, 7],
  ])('is found when it is %s', (_, text, id) => {
    expect(idOf(text)).toBe(id);
    expect(idOf(text, 1)).toBe(id);
  });

  test('is the one at the top, never one further inside', () => {
    expect(idOf(`{"params":{"id":1,"list":[{"id":2}],"pad":"${long}"},"id":3}`)).toBe(3);
    expect(idOf(`{"params":{"id":1,"pad":"${long}"}}`)).toBeNull();
    expect(idOf(`{"id":3,"params":{"id":1,"pad":"${long}"}}`)).toBe(3);
  });

  test('is not what a text only speaks of', () => {
    expect(idOf(`{"params":"\\",\\"id\\":1,\\"","pad":"${long}"}`)).toBeNull();
    expect(idOf(`{"params":"{\\"id\\":1}","pad":"${long}","id":2}`)).toBe(2);
    expect(idOf(`{"a":"}","b":"]","c":"\\\\","id":4,"pad":"${long}"}`)).toBe(4);
    expect(idOf(`{"id":"say \\"hi\\", ok}","pad":"${long}"}`)).toBe('say "hi", ok}');
  });

  test('is not the value of another key', () => {
    expect(idOf(`{"ID":1,"idx":2,"x":"id","pad":"${long}"}`)).toBeNull();
  });

  test.each([
    ['missing', `{"params":"${long}"}`],
    ['null', `{"id":null,"params":"${long}"}`],
    ['true', `{"id":true,"params":"${long}"}`],
    ['an object', `{"id":{"id":1},"params":"${long}"}`],
    ['an array', `{"id":[1],"params":"${long}"}`],
    ['no JSON', `{"id":seven,"params":"${long}"}`],
    ['infinite', `{"id":1e999,"params":"${long}"}`],
    ['inside a batch', `[{"id":1,"params":"${long}"}]`],
    ['inside a text', `"id:1 ${long}"`],
  ])('is null when it is %s', (_, text) => {
    expect(idOf(text)).toBeNull();
  });

  test('is null for a line of nothing', () => {
    expect(idOf('')).toBeNull();
  });
});

describe('a long id', () => {
  test.each([
    ['letters', 'x'],
    ['letters of two bytes', 'é'],
    ['characters written as escapes', '\u0001'],
  ])('of as many %s as an id may have is found, and one more is not', (_, letter) => {
    const longest = letter.repeat(LIMITS.requestIdCharsMax);

    expect(idOf(`{"id":${JSON.stringify(longest)},"pad":"${long}"}`)).toBe(longest);
    expect(idOf(`{"id":${JSON.stringify(longest + letter)},"pad":"${long}"}`)).toBeNull();
  });

  test('of thousands of digits is null, not its first few', () => {
    expect(idOf(`{"id":${'1'.repeat(5_000)},"pad":"${long}"}`)).toBeNull();
  });
});

test('the id is the one JSON.parse finds, whatever the order of the members and however the line is cut', () => {
  const members = fc.record({
    jsonrpc: fc.constant('2.0'),
    id: fc.oneof(fc.integer(), fc.string({ maxLength: 20 })),
    method: fc.string(),
    params: fc.jsonValue(),
  });
  const order = fc.shuffledSubarray(['jsonrpc', 'id', 'method', 'params'] as const, { minLength: 4 });
  fc.assert(
    fc.property(
      members,
      order,
      fc.nat({ max: 9_000 }),
      fc.integer({ min: 1, max: 9 }),
      (drawn, names, pad, cut) => {
        const all = { ...drawn, params: [drawn.params, 'x'.repeat(pad)] };
        const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, all[name]])));

        expect(idOf(text, cut)).toBe(drawn.id);
      },
    ),
    { numRuns: 300 },
  );
});
