import fc from 'fast-check';
import { dump, load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { cutFrontMatter, readDeclaration } from '../../domains/skills/front-matter.ts';
import { Refusal, SKILL_LIMITS } from '../../domains/skills/skill-folder.ts';

function read(file: string | Buffer) {
  try {
    const { declared, leftOut } = readDeclaration(cutFrontMatter(Buffer.from(file as string)), 'demo');
    return { ...declared, leftOut };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.message };
    throw error;
  }
}

function loaded(file: string | Buffer) {
  const declared = read(file);
  if ('reason' in declared) throw new Error(`refused: ${declared.reason}`);
  return declared;
}

function reason(file: string | Buffer): string {
  const declared = read(file);
  return 'reason' in declared ? declared.reason : `loaded as ${declared.name}`;
}

const head = (...lines: string[]): string => `---\n${lines.join('\n')}\n---\nbody\n`;
const plain = head('name: demo', 'description: Shows things.');

describe('a SKILL.md by the book', () => {
  test('is loaded', () => {
    const file = head(
      'name: demo',
      'description: Shows things.',
      'license: MIT',
      'compatibility: Any.',
      'allowed-tools: Read Bash(git:*)',
      'metadata:',
      '  version: "1.10"',
      '  capabilities: show, tell',
      '  author: somebody',
    );

    expect(loaded(file)).toEqual({
      name: 'demo',
      version: '1.10',
      description: 'Shows things.',
      capabilities: ['show', 'tell'],
    });
  });

  test.each([
    ['version: 1.10', '1.10'],
    ['version: "2.0.0"', '2.0.0'],
    ['version: 3', '3'],
    ['license: MIT', '0.0.0'],
    ['version:', '0.0.0'],
    ['version: 1.0\nmetadata:\n  version: "9"', '1.0'],
  ])('with %j has version %s, exactly as written', (line, version) => {
    expect(loaded(head('name: demo', 'description: d', line)).version).toBe(version);
  });

  test.each([
    ['capabilities: [a, b-c]', ['a', 'b-c']],
    ['capabilities:\n  - a\n  - b c', ['a', 'b c']],
    ['capabilities: a, b,,c  d', ['a', 'b', 'c', 'd']],
    ['capabilities: [a, a]', ['a']],
    ['capabilities:', []],
    ['metadata:\n  capabilities: x y', ['x', 'y']],
    ['license: MIT', []],
  ])('with %j declares %j', (line, capabilities) => {
    expect(loaded(head('name: demo', 'description: d', line)).capabilities).toEqual(capabilities);
  });
});

