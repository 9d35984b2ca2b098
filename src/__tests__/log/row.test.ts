import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { type AuditRow, chainHash, GENESIS, parseAuditText, seenAt, storeRow } from '../../log/row.ts';

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

const row: AuditRow = {
  position: 2,
  sequence_no: 1,
  stage: 'exit',
  tool: 'task_create',
  actor: 'Ada 🐦',
  source: 'mcp',
  correlation_id: '00000000-0000-4000-8000-000000000001',
  at: '2026-01-01T00:00:00.000Z',
  rules: 1,
  schema_valid: true,
  args_hash: null,
  outcome: 'ok',
  error_code: null,
  duration_ms: 3,
  result_hash: 'a'.repeat(64),
  effects: [{ table: 'tasks', id: 'T-0001', hash: 'b'.repeat(64), previous: 0 }],
  process: 'm.b.1.x',
  repaired: ['limit: text taken as number'],
};

describe('storeRow', () => {
  test('stores one canonical text that holds every field with something to say', () => {
    const { position, text } = storeRow(row, GENESIS);

    expect(position).toBe(2);
    expect(canonicalJson(JSON.parse(text))).toBe(text);
    expect(JSON.parse(text)).not.toHaveProperty('args_hash');
    expect(parseAuditText(text)).toEqual(row);
  });

  test('hashes the text as it is stored, and the link as 128 characters', () => {
    const previous = 'c'.repeat(64);

    const { text, content_hash, chain_hash } = storeRow(row, previous);

    expect(content_hash).toBe(sha256(text));
    expect(chain_hash).toBe(sha256(content_hash + previous));
    expect((content_hash + previous).length).toBe(128);
  });

  test('gives another text and other hashes when any field changes', () => {
    const known = storeRow(row, GENESIS);
    const others = Object.keys(row).map((field) => storeRow({ ...row, [field]: 'changed' }, GENESIS));

    expect(new Set([known, ...others].map(({ content_hash }) => content_hash)).size).toBe(others.length + 1);
    expect(new Set([known, ...others].map(({ chain_hash }) => chain_hash)).size).toBe(others.length + 1);
  });

  test('refuses a row whose text could not be read back the same', () => {
    expect(() => storeRow({ ...row, actor: '\ud800' }, GENESIS)).toThrow();
    expect(() => storeRow({ ...row, duration_ms: Number.NaN }, GENESIS)).toThrow();
    expect(() => storeRow({ ...row, error_code: undefined as unknown as null }, GENESIS)).toThrow();
    expect(() => storeRow({ ...row, correlation_id: '\ud800' }, GENESIS)).toThrow();
    expect(() => storeRow({ ...row, sequence_no: 2 ** 53 }, GENESIS)).toThrow();
    expect(() => storeRow({ ...row, repaired: ['\ud800'] }, GENESIS)).toThrow();
    const [effect] = row.effects;
    expect(() => storeRow({ ...row, effects: [{ ...effect!, previous: 2 ** 53 }] }, GENESIS)).toThrow();
  });

  test('writes what canonical JSON writes, whatever the fields hold, as in a row that somebody forged', () => {
    const text = fc.string({ unit: 'binary' }).filter((one) => one.isWellFormed());
    const forged = fc.record({ b: text, a: fc.integer() });
    const whole = fc.maxSafeNat();
    const seal = fc.option(fc.record({ merkle_root: text, leaf_count: whole }), { nil: undefined });
    const effect = fc
      .record({ table: text, previous: whole, id: text, hash: text, seal })
      .map(({ seal: sealed, ...rest }) => (sealed === undefined ? rest : { ...rest, seal: sealed }));
    const any = fc.record({
      ...{ tool: text, process: text, position: whole, sequence_no: whole },
      actor: fc.oneof(text, fc.integer()),
      source: fc.oneof({ weight: 3, arbitrary: text }, { weight: 1, arbitrary: forged }),
      schema_valid: fc.option(fc.boolean()),
      effects: fc.array(effect, { maxLength: 3 }),
      repaired: fc.array(text, { maxLength: 3 }),
      duration_ms: fc.option(whole),
      args_hash: fc.option(text),
      error_code: fc.option(text),
    });

    fc.assert(
      fc.property(any, (fields) => {
        const changed = { ...row, ...fields } as unknown as AuditRow;
        const said = Object.entries(changed).filter(
          ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
        );

        expect(storeRow(changed, GENESIS).text).toBe(canonicalJson(Object.fromEntries(said)));
      }),
    );
  });
});

test('before the first row stand 64 zeros', () => {
  expect(GENESIS).toMatch(/^0{64}$/);
  expect(chainHash('d'.repeat(64), GENESIS)).toBe(sha256('d'.repeat(64) + '0'.repeat(64)));
});

describe('when an actor was last seen', () => {
  const SEEN = '2026-01-02T10:00:00.500Z';

  test.each([
    ['the first time', undefined, SEEN, SEEN],
    ['again in the same second', SEEN, '2026-01-02T10:00:00.900Z', SEEN],
    ['a second later', SEEN, '2026-01-02T10:00:01.000Z', '2026-01-02T10:00:01.000Z'],
    ['at a time that goes backwards', SEEN, '2026-01-02T09:59:59.000Z', SEEN],
    ['by a clock that was days ahead and was set right', '2026-03-01T00:00:00.000Z', SEEN, SEEN],
  ])('%s', (_, before, at, expected) => {
    expect(seenAt(before, at)).toBe(expected);
  });
});
