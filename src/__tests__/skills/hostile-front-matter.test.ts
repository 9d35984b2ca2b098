import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { cutFrontMatter, readDeclaration } from '../../domains/skills/front-matter.ts';
import { Refusal } from '../../domains/skills/skill-folder.ts';

const read = (yaml: string) => readFile(Buffer.from(`---\n${yaml}\n---\n`));
const readFile = (file: Buffer) => {
  try {
    const { declared, leftOut } = readDeclaration(cutFrontMatter(file), 'demo');
    return { ...declared, leftOut };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.message };
    throw error;
  }
};
const outcome = (yaml: string): string => {
  const declared = read(yaml);
  return 'reason' in declared ? declared.reason : (declared.leftOut ?? 'loaded');
};
const fields = 'name: demo\ndescription: d';

/** As long as a front matter may be. */
const filled = (unit: string): string => unit.repeat(Math.floor(65_000 / unit.length));

describe('R36: hostile front matter is refused or left out and named, and nothing in it runs', () => {
  test('an alias bomb', () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`,
    );

    expect(outcome(`${fields}\nl0: &l0 x\n${levels.join('\n')}`)).toContain('aliases exceeded');
  });

  test('a single alias, which a repair must not turn into text', () => {
    expect(outcome('name: &a demo\ndescription: *a')).toContain('aliases exceeded');
  });

  test.each([
    ['[', ']'],
    ['{a: ', '}'],
    ['- ', ''],
    ['? ', ''],
  ])('forty files in a row that nest %j 32 to 32,000 deep', (open, close) => {
    for (let file = 0; file < 40; file += 1) {
      const levels = Math.min(32_000, Math.floor(64_000 / (open.length + close.length)), 33 + file * 820);

      expect(outcome(`${fields}\nx:\n ${open.repeat(levels)}${close.repeat(levels)}`)).toContain(
        'not valid YAML',
      );
    }
  });

  test('depth by indentation', () => {
    const lines = Array.from({ length: 300 }, (_, i) => `${' '.repeat(i)}a:`);

    expect(outcome(`${fields}\n${lines.join('\n')}`)).toContain('nesting exceeded');
  });

  test('thirty levels are still read', () => {
    expect(outcome(`${fields}\nx: ${'['.repeat(30)}${']'.repeat(30)}`)).toBe('loaded');
  });

  test('duplicate keys', () => {
    expect(outcome(`${fields}\nx: a\nx: b`)).toContain('x appears twice: the last one counts');
  });

  test.each([
    '!!js/function "function(){}"',
    '!!js/regexp /a/',
    '!!python/object/apply:os.system [id]',
    '!<x> y',
    '!!binary aGk=',
  ])('the tag %s', (value) => {
    expect(outcome(`${fields}\nx: ${value}`)).toContain('unknown');
  });

  test.each(['js', 'javascript', 'json', 'yaml', ' js', '-'])('the fence ---%s', (language) => {
    const file = Buffer.from(`---${language}\nglobalThis.executed = true;\n---\n`);
    const declared = readFile(file);

    expect(declared).toEqual({ reason: 'no front matter: the first line is not ---' });
    expect('executed' in globalThis).toBe(false);
  });

  test('keys of a prototype are keys', () => {
    const declared = read(`${fields}\n__proto__: {polluted: yes}\nconstructor: {prototype: {polluted: yes}}`);

    expect('reason' in declared).toBe(false);
    expect('polluted' in {}).toBe(false);
  });

  test('a scalar of 1 MB', () => {
    expect(outcome(`name: demo\ndescription: ${'x'.repeat(1_000_000)}`)).toBe(
      'the front matter is not closed within 64 KiB',
    );
  });

  test('any bytes are a skill or a reason, never an exception', () => {
    const words = [
      '---',
      'name',
      'description',
      ':',
      ' ',
      '\n',
      '\r',
      '- ',
      '[',
      ']',
      '{',
      '}',
      '"',
      "'",
      '|',
      '>',
      '#',
      '&a',
      '*a',
      '!',
      '\t',
      'ü',
    ];
    const texts = fc
      .array(fc.constantFrom(...words), { maxLength: 60 })
      .map((list) => `---\n${list.join('')}\n---\n`);
    const bytes = fc.oneof(
      texts.map((text) => Buffer.from(text)),
      fc.uint8Array().map((array) => Buffer.from(array)),
    );

    fc.assert(
      fc.property(bytes, (file) => {
        const declared = readFile(file);

        expect('reason' in declared ? declared.reason : declared.name).not.toBe('');
        expect(JSON.stringify(declared).isWellFormed()).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a NUL', () => {
    expect(outcome(`${fields}\nx: a\u0000b`)).toContain('null byte');
  });

  test('half a surrogate pair does not leave the file', () => {
    const declared = read('name: "\\udc00"\ndescription: "a\\ud800b"\nversion: "1\\e[31m\\0"');

    expect(declared).toMatchObject({ name: '\ufffd', description: 'a\ufffdb', version: '1 [31m' });
  });
});

describe('R36: no front matter takes long', () => {
  const units: Record<string, string> = {
    'one scalar': 'x',
    keys: 'a',
    brackets: '[',
    'closed brackets': '[[[[]]]],',
    braces: '{a},',
    pairs: 'a: b, ',
    dashes: '- ',
    questions: '?\n',
    colons: ': ',
    'open quotes': '"',
    escapes: '\\',
    newlines: '\n',
    blanks: ' ',
    tabs: '\t',
    'blank lines': '  \n',
    comments: '# x\n',
    bangs: '!a ',
    directives: '%TAG ! x\n',
    anchors: '&a ',
    stars: '*',
    merges: '<<: {a: 1}\n',
    blocks: '|\n',
    returns: '\r',
    'CRLF and colons': 'a: b: c\r\n',
    'misread values': 'a: [b] c\n',
    'misread and deeper': 'a: [\n  ] b\n',
  };

  const costs: { name: string; ms: number; mb: number }[] = [];

  afterAll(() => {
    const [slowest] = costs.sort((a, b) => b.ms - a.ms);
    const [largest] = costs.toSorted((a, b) => b.mb - a.mb);
    console.error(`64 KiB of front matter, slowest: ${slowest?.name}, ${slowest?.ms.toFixed(1)} ms a file`);
    console.error(`six files of it, largest: ${largest?.name}, ${largest?.mb.toFixed(1)} MB of heap`);
  });

  test.each(Object.keys(units))('64 KiB of %s, cold and then warm', (name) => {
    const unit = filled(units[name] ?? '');
    const yaml = [
      `${fields}\nx: ${unit}`,
      unit,
      `${fields}\n${unit}`,
      `x: "${unit}"`,
      `x: '${unit}'`,
      `x: [${unit}]`,
    ];
    const before = process.memoryUsage().heapUsed;
    // The time of the processor: others may use the machine meanwhile.
    const began = process.cpuUsage();

    for (const text of yaml) outcome(text);

    const { user, system } = process.cpuUsage(began);
    const ms = (user + system) / 1_000 / yaml.length;
    const mb = (process.memoryUsage().heapUsed - before) / 1e6;
    costs.push({ name, ms, mb });
    // Ten times the promise, so that only a runaway fails on a busy machine.
    expect(ms).toBeLessThan(500);
  });

  test('six thousand keys are read', () => {
    const keys = Array.from({ length: 6_000 }, (_, i) => `k${i}: v`).join('\n');

    expect(read(`${fields}\n${keys}`)).toMatchObject({ name: 'demo', description: 'd' });
  });
});
