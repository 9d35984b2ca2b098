import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { Bench, unnoticed } from '../tamper/bench.ts';
import { rowTamperings } from '../tamper/changes.ts';
import { findingsAt } from '../tamper/copies.ts';
import { tablesOfSchema, triggersOfSchema, WORD_PAGES } from '../tamper/schema.ts';
import { proving } from './proves.ts';

const PAGE_BYTES = 4_096;
const TABLES = tablesOfSchema();
const WHOLE = TABLES.filter(({ name }) => !WORD_PAGES.includes(name));
let bench: Bench;
let tried = 0;

beforeAll(async () => {
  bench = await Bench.open();
});

afterAll(async () => {
  console.error(`R19: ${tried} changes of rows tried in ${TABLES.length} tables`);
  await bench.close();
});

test.each(WHOLE)(
  proving(
    ['detect.deleted', 'detect.inserted', 'detect.swapped', 'detect.duplicated', 'detect.names'],
    'R19: a row of $name that is deleted, added, duplicated, swapped or renumbered is found, with table and record',
  ),
  async (table) => {
    const tamperings = rowTamperings(table, bench.rows(table));

    const missed = await unnoticed(table, tamperings, (tampering) => bench.tamper(table, tampering));

    tried += tamperings.length;
    expect(missed).toEqual([]);
  },
  300_000,
);

describe('R19: whoever holds the file and knows the format', () => {
  test.each([
    [
      'moves a character from the salt to the body, which leaves the digest as it was',
      'action_payloads',
      `UPDATE action_payloads SET body = substr(salt, 32) || body, salt = substr(salt, 1, 31) WHERE position = 1`,
      '#1',
    ],
    [
      'writes other bytes that read as the same text',
      'texts',
      `UPDATE texts SET text = CAST(x'62657461209f' AS TEXT) WHERE text = 'beta ' || char(65533)`,
      '#1',
    ],
    [
      'gives the word index a setting',
      'task_words_config',
      `INSERT INTO task_words_config VALUES ('secure-delete', 1)`,
      undefined,
    ],
  ])('and %s is found', async (_, name, sql, record) => {
    const findings = await bench.copies.after((db) => db.exec(sql));

    expect(findings).toContainEqual(
      expect.objectContaining({ table: name, ...(record !== undefined && { record }) }),
    );
  });
});

describe('R19: whoever knows where one audit row ends and the next begins', () => {
  const ROWS = 'WHERE position IN (100, 101)';
  const COLUMNS = [
    { column: 'text', type: 'TEXT', other: 'BLOB', separator: 'char(10)', unit: 'character' },
    { column: 'content', type: 'BLOB', other: 'TEXT', separator: `''`, unit: 'byte' },
    { column: 'chain', type: 'BLOB', other: 'TEXT', separator: `''`, unit: 'byte' },
  ];

  test.each([
    ...COLUMNS.flatMap(({ column, type, other, separator, unit }): [what: string, sql: string][] => [
      [
        `moves a ${unit} of ${column} to the next row`,
        `UPDATE actions SET ${column} = CAST((SELECT substr(${column}, -1) FROM actions WHERE position = 100) || ${column} AS ${type})
         WHERE position = 101;
         UPDATE actions SET ${column} = substr(${column}, 1, length(${column}) - 1) WHERE position = 100`,
      ],
      ...['NULL', `CAST('' AS ${type})`].map((nothing): [what: string, sql: string] => [
        `puts ${column} of two rows into the first and ${nothing} into the second`,
        `UPDATE actions SET ${column} = CAST((SELECT group_concat(${column}, ${separator}) FROM actions ${ROWS}) AS ${type})
         WHERE position = 100;
         UPDATE actions SET ${column} = ${nothing} WHERE position = 101`,
      ]),
      [
        `swaps ${column} with the next row`,
        `UPDATE actions SET ${column} = iif(position = 100, b, a) FROM
         (SELECT (SELECT ${column} FROM actions WHERE position = 100) AS a, (SELECT ${column} FROM actions WHERE position = 101) AS b) ${ROWS}`,
      ],
      [
        `writes ${column} as ${other}`,
        `UPDATE actions SET ${column} = CAST(${column} AS ${other}) WHERE position = 100`,
      ],
    ]),
    [
      'writes text in characters that end in the same byte',
      `UPDATE actions SET text = replace(text, 'a', char(353)) WHERE position = 256`,
    ],
    ...['content', 'chain'].map((column): [what: string, sql: string] => [
      `writes ${column} as its 64 hex digits`,
      `UPDATE actions SET ${column} = lower(hex(${column})) WHERE position = 256`,
    ]),
  ])('and %s is found, with the row', async (_, sql) => {
    const findings = await bench.copies.afterLifting('actions', (db) => db.exec(sql));

    const rows = findings.filter(({ table }) => table === 'actions').map(({ record }) => record);
    expect(['#100', '#101', '#256']).toContain(rows[0]);
  });
});

