import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { searchConditions } from '../../domains/tasks/reads.ts';
import { SQLITE_DIALECT } from '../../storage/sqlite/dialect.ts';
import { MATCHES } from '../../storage/sqlite/word-index.ts';
import { type Bench, openBench } from './bench.ts';
import { findingsOf } from './findings.ts';
import { trials } from './trials.ts';

let bench: Bench;
const folder = mkdtempSync(join(tmpdir(), 'colibri-search-'));

beforeAll(async () => {
  bench = await openBench(folder);
});

afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
});

let projects = 0;

/** A project of its own for one trial: what others wrote is not seen. */
function freshProject(): string {
  projects += 1;
  return `p${projects}`;
}

async function create(project: string, title: string, description = ''): Promise<string> {
  const answer = await bench.call<{ task_id: string }>('task_create', { title, description, project });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.data.task_id;
}

async function find(project: string, search: string): Promise<string[]> {
  const answer = await bench.call<{ tasks: { task_id: string }[] }>('task_list', {
    project,
    search,
    sort_by: 'created',
    sort_order: 'asc',
    limit: 500,
  });
  if (!answer.ok) throw new Error(`${JSON.stringify(search.slice(0, 100))}: ${answer.error.message}`);
  return answer.data.tasks.map((task) => task.task_id);
}

describe('against an oracle', () => {
  const word = fc.constantFrom('alpha', 'alphabet', 'beta', 'ALPHA', 'be', 'x', '42', '4', 'a1b');
  const separator = fc.constantFrom(' ', '-', '. ', '_', '/', '\n', "'", ' (', ') ', ': ', '…', ' — ');
  const phrase = fc
    .array(fc.tuple(word, separator), { minLength: 1, maxLength: 6 })
    .map((parts) => parts.flat().join('').trim());
  const query = fc
    .array(
      fc.oneof(word, phrase, fc.constantFrom('al', 'b', '"', '*', 'AND', '-', '(', 'a-', "'"), {
        arbitrary: word.map((text) => text.slice(0, 2)),
        weight: 2,
      }),
      {
        maxLength: 3,
      },
    )
    .map((parts) => parts.join(' '));

  test('it finds exactly the tasks that hold every word, or begin a word with it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(phrase, fc.option(phrase, { nil: '' })), { minLength: 1, maxLength: 5 }),
        fc.array(query, { minLength: 1, maxLength: 5 }),
        async (texts, queries) => {
          const project = freshProject();
          const tasks: { id: string; fields: string[] }[] = [];
          for (const [title, description] of texts)
            tasks.push({ id: await create(project, title, description), fields: [title, description] });

          for (const search of queries) {
            const expected = tasks.filter(({ fields }) => holds(fields, search)).map(({ id }) => id);
            expect(await find(project, search), JSON.stringify([search, texts])).toEqual(expected);
          }
        },
      ),
      trials('search against an oracle', 60),
    );
  });

  /** Words of letters and digits, side by side as they stand in the query, the last one a beginning; the rest as it stands. */
  function holds(fields: readonly string[], search: string): boolean {
    const wanted = search.split(/\s+/).filter((part) => part !== '');
    return wanted.every((part) => {
      const terms = wordsOf(part);
      if (terms.length === 0) return fields.some((field) => field.includes(part));
      return fields.some((field) => holdsInRow(wordsOf(field), terms));
    });
  }

  function holdsInRow(words: readonly string[], terms: readonly string[]): boolean {
    return words.some((_, at) =>
      terms.every((term, i) => {
        const found = words[at + i];
        return i === terms.length - 1 ? found?.startsWith(term) === true : found === term;
      }),
    );
  }

  function wordsOf(text: string): string[] {
    return text
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((part) => part !== '');
  }
});

describe('any text', () => {
  // Any code point; U+0000 is refused before it comes here, and two signs SQLite takes for marks and Unicode for letters.
  const anyText = (maxLength: number) =>
    fc.string({ unit: 'binary', maxLength }).map((text) => text.replace(/[\0\u1cf2\u1cf3]/g, '.'));

  test('is searched for without error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyText(200), fc.string({ maxLength: 200 })), async (search) => {
        expect(await find('nothing-here', search)).toEqual([]);
      }),
      trials('any search', 150),
    );
  });

  test('that was just written is found again, by each of its words and by all of them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .oneof(anyText(60), fc.string({ unit: 'grapheme', maxLength: 60 }), fc.lorem())
          .filter((text) => text.trim() !== '' && text.length <= 256),
        async (title) => {
          const project = freshProject();
          const id = await create(project, title);

          for (const search of [title, ...title.split(/[\s\p{Cc}]+/u)]) {
            expect(await find(project, search), JSON.stringify([title, search])).toEqual([id]);
          }
        },
      ),
      trials('own words', 150),
    );
  });

  test('is found by the beginning of any word', async () => {
    await fc.assert(
      fc.asyncProperty(fc.lorem({ maxCount: 6 }), fc.nat(), fc.nat(), async (title, which, length) => {
        const project = freshProject();
        const id = await create(project, 'other', title);
        const words = title.split(/[\s.]+/).filter((word) => word !== '');
        const word = words[which % words.length] as string;

        expect(await find(project, word.slice(0, 1 + (length % word.length)))).toEqual([id]);
      }),
      trials('prefixes', 40),
    );
  });

  test('of eight thousand characters is searched for, and found where it stands', async () => {
    const project = freshProject();
    const texts = [
      'x'.repeat(8_000),
      'word '.repeat(1_600),
      Array.from({ length: 8_000 }, (_, i) => i)
        .join(' ')
        .slice(0, 8_000),
      'a.'.repeat(4_000),
      '"'.repeat(8_000),
      '*'.repeat(8_000),
      'AND '.repeat(2_000),
      '東'.repeat(8_000),
      '🦜'.repeat(4_000),
      '('.repeat(8_000),
      `${'"a" '.repeat(1_999)}NOT`,
    ];

    for (const text of texts) {
      const id = await create(project, 'long', text);
      expect(await find(project, text), text.slice(0, 20)).toContain(id);
    }
  });
});

