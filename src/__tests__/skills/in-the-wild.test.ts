import { describe, expect, test } from 'vitest';
import { cutFrontMatter, readDeclaration } from '../../domains/skills/front-matter.ts';
import { makeWorkspace, skillText } from './workspace.ts';

// Each file below has the form of one that a registry serves; no YAML parser reads all of them.

const head = (...lines: string[]): string => `---\n${lines.join('\n')}\n---\nbody\n`;

function read(file: string) {
  const { declared, leftOut } = readDeclaration(cutFrontMatter(Buffer.from(file)), 'folder');
  return { ...declared, leftOut };
}

describe('K1: a file whose description a person can read is loaded', () => {
  test.each<[string, string[], string]>([
    ['text after >', ['description: > Use when asked.'], 'Use when asked.'],
    ['text after |', ['description: | Use when asked.', 'license: MIT'], 'Use when asked.'],
    ['text after >-', ['description: >- Use when: asked.'], 'Use when: asked.'],
    ['text after > that goes on', ['description: > Use when asked', '  or: not.'], 'Use when asked or: not.'],
    ['# after >', ['description: > Use #1 when asked.'], 'Use #1 when asked.'],
    ['stars and no blank', ['description: **强制**：每次都用'], '**强制**：每次都用'],
    ['stars and a colon', ['description: **强制**：每次: 都用'], '**强制**：每次: 都用'],
    ['one starred word', ['description: *always*'], '*always*'],
    ['quotes inside quotes', ['description: "Say "one" twice: x"'], 'Say "one" twice: x'],
    ['an apostrophe inside quotes', ["description: 'it's here: now'"], "it's here: now"],
    ['a word in quotes first', ['description: "Quick" skill for x'], '"Quick" skill for x'],
    ['words in quotes at both ends', ['description: "One" and "two"'], '"One" and "two"'],
    ['a quote that is never closed', ['description: "Use when asked.', 'license: "MIT"'], 'Use when asked.'],
    ['an unknown escape', ['description: "Reads C:\\dir"'], 'Reads C:\\dir'],
    [
      'a block that is not indented',
      ['description: |', 'Use when', 'asked.', 'license: x'],
      'Use when\nasked.\n',
    ],
    ['a text that is not indented', ['description: Use when', 'asked.', 'license: x'], 'Use when asked.'],
    [
      'the text of the file',
      ['description: Use when', 'asked.', '', '# Title', 'Text: x'],
      'Use when asked.',
    ],
    ['a first field that is indented', [' name: demo', 'description: Use when asked.'], 'Use when asked.'],
    ['a field that is there twice', ['tags: a', 'description: d', 'tags: b'], 'd'],
  ])('%s', (_, lines, description) => {
    expect(read(head(...lines)).description).toBe(description);
  });

  test('a closing fence that the title is stuck to', () => {
    const file = '---\nname: demo\ndescription: d\n---# Title\n\n---\nmore: [\n---\n';

    expect(read(file)).toMatchObject({ name: 'demo', description: 'd' });
  });
});

describe('K1: what most parsers read is read as they do', () => {
  test.each<[string, string[], object]>([
    [
      'a quoted text that goes on in column 0',
      ['description: "Use when', 'asked. \\u00fc"', 'version: 2'],
      { description: 'Use when asked. ü', version: '2' },
    ],
    [
      'one with a line that looks like a field',
      ['description: "Use this.', 'Triggers: x', 'Not: y"', 'version: 2'],
      { description: 'Use this. Triggers: x Not: y', version: '2' },
    ],
    [
      'single quotes',
      ["description: 'It''s", "Triggers: x'", 'version: 2'],
      { description: "It's Triggers: x", version: '2' },
    ],
    [
      'a closing brace in column 0',
      ['description: d', 'metadata: {', '  "a": {"b": [1]},', '  "version": "3"', '}'],
      { description: 'd', version: '3' },
    ],
    [
      'a closing bracket in column 0',
      ['description: d', 'capabilities: [', '  a,', '  b', ']'],
      { capabilities: ['a', 'b'] },
    ],
  ])('%s', (_, lines, declared) => {
    expect(read(head('name: demo', ...lines))).toMatchObject({ ...declared, leftOut: undefined });
  });
});

describe('K1: a broken field costs the skill that field, and is named', () => {
  test.each<[string, string[], string]>([
    ['a list of reserved characters', ['keywords: [@Cron, X]'], 'keywords: not valid YAML'],
    ['an alias in a list', ['allowed-tools: [*]'], 'allowed-tools: not valid YAML'],
    ['a list that is never closed', ['tags:', '  - [a', '  - b'], 'tags: not valid YAML'],
    ['metadata with a tag', ['metadata:', '  x: !!js/function y'], 'metadata: not valid YAML'],
    ['metadata that is a list', ['metadata: [a]'], 'metadata: not a map'],
    ['a version that is a list', ['version: [1]'], 'version: not text'],
    ['a field that is there twice', ['x: a', 'x: b'], 'x appears twice: the last one counts'],
    ['a stray line', ['license: MIT', 'and so on'], 'license: not valid YAML'],
    ['two of them', ['a: [@b]', 'c: [@d]'], 'a: not valid YAML.*; and 1 more'],
  ])('%s', (_, lines, leftOut) => {
    const declared = read(head('name: demo', 'description: d: e', ...lines));

    expect(declared).toMatchObject({ name: 'demo', description: 'd: e' });
    expect(declared.leftOut).toMatch(new RegExp(`^in force, but not all of it is used: ${leftOut}`));
  });

  test('the reason names the line of the file', () => {
    expect(read(head('name: demo', 'description: d', '', 'keywords: [@Cron, X]')).leftOut).toContain(
      '(line 5)',
    );
  });

  test('the listing names it beside the skill', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo', skillText('demo', 'd', 'keywords: [@Cron, X]\n'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['demo']);
    expect(skipped).toEqual([
      { path: '.agents/skills/demo/SKILL.md', reason: expect.stringContaining('keywords: not valid YAML') },
    ]);
  });
});

describe('K2: nothing is hidden without a word', () => {
  test('the skills below a refused file are in force', async () => {
    const workspace = makeWorkspace();
    workspace.skill('pack', '# A pack, and no front matter\n');
    workspace.skill('pack/one', skillText('one'));
    workspace.skill('pack/more/two', skillText('two'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['one', 'two']);
    expect(skipped.map(({ path }) => path)).toEqual(['.agents/skills/pack/SKILL.md']);
  });

  test.each(['', 'x/'])('the skills below one in force are named, also where it is shadowed', async (at) => {
    const workspace = makeWorkspace();
    if (at !== '') workspace.skill('pack');
    workspace.skill(`${at}pack`, skillText('pack'));
    workspace.skill(`${at}pack/skills/one`, skillText('one'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['pack']);
    expect(skipped.at(-1)).toEqual({
      path: `.agents/skills/${at}pack/skills/one/SKILL.md`,
      reason: `part of the skill in .agents/skills/${at}pack; move it out to make it a separate skill`,
    });
  });
});

test('K4: a skill with 702 files and 20 MB is in force', async () => {
  const workspace = makeWorkspace();
  workspace.skill('large');
  workspace.write('.agents/skills/large/model.bin', Buffer.alloc(20_000_000, 7));
  for (let i = 0; i < 700; i += 1) workspace.write(`.agents/skills/large/${i % 7}/${i}.md`, `${i}`);

  const { skills, skipped } = await workspace.registry().list();

  expect(skipped).toEqual([]);
  expect(skills.map(({ name }) => name)).toEqual(['large']);
});