describe('the schema', () => {
  const cases: [what: string, sql: string, name: string][] = [
    ...triggersOfSchema().map((name): [string, string, string] => [
      `the trigger ${name} is dropped`,
      `DROP TRIGGER ${name}`,
      name,
    ]),
    ['a trigger is added', 'CREATE TRIGGER spy AFTER INSERT ON tasks BEGIN SELECT 1; END', 'spy'],
    ['a table is added', 'CREATE TABLE spy (x)', 'spy'],
    ['an index is added', 'CREATE INDEX spy ON tasks (title)', 'spy'],
    ['an index is dropped', 'DROP INDEX tasks_by_parent', 'tasks_by_parent'],
    ['a view is added', 'CREATE VIEW spy AS SELECT * FROM tasks', 'spy'],
    ['a column is added', 'ALTER TABLE sessions ADD COLUMN spy TEXT', 'sessions'],
    ['a table is dropped', 'DROP TABLE open_calls', 'open_calls'],
    [
      'a trigger is changed',
      `DROP TRIGGER tasks_no_delete; CREATE TRIGGER tasks_no_delete BEFORE DELETE ON tasks BEGIN SELECT 1; END`,
      'tasks_no_delete',
    ],
    [
      'a trigger hides under a name of SQLite',
      `PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_stat9', 'tasks', 0,
       'CREATE TRIGGER sqlite_stat9 AFTER INSERT ON tasks BEGIN SELECT 1; END')`,
      'sqlite_stat9',
    ],
    [
      'a definition is reworded',
      `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || ' ' WHERE name = 'tasks'`,
      'tasks',
    ],
    [
      'two tables have the same pages',
      `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage =
       (SELECT rootpage FROM sqlite_schema WHERE name = 'log_blocks') WHERE name = 'open_calls'`,
      'log_blocks, open_calls',
    ],
  ];

  test.each(cases)(
    proving('detect.column', 'R18: %s, and the file is refused by that name'),
    async (_, sql, name) => {
      await expect(bench.copies.afterScript(sql)).rejects.toThrow(name);
    },
  );

  test(
    proving('detect.column', 'R18: the list of free pages names one in use, and that is found'),
    async () => {
      const { bytes } = bench.copies;
      const pages = bytes.length / PAGE_BYTES;
      const trunk = Buffer.alloc(PAGE_BYTES);
      const root = "SELECT rootpage FROM sqlite_schema WHERE name = 'thoughts'";
      const inUse = await bench.copies.ofBytes(bytes, (path) =>
        withDatabase(path, (db) => Number(db.prepare(root).pluck().get())),
      );
      for (const [i, word] of [bytes.readUInt32BE(32), 1, inUse].entries()) trunk.writeUInt32BE(word, 4 * i);
      const forged = Buffer.concat([bytes, trunk]);
      for (const [at, value] of [
        [28, pages + 1],
        [32, pages + 1],
        [36, bytes.readUInt32BE(36) + 2],
      ] as const)
        forged.writeUInt32BE(value, at);

      const findings = await bench.copies.ofBytes(forged, findingsAt);

      expect(findings.map(({ table }) => table)).toEqual(['sqlite_schema']);
      expect(findings[0]?.message).toMatch(/SQLite says of the file: /);
    },
  );

  test.each([
    ['lowered', 'PRAGMA user_version = 1', /before 0\.2\.0/],
    ['raised', 'PRAGMA user_version = 1000', /newer/],
  ])(proving('detect.column', 'R18: the version is %s, and the file is refused'), async (_, sql, reason) => {
    await expect(bench.copies.afterScript(sql)).rejects.toThrow(reason);
  });
});