describe('the name and the description equal what a YAML parser reads', () => {
  const parsed = (text: string) => Object(load(text)) as { name: string; description: string };

  test.each([
    ['description: >', '  Use this', '  when: asked.', '', '  Always.'],
    ['description: |', '  One.', '  Two.'],
    ['description: |-', '  One.', '', '  Two.'],
    ['description: |+', '  One.', '', ''],
    ['description: >+', '  One', '  line.', '    - more', '', ''],
    ['description: |2', '    indented', '  by two'],
    ['description: "One.\\n\\tTwo.\\u2028 \\e[31m \\0 "'],
    ['description: "  One', '', '  line.  "'],
    ["description: 'It''s", '', "  two lines. '"],
    ['description: One', '  line.', '', '  And another.'],
    ['description: |', '  One.', '  Two.', 'keywords:', '  - a'],
  ])('%j %j', (...lines) => {
    for (const name of [
      'demo',
      '" demo "',
      '"a\\nb"',
      '|\n  demo',
      'a/b',
      '../../etc/passwd',
      `"${'n'.repeat(256)}"`,
    ]) {
      const yaml = [`name: ${name}`, ...lines].join('\n');
      const { name: read, description } = loaded(head(yaml));

      expect({ name: read, description }).toEqual(
        (({ name, description }) => ({ name, description }))(parsed(`${yaml}\n`)),
      );
    }
  });

  test('whatever they are, and however a program wrote them', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.string({
        unit: fc.constantFrom('a', ' ', '\n', '\t', ':', '#', "'", '"', '\\', '|', '-'),
        maxLength: 40,
      }),
    );
    const visible = texts.filter((text) => /[^\s\p{Cc}]/u.test(text));
    const styles = fc.record({
      lineWidth: fc.constantFrom(-1, 20, 80),
      forceQuotes: fc.boolean(),
      indent: fc.constantFrom(2, 4),
    });

    fc.assert(
      fc.property(visible, visible, styles, (name, description, style) => {
        const yaml = dump({ name, description }, style);
        // A line of three hyphens ends the front matter wherever it stands, and then another YAML was written.
        fc.pre(!/^---/m.test(yaml));

        expect(loaded(`---\n${yaml}---\n`)).toMatchObject({ name, description });
      }),
      { numRuns: 2_000 },
    );
  });

  test('also where another field is broken', () => {
    const file = head(
      'name: "a\\nb"',
      'keywords: [@Cron, X]',
      'description: |',
      '  One.',
      '  Two.',
      'license: x',
    );

    expect(loaded(file)).toMatchObject({ name: 'a\nb', description: 'One.\nTwo.\n' });
  });

  test('up to their limits, and what is cut is named', () => {
    const { nameCharsMax, descriptionCharsMax } = SKILL_LIMITS;
    const file = (more: number) =>
      head(
        `name: ${'n'.repeat(nameCharsMax + more)}`,
        `description: ${'d'.repeat(descriptionCharsMax + more)}`,
      );

    expect(loaded(file(0))).toMatchObject({ leftOut: undefined });
    expect(loaded(file(1))).toMatchObject({
      name: 'n'.repeat(nameCharsMax),
      description: 'd'.repeat(descriptionCharsMax),
      leftOut: 'in force, but not all of it is used: name: longer than 256 characters, and cut; and 1 more',
    });
  });
});

describe('a SKILL.md as people write it is loaded', () => {
  test.each<[string, string | Buffer, object]>([
    ['a byte order mark', `\ufeff${plain}`, {}],
    ['CRLF', plain.replaceAll('\n', '\r\n'), {}],
    ['blank lines before the fence', `\n  \n${plain}`, {}],
    ['blanks after both fences', plain.replaceAll('---\n', '---  \t\n'), {}],
    ['a front matter that ends the file', plain.slice(0, plain.indexOf('\nbody')), {}],
    ['no name', head('description: d'), { name: 'demo' }],
    ['an empty name', head('name:', 'description: d'), { name: 'demo' }],
    ['another folder', head('name: Other--1', 'description: d'), { name: 'Other--1' }],
    ['nested metadata', head('description: d', 'metadata:', '  x: {y: z}', '  version: 2'), { version: '2' }],
    ['metadata that is a list', head('description: d', 'metadata: [a]'), { version: '0.0.0' }],
    ['extra keys', head('description: d', 'colour: red', 'compatibility: {a: b}'), { description: 'd' }],
    ['a version that is a list', head('description: d', 'version: [1]'), { version: '0.0.0' }],
    ['capabilities that are a map', head('description: d', 'capabilities: {a: b}'), { capabilities: [] }],
    [
      'bytes that are not UTF-8',
      Buffer.concat([Buffer.from('---\ndescription: caf'), Buffer.of(0xe9), Buffer.from('\n---\n')]),
      { description: 'caf\ufffd' },
    ],
  ])('%s', (_, file, declared) => {
    expect(loaded(file)).toMatchObject({ name: 'demo', ...declared });
  });

  test.each(['[a]', '{a: b}', '"  "', '"\\0"', '~'])('the name %j is none, the folder’s is used', (name) => {
    const declared = loaded(head(`name: ${name}`, 'description: d'));

    expect(declared.name).toBe('demo');
  });

  test.each([
    ['Use when: asked, or: not', 'description: Use when: asked, or: not'],
    ["it's: here", "description: it's: here"],
    ['ends with:', 'description: ends with:'],
    ['[TODO] write: this', 'description: [TODO] write: this'],
    ['`code` first', 'description: `code` first'],
    ['@you and me', 'description: @you and me'],
    ['%d percent', 'description: %d percent'],
    ['!important', 'description: !important'],
    ['*bold* text', 'description: *bold* text'],
    ['- dash', 'description: - dash'],
    ['Use this when: the user asks for: it', 'description: Use this\n  when: the user\n  asks for: it'],
    ['fine', 'argument-hint: [a] [b]\ndescription: fine # a comment: really'],
  ])('the description %j is understood without its quotes', (description, line) => {
    expect(loaded(head('name: demo', line)).description).toBe(description);
  });

  test.each([
    ['allowed-tools: *'],
    ['argument-hint: [file] [options]'],
    ['argument-hint: {a} {b}'],
    ['metadata:\n\tauthor: x'],
    ['metadata:\n  note: a: b'],
    ['metadata: # who: what\n  note: a: b'],
  ])('the line %j does not cost the skill its place', (line) => {
    expect(loaded(head('name: demo', 'description: d', line)).description).toBe('d');
  });

  test('a repair leaves text in blocks and quotes alone', () => {
    const declared = loaded(
      head('name: demo', 'argument-hint: [a] [b]', 'description: |', '  first: second: third', '  [x] y'),
    );

    expect(declared.description).toBe('first: second: third\n[x] y\n');
  });
});

