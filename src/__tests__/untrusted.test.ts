import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { jsonText, markdownLine, shellQuote, splitActing, visible, visibleLine } from '../untrusted.ts';

const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const DANGEROUS = [
  ...upTo(0, 8),
  ...upTo(11, 31),
  ...upTo(0x7f, 0x9f),
  ...upTo(0x2028, 0x202e),
  ...upTo(0x2066, 0x2069),
  ...[0xad, 0x200b, 0x200e, 0x200f, 0x61c, 0xfeff, 0xd800, 0xdfff, 0xe0041],
].map((code) => String.fromCodePoint(code));

test('every character that acts or hides is spelled out in each medium', () => {
  const passed = DANGEROUS.filter((c) => {
    const shown = [visible, visibleLine, markdownLine, jsonText].map((show) => show(`a${c}b`));
    return shown.some((text) => text.includes(c)) || splitActing(`a${c}b`)[1] !== c;
  });

  expect(passed).toEqual([]);
});

test('JSON is that of the same value', () => {
  const value = { [DANGEROUS.join('')]: [DANGEROUS.join('x'), 1, null, '\n\t"\\'] };

  expect(JSON.parse(jsonText(value, 2))).toEqual(value);
});

test('joiners, letters of any script and marks among right-to-left letters stay as they are', () => {
  for (const text of [
    'می\u200cخواهم',
    '👨\u200d👩\u200d👧',
    'שלום!\u200f (1)',
    '\u200eعربي',
    '中文',
    'e\u0301',
    '\u0600١٢',
  ])
    expect([visible(text), JSON.parse(jsonText(text)), splitActing(text)]).toEqual([text, text, [text]]);
});

test('a mark between left-to-right letters, or beside nothing but marks, is spelled out', () => {
  expect(visible('user\u200fname \u061c\u200e')).toBe('user\\u{200f}name \\u{61c}\\u{200e}');
});

test('a line stays one line', () => {
  expect(visibleLine('a\nb\r\nc\td\re')).toBe('a b c d e');
  expect(visible('a\nb\tc')).toBe('a\nb\tc');
});

test.each([
  ['12. item', '12\\. item'],
  ['- [ ] task', '\\- \\[ \\] task'],
  ['key:: value', 'key:\\: value'],
  ['obsidian://run http://a https://b', 'obsidian:\\/\\/run http://a https://b'],
  ['<% tp %> %%c%%', '\\<\\% tp \\%\\> \\%\\%c\\%\\%'],
])('Markdown of %s only shows it', (text, shown) => {
  expect(markdownLine(text)).toBe(shown);
});

test('a quoted path is one word for a shell, and runs nothing', () => {
  for (const path of [
    '/a/b-c.db',
    '/a b',
    "/a'b; echo run #",
    '/$(echo run)`echo run`',
    '/a\\"&|<>*?\n!',
    '~',
    '',
  ]) {
    const { stdout } = spawnSync('/bin/sh', ['-c', `printf '%s|' ${shellQuote(path)}`], { encoding: 'utf8' });

    expect(stdout).toBe(`${path}|`);
  }
  expect(shellQuote('@/a/b-c.db')).toBe('@/a/b-c.db');
});
