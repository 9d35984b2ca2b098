import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { readRowText } from '../../log/verify/row-text.ts';

const hash = fc.string().map(sha256Hex);
const text = fc.string({ unit: 'grapheme' });
const plainEffect = fc.record({
  table: fc.constantFrom('tasks', 'session_records'),
  id: fc.constantFrom('T-0001', 'Θ-12345'),
  hash,
  columns: fc.stringMatching(/^[0-9a-f]{0,12}$/),
});
const oddEffect = fc.record({ table: text, id: text, hash, columns: text });
const effect = fc.oneof(plainEffect, oddEffect);

const row = fc.record({
  position: fc.nat(),
  sequence_no: fc.nat(),
  stage: fc.constantFrom('enter', 'exit'),
  tool: text,
  actor: text,
  correlation_id: text,
  at: text,
  schema_valid: fc.boolean(),
  args_hash: fc.option(hash),
  outcome: fc.constantFrom('ok', 'running', 'error'),
  error_code: fc.option(text),
  duration_ms: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
  result_hash: fc.option(hash),
  effects: fc.array(effect, { maxLength: 3 }),
  process: text,
  repaired: fc.array(text, { maxLength: 2 }),
});

describe('the text of an audit row', () => {
  test('what is read is what was written', () => {
    fc.assert(
      fc.property(row, (value) => {
        expect(readRowText(canonicalJson(value))).toEqual(JSON.parse(canonicalJson(value)));
      }),
    );
  });

  test('a text that differs in one character is another row or none, never the same', () => {
    fc.assert(
      fc.property(row, fc.nat(), fc.string({ unit: 'binary', maxLength: 1 }), (value, at, put) => {
        const original = canonicalJson(value);
        const i = at % original.length;
        const changed = original.slice(0, i) + put + original.slice(i + 1);
        const read = readRowText(changed);
        if (changed !== original && read !== undefined) expect(canonicalJson(read)).toBe(changed);
      }),
      { numRuns: 2_000 },
    );
  });
});