describe('a SKILL.md that cannot be one is refused with a reason', () => {
  test.each<[string, string | Buffer, string]>([
    ['an empty file', '', 'no front matter'],
    ['only text', '# Title\n', 'no front matter: the first line is not ---'],
    ['no description', head('name: demo'), 'no description'],
    ['an empty description', head('name: demo', 'description:'), 'no description'],
    ['a description of blanks', head('name: demo', 'description: "  "'), 'no description'],
    ['a description of null', head('name: demo', 'description: null'), 'no description'],
    ['a description that is a comment', head('name: demo', 'description: # text'), 'no description'],
    ['a description that is a list', head('name: demo', 'description: [a]'), 'the description is not text'],
    ['an empty front matter', '---\n---\n', 'not valid YAML: expected a document'],
    ['a description that is an alias', head('name: &a demo', 'description: *a'), 'aliases exceeded'],
    ['a description of an unknown type', head('description: !!js/function x'), 'not valid YAML'],
    ['a list', head('- a'), 'the front matter has no fields'],
    ['a sentence', head('just words'), 'the front matter has no fields'],
    ['no second fence', '---\nname: demo\ndescription: d\n', 'the front matter is never closed with ---'],
    ['UTF-16', Buffer.from(`\ufeff${plain}`, 'utf16le'), 'the file is UTF-16; save it as UTF-8'],
    [
      'a merge conflict',
      head('name: demo', '<<<<<<< ours', 'description: a', '=======', 'description: b', '>>>>>>> theirs'),
      'it contains a merge conflict',
    ],
  ])('%s', (_, file, why) => {
    expect(reason(file)).toContain(why);
  });

  test('names the line of the file that is wrong', () => {
    expect(reason(`\n\n${head('name: demo', 'description: *x')}`)).toContain('(line 5)');
  });

  test.each([
    [SKILL_LIMITS.frontMatterBytesMax, 'loaded as demo'],
    [SKILL_LIMITS.frontMatterBytesMax + 1, 'the front matter is not closed within 64 KiB'],
  ])('a front matter of %i bytes is %s', (bytes, outcome) => {
    const frame = '---\nname: demo\ndescription: d\n#\n---\n';
    const file = frame.replace('#', `#${'x'.repeat(bytes - frame.length)}`);

    expect(reason(`${file}body`)).toBe(outcome);
  });
});
