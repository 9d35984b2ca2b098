import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { type Random, seededRandom } from '../../../tests/driver/random.ts';
import { tier } from '../../../tests/driver/tier.ts';
import { cutFrontMatter, readDeclaration } from '../../domains/skills/front-matter.ts';

// Nobody's files: every one is made here, of the kinds that were counted in real collections and as often as there.

interface Made {
  readonly kind: string;
  readonly file: string;
  /** Undefined where the file has none to read. */
  readonly description?: string;
}

const WORDS = [
  ...[
    'Use',
    'when',
    'asked',
    'to',
    'deploy',
    'the',
    'site',
    'with',
    'Docker',
    'a',
    'PDF',
    'or',
    'CSV',
    'file',
    'and',
  ],
  ...[
    '(beta)',
    'C++',
    '50%',
    'e.g.',
    "don't",
    '`npm run`',
    'v1.2',
    '强制',
    '每次都用',
    'für',
    'Größe',
    '🚀',
    'R&D',
    'x=y',
  ],
];

/** Words without anything that YAML gives a meaning to. */
function plainText(random: Random): string {
  const words = Array.from({ length: random.between(3, 40) }, () => random.pick(WORDS));
  return ['Does', ...words, 'now.'].join(' ');
}

/** Ways to write a description, each with the share of 21,612 registry files that FINDINGS K1 counts. */
const DESCRIPTIONS: Readonly<Record<string, (text: string, random: Random) => readonly string[]>> = {
  plain: (text) => [`description: ${text}`],
  quoted: (text) => [`description: ${JSON.stringify(text)}`],
  'a block': (text, random) => [
    `description: ${random.pick(['>', '|', '>-', '|-'])}`,
    ...inLines(text, random).map((line) => `  ${line}`),
  ],
  'text after the sign of a block': (text, random) => [
    `description: ${random.pick(['>', '|', '>-', '|-', '>+'])} ${text}`,
  ],
  'a continued quote in column 0': (text, random) => {
    const [first = '', ...rest] = inLines(text, random);
    return [`description: "${first}`, ...rest].map((line, i, all) =>
      i === all.length - 1 ? `${line}"` : line,
    );
  },
  stars: (text, random) => [
    `description: **${random.pick(['强制', 'Always', '必须'])}**${random.pick(['：', ' ', ''])}${text}`,
  ],
  'a colon in a plain text': (text, random) => [
    `description: ${random.pick(['Note', 'Triggers', '用途'])}: ${text}`,
  ],
  'a quote inside a quote': (text) => [`description: "Say "${text.split(' ')[1]}" first, ${text}"`],
};

function inLines(text: string, random: Random): string[] {
  const words = text.split(' ');
  const cut = random.between(1, words.length - 1);
  return [words.slice(0, cut).join(' '), words.slice(cut).join(' ')];
}

/** Another field that no parser reads. */
const BROKEN: readonly (readonly string[])[] = [
  ['keywords: [@Cron, X]'],
  ['tags: [a, b'],
  ['allowed-tools: [*]'],
  ['author: @somebody'],
  ['triggers:', '  - "one', '  - two'],
  ['license: "MIT" or later'],
  ['homepage: `x`'],
  ['when: a: b: c'],
];

/** What is unusual and readable, with how many in a hundred have it (ECOSYSTEM 5.2). */
const TRAITS: readonly (readonly [percent: number, lines: readonly string[]])[] = [
  [
    34,
    [
      'metadata:',
      '  openclaw:',
      '    emoji: "🦞"',
      '    requires: { bins: [curl], env: ["KEY"] }',
      '  version: 1.0',
    ],
  ],
  [30, ['version: 1.2.0', 'author: ada', 'user-invocable: true', 'argument-hint: "[path]"']],
  [5, ['allowed-tools: Bash(git:*), Read']],
  [2, ['compatibility: [a, b]']],
];

interface Shares {
  readonly [kind: string]: number;
}

