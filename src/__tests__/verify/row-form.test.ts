import { expect, test } from 'vitest';
import { type AuditRow, auditText } from '../../log/row.ts';
import { readRow } from '../../verify/rules/row-form.ts';

const ENTER: AuditRow = {
  position: 7,
  sequence_no: 7,
  stage: 'enter',
  tool: 't',
  actor: 'a',
  source: 'mcp',
  correlation_id: '00000000-0000-4000-8000-000000000000',
  at: '2026-01-31T00:00:00.000Z',
  rules: 1,
  schema_valid: true,
  args_hash: 'a'.repeat(64),
  outcome: 'running',
  error_code: null,
  duration_ms: null,
  result_hash: null,
  effects: [],
  process: 'p',
  repaired: [],
};

const HASH = 'b'.repeat(64);
const EXIT: AuditRow = {
  ...{ ...ENTER, sequence_no: 3, stage: 'exit', args_hash: null, outcome: 'ok', duration_ms: 0 },
  effects: [
    { table: 'thoughts', id: 'Θ-0001', hash: HASH, previous: 0 },
    { table: 'sessions', id: 'A-10000', hash: HASH, previous: 5, seal: { leaf_count: 2, merkle_root: HASH } },
  ],
};

const FIRST_CHARACTERS = Array.from({ length: 0x250 }, (_, code) => String.fromCharCode(code)).join('');

test('a row is read back as it was written, whatever its texts hold', () => {
  for (const text of ['a', 'Θ"\\\n', '😀x', '\u2028\u2029\ufffd\u007f', FIRST_CHARACTERS])
    for (const repaired of [[], [''], ['a', text, '"'], ['a]']]) {
      const row = { ...ENTER, actor: text, process: text, tool: text.slice(0, 64), repaired };

      expect(readRow(auditText(row), 1)).toEqual(row);
    }
  expect(readRow(auditText(EXIT), 1)).toMatchObject({ ...EXIT });
});

test.each<[row: AuditRow, from: string, to: string]>([
  [ENTER, '"actor":"a"', '"actor":""'],
  [ENTER, '"actor":"a"', '"actor":"\\u0061"'],
  [ENTER, '"actor":"a"', '"actor":"\\/"'],
  [ENTER, '"actor":"a"', '"actor":"\\u000a"'],
  [ENTER, '"actor":"a"', '"actor":"\\u001F"'],
  [ENTER, '"actor":"a"', '"actor":"\\ud800"'],
  [ENTER, '"actor":"a"', '"actor":"\ud800"'],
  [ENTER, '"actor":"a"', '"actor":"\n"'],
  [ENTER, '"actor":"a"', '"actor":["a"]'],
  [ENTER, '2026-01-31', '2026-02-30'],
  [ENTER, '"tool":"t"', `"tool":"${'t'.repeat(65)}"`],
  [ENTER, '"position":7', '"position":07'],
  [ENTER, '"position":7', '"position":7.0'],
  [ENTER, '"rules":1', '"rules":"1"'],
  [ENTER, '"process"', '"effects":[],"process"'],
  [ENTER, '"process"', '"owner":1,"process"'],
  [ENTER, '}', '} '],
  [EXIT, 'Θ-0001', 'T-0001'],
  [EXIT, 'Θ-0001', 'Θ-0000'],
  [EXIT, 'Θ-0001', 'Θ-001'],
  [EXIT, 'A-10000', 'A-010000'],
  [EXIT, '"previous":5', '"previous":05'],
  [EXIT, '},{', '}{'],
  [EXIT, '"sessions"', '"session"'],
  [EXIT, '}],', '},],'],
  [EXIT, '"leaf_count":2', '"leaf_count":2,"more":1'],
])('a row is refused with another text in it (%#: %o)', (row, from, to) => {
  const text = auditText(row);

  expect(text).toContain(from);
  expect(() =>
    readRow(
      text.replace(from, () => to),
      1,
    ),
  ).toThrow(/\w/);
});

test('a row of newer rules may have any form', () => {
  expect(() => readRow('{"rules":2}', 1)).toThrow('rules version 2');
  expect(() => readRow('{"rules":1}', 1)).toThrow('canonical form');
});