describe('scripts and signs', () => {
  test.each([
    ['東京タワーを直す', ['東京', '京タ', 'タワー', 'ー', '直す', '東京 直す'], ['大阪', '東直']],
    ['커피를 마시다', ['커피', '피를', '마시'], ['차를']],
    ['แก้ไขปัญหา', ['ไข', 'ปัญหา'], ['ทดสอบ']],
    ['မြန်မာစာ ရေးသည်', ['မာစာ', 'ရေး'], ['ကမ္ဘာ']],
    [
      'Überprüfung der Straße',
      ['über', 'UBER', 'ube', 'straße', 'prüfung der'.slice(8)],
      ['prufung', 'strasse'],
    ],
    ['cafe\u0301 Crème', ['café', 'cafe', 'CAFÉ', 'creme'], ['fe']],
    ['Привет мир', ['привет', 'ПРИ', 'мир'], ['вет']],
    ['ship 🚀 now 👨‍👩‍👧', ['🚀', 'ship 🚀', '👨‍👩‍👧', '👩'], ['🦜']],
    [
      '100% of a_b (C++ / C#)',
      ['100%', '%', '_', 'a_b', 'C++', 'c#', '(', '100 a'],
      ['axb', 'ab', '__', '%%'],
    ],
    ['say "hello" \\ it\'s', ['"hello"', 'hello"', '"hel', '"', '\\', "it's", "'"], ['""']],
    ['col·lecció', ['col', 'COL·LECCIÓ', 'lecc'], ['ecci']],
  ])('%s', async (title, found, missed) => {
    const project = freshProject();
    const id = await create(project, title);

    for (const search of found) expect.soft(await find(project, search), search).toEqual([id]);
    for (const search of missed) expect.soft(await find(project, search), search).toEqual([]);
  });

  test('words of the query language are words', async () => {
    const project = freshProject();
    const plain = await create(project, 'this and that or not near');
    await create(project, 'something else');

    for (const search of ['AND', 'OR', 'NOT', 'NEAR', 'and or', 'this AND that', 'near(', 'this OR']) {
      expect.soft(await find(project, search), search).toEqual([plain]);
    }
    expect(await find(project, 'this OR else')).toEqual([]);
    expect(await find(project, 'title:this')).toEqual([]);
    expect(await find(project, '^this')).toEqual([plain]);
    expect(await find(project, '-this')).toEqual([plain]);
  });
});

describe('what was written', () => {
  test('is found under its new words at once and under its old ones no more', async () => {
    const project = freshProject();
    const id = await create(project, 'first title', 'first description');

    await bench.call('task_update', { task_id: id, title: 'second' });
    expect(await find(project, 'title')).toEqual([]);
    expect(await find(project, 'second first')).toEqual([id]);
    await bench.call('task_update', { task_id: id, description: '' });
    expect(await find(project, 'first')).toEqual([]);
    await bench.call('task_update', { task_id: id, status: 'done', title: 'third' });
    expect(await find(project, 'third')).toEqual([]);
    expect(await find(project, 'second')).toEqual([id]);
  });

  test('stays in step with its index whatever was written', async () => {
    expect(await bench.findings()).toEqual([]);
  });
});

test('a connection that has searched before verifies what was written since', async () => {
  await bench.call('task_list', { search: 'alpha' });
  await bench.call('task_create', { title: 'alpha', project: 'p' });

  expect(await findingsOf(bench.storage)).toEqual([]);
});

describe('the condition', () => {
  const asOneLine = (sql: string) => sql.replace(/\s+/g, ' ');
  const INDEXED = asOneLine(`tasks.id IN (${MATCHES})`);
  const first = (column: string) => `8 * (tasks.${column}_call % ${2 ** 50})`;
  const holds = (column: string) =>
    `EXISTS (SELECT 1 FROM texts WHERE texts.id BETWEEN ${first(column)} AND ${first(column)} + 7 AND texts.digest = tasks.${column} AND instr(lower(texts.text), lower(?)) > 0)`;
  const LITERAL = `(${holds('title')} OR ${holds('description')})`;

  test.each(['', ' ', '\n\t', '\u0000', '\u0001 \u0002'])(
    'is absent for a text without words: %j',
    (text) => {
      expect(searchConditions(text, SQLITE_DIALECT)).toEqual([]);
    },
  );

  test('never holds a character of the text: that travels in the parameters', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'binary' }), (text) => {
        const conditions = searchConditions(`${text} x`, SQLITE_DIALECT);
        expect(conditions.length).toBeGreaterThan(0);
        for (const { sql, params } of conditions) {
          expect([INDEXED, LITERAL]).toContain(asOneLine(sql));
          expect(params).toHaveLength(sql.split('?').length - 1);
        }
      }),
      trials('conditions', 200),
    );
  });

  test('looks at 64 words and no more', () => {
    const words = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`).join(' ');

    expect(searchConditions(words(65), SQLITE_DIALECT)).toEqual(searchConditions(words(64), SQLITE_DIALECT));
    expect(searchConditions(words(64), SQLITE_DIALECT)).not.toEqual(
      searchConditions(words(63), SQLITE_DIALECT),
    );
  });
});