const REGISTRY: Shares = {
  ...{ plain: 12_000, quoted: 4_401, 'a block': 3_000, 'a colon in a plain text': 400 },
  ...{ 'text after the sign of a block': 486, 'a continued quote in column 0': 63, stars: 77 },
  ...{ 'a quote inside a quote': 34, 'a broken field': 510, 'a fence stuck to the title': 18 },
  ...{ 'no front matter': 400, 'no description': 223 },
};
const CURATED: Shares = {
  ...{ plain: 7_000, quoted: 1_500, 'a block': 1_300, 'a colon in a plain text': 120 },
  ...{
    'text after the sign of a block': 20,
    'a broken field': 20,
    stars: 5,
    'a fence stuck to the title': 5,
  },
  ...{ 'no front matter': 15, 'no description': 15 },
};

function makeFile(kind: string, random: Random): Made {
  const text = plainText(random);
  const title = '# Title';
  if (kind === 'no front matter') return { kind, file: `${title}\n\n${text}\n` };
  const form = DESCRIPTIONS[kind] ?? DESCRIPTIONS[random.pick(['plain', 'quoted', 'a block'])];
  const described = kind === 'no description' ? [] : (form?.(text, random) ?? []);
  const others = TRAITS.filter(([percent]) => random.between(1, 100) <= percent).map(([, lines]) => lines);
  if (kind === 'a broken field') others.push(random.pick(BROKEN));
  // In any order, the description too.
  const fields = [described, ...others].sort(() => random.between(0, 1) - 0.5);
  const name = random.oneIn(5) ? ['name: Another Name'] : random.oneIn(20) ? [] : ['name: folder'];
  const fence = kind === 'a fence stuck to the title' ? `---${title}` : `---\n\n${title}`;
  const file = ['---', ...name, ...fields.flat(), `${fence}\n\nText: x\n`].join('\n');
  const ends = random.between(1, 1_000) <= 22 ? file.replaceAll('\n', '\r\n') : file;
  const description = described.length === 0 ? {} : { description: text };
  return { kind, file: random.oneIn(200) ? `\uFEFF${ends}` : ends, ...description };
}

function corpus(shares: Shares, size: number, random: Random): Made[] {
  const all = Object.values(shares).reduce((sum, share) => sum + share, 0);
  return Object.entries(shares).flatMap(([kind, share]) =>
    Array.from({ length: Math.max(1, Math.round((share / all) * size)) }, () => makeFile(kind, random)),
  );
}

function describedAs(file: string): string | undefined {
  try {
    return readDeclaration(cutFrontMatter(Buffer.from(file)), 'folder').declared.description;
  } catch {
    return undefined;
  }
}

/** What a YAML parser reads in the whole front matter; undefined where it cannot. */
function asYaml(file: string): unknown {
  try {
    return Object(load(cutFrontMatter(Buffer.from(file)).yaml.toString())).description;
  } catch {
    return undefined;
  }
}

const onOneLine = (text: string | undefined) => text?.replace(/\s+/g, ' ');

describe('K1: of files as registries and curated collections have them', () => {
  test.each([
    ['96 % from registries', REGISTRY, 0.96],
    ['99.5 % of curated ones', CURATED, 0.995],
  ])('at least %s load, with the description that was written', (_, shares, least) => {
    const random = seededRandom('skills');
    const files = corpus(shares, tier(600, 20_000), random).map((made) => ({
      ...made,
      read: describedAs(made.file),
    }));

    const wrong = files.filter(({ read, description }) =>
      description === undefined ? read !== undefined : onOneLine(read)?.includes(description) !== true,
    );
    const parsed = files.filter(({ file }) => asYaml(file) !== undefined);
    const loaded = files.filter(({ read }) => read !== undefined);

    expect(wrong).toEqual([]);
    expect(parsed.length).toBeGreaterThan(files.length / 2);
    expect(parsed.filter(({ file, read }) => read !== asYaml(file))).toEqual([]);
    expect(loaded.length / files.length).toBeGreaterThanOrEqual(least);
  });
});
