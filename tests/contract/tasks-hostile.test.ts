import { expect } from 'vitest';
import { findingsAt } from '../../src/__tests__/tasks/bench.ts';
import { withDatabase } from '../driver/audit-file.ts';
import { type Message, type ToolAnswer, toToolAnswer } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { type Desk, openDesk, type TaskTool } from './tasks-desk.ts';

/** Well-formed, and yet seldom brought back as it went. */
const TEXTS: Readonly<Record<string, string>> = {
  'only controls': 'x\u0001\u0002\u001b[31m\u007f',
  'line ends': 'a\r\nb\rc\nd\u0085e\u2028f\u2029g',
  nfc: '\u00e9clair',
  nfd: 'e\u0301clair',
  'right to left': '\u202eabc\u202c \u05e9\u05dc\u05d5\u05dd \u200f',
  'byte order mark': '\ufeffa\ufeff',
  'no characters': 'a\uffff\ufffe\u{1ffff}',
  replacement: '\ufffd',
  emoji: '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{1f1eb}\u{1f1f7} \u2764\ufe0f',
  'private use': '\ue000\u{f0000}',
  quotes: `"'\`\\"''`,
  'json text': '{"a":[1,null]}',
  spaces: '  leading and trailing \u00a0',
  combining: `e${'\u0301'.repeat(40)}`,
};

const INJECTIONS: readonly string[] = [
  "'",
  '"',
  '`',
  '\\',
  ';',
  '--',
  '/*',
  '*/',
  '#',
  '%',
  '_',
  '%%',
  '?',
  '?1',
  ':a',
  '@a',
  '$a',
  '[x]',
  '\\x00',
  "' OR '1'='1",
  "' OR 1=1 --",
  '" OR ""="',
  "'; DROP TABLE tasks; --",
  "'); DELETE FROM tasks; --",
  "'; UPDATE tasks SET title='x'; --",
  "' UNION SELECT 1,2,3 --",
  "'||(SELECT sql FROM sqlite_schema)||'",
  '1; PRAGMA writable_schema=1',
  "x' AND sleep(5) AND 'x'='x",
  "') OR EXISTS(SELECT 1)--",
  '1) OR (1=1',
  'NULL',
  'null',
  'undefined',
  'true',
  'NaN',
  'AND',
  'OR',
  'NOT',
  'NEAR(a b)',
  'a NOT b',
  'a*',
  '^a',
  'a:b',
  'title:a',
  '{title} : a',
  '-a',
  '+a',
  '(',
  ')',
  '((((',
  '"a',
  'a" OR "b',
  '* OR *',
  '../../etc/passwd',
  '#{7*7}',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '$(touch /tmp/owned)',
  '%s%n%x',
];

proves(
  'tasks.text',
  'R25: any well-formed text comes back as it was sent from every text field, and is found',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);

    for (const [name, text] of Object.entries(TEXTS)) {
      const id = await desk.create({ title: text, description: text, labels: [text], assignee: text });
      expect
        .soft(await desk.get(id), name)
        .toMatchObject({ title: text, description: text, labels: [text], assignee: text });
      expect.soft(await desk.listIds({ label: text }), name).toEqual([id]);
      expect.soft(await desk.listIds({ assignee: text }), name).toEqual([id]);
      expect.soft(await desk.listIds({ search: text }), name).toContain(id);
    }
    const id = await desk.create();
    await desk.move(id, 'todo', 'blocked');
    for (const [name, text] of Object.entries(TEXTS)) {
      await desk.update(id, {
        title: text,
        description: text,
        labels: [text],
        assignee: text,
        blocked_reason: text,
      });
      const shown = { title: text, description: text, labels: [text], assignee: text, blocked_reason: text };
      expect.soft(await desk.get(id), name).toMatchObject(shown);
    }
    await expectSound(colibri);
  },
);

proves('tasks.text', 'R25: 8,000 combining marks are a description like any other', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  const description = `e${'\u0301'.repeat(7_999)}`;

  const id = await desk.create({ description });

  expect((await desk.get(id)).description).toBe(description);
  expect(await desk.listIds({ search: description })).toEqual([id]);
  await expectSound(colibri);
});

proves(
  'tasks.text',
  'R25: what no store brings back is refused wherever it stands, and leaves nothing',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();

    for (const [text, complaint] of [
      ['a\ud800b', 'not well-formed Unicode'],
      ['a\udc00', 'not well-formed Unicode'],
      ['a\u0000b', 'U+0000'],
    ] as const) {
      const asText = JSON.stringify(['ok', text]);
      const attempts: [TaskTool, object, path: string][] = [
        ['task_create', { title: text, project: 'p' }, 'title'],
        ['task_create', { title: 'x', project: 'p', description: text }, 'description'],
        ['task_create', { title: 'x', project: 'p', labels: ['ok', text] }, 'labels[1]'],
        ['task_create', { title: 'x', project: 'p', labels: asText }, 'labels[1]'],
        ['task_create', { title: 'x', project: 'p', assignee: text }, 'assignee'],
        ['task_update', { task_id: 'T-0001', title: text }, 'title'],
        ['task_update', { task_id: 'T-0001', blocked_reason: text }, 'blocked_reason'],
        ['task_update', { task_id: text, progress: 1 }, 'task_id'],
        ['task_list', { search: text }, 'search'],
        ['task_list', { label: text }, 'label'],
      ];
      for (const [tool, args, path] of attempts) {
        const error = await desk.rejected(tool, args);
        expect.soft(error.message, path).toContain(`${path}: ${complaint}`);
      }
    }
    expect((await desk.list()).total_count).toBe(1);
  },
);

proves(
  'tasks.numbers',
  'R26: numbers have one form, whichever way they were written',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const written: [text: string, value: number][] = [
      ['-0', 0],
      ['0.0', 0],
      ['1.0', 1],
      ['1e2', 100],
      ['100.00', 100],
      ['1e-7', 1e-7],
      ['0.0000001', 1e-7],
      ['5e-324', 5e-324],
      ['0.1', 0.1],
      ['99.99999999999999', 99.99999999999999],
      ['33.333333333333336', 33.333333333333336],
    ];

    for (const [text, value] of written) {
      const created = await sendRaw(
        desk,
        'task_create',
        `{"title":"x","project":"p","estimate_hours":${text}}`,
      );
      const id = created.envelope?.data?.task_id as string;
      await sendRaw(desk, 'task_update', `{"task_id":"${id}","progress":${text}}`);
      const task = await desk.get(id);
      expect.soft([task.estimate_hours, task.progress], text).toEqual([value, value]);
      expect.soft(Object.is(task.progress, -0), text).toBe(false);
    }
    for (const text of ['1e308', '1e309', '9007199254740993', '-1e-7', '1000.0000001']) {
      const answer = await sendRaw(
        desk,
        'task_create',
        `{"title":"x","project":"p","estimate_hours":${text}}`,
      );
      expect.soft(answer.error?.code, text).toBe('INVALID_PARAMS');
      expect.soft(answer.error?.message, text).toContain('estimate_hours');
    }
    for (const text of ['9007199254740993', '1e308', '1.5', '1e-7']) {
      const answer = await sendRaw(desk, 'task_list', `{"offset":${text}}`);
      expect.soft(answer.error?.message, text).toContain('offset');
    }
    await expectSound(colibri);
  },
);

proves(
  'tasks.names',
  'R27: names that live on prototypes are refused and reach no prototype',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();

    for (const name of [
      '__proto__',
      'constructor',
      'prototype',
      'toString',
      'hasOwnProperty',
      '__defineGetter__',
    ]) {
      for (const [tool, rest] of [
        ['task_create', '"title":"x","project":"p"'],
        ['task_update', '"task_id":"T-0001","progress":1'],
        ['task_get', '"task_id":"T-0001"'],
        ['task_list', '"limit":1'],
        ['task_next_actions', '"limit":1'],
      ] as const) {
        // Right under `arguments` it is the protocol layer's to refuse; hostile.test.ts looks at that.
        if (name === '__proto__') continue;
        const top = await sendRaw(desk, tool, `{${rest},"${name}":{"polluted":true}}`);
        expect.soft(top.error?.code, `${tool} ${name}`).toBe('INVALID_PARAMS');
        expect.soft(top.error?.message, `${tool} ${name}`).toContain(name);
      }
      const deep = await sendRaw(desk, 'task_create', `{"title":"x","project":"p","labels":[{"${name}":1}]}`);
      expect.soft(deep.error?.code, name).toBe('INVALID_PARAMS');
      const asText = await sendRaw(
        desk,
        'task_create',
        `{"title":"x","project":"p","labels":"[{\\"${name}\\":1}]"}`,
      );
      expect.soft(asText.error?.code, name).toBe('INVALID_PARAMS');
      const id = await desk.create({ title: name, labels: [name], assignee: name });
      expect.soft(await desk.get(id), name).toMatchObject({ title: name, labels: [name], assignee: name });
    }
    await expectSound(colibri);
  },
);

proves(
  ['tasks.injection', 'tasks.list.search-safe'],
  `R28: ${INJECTIONS.length} injections into every text field change nothing but that field`,
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const bystander = await desk.create({ title: 'bystander', labels: ['safe'], assignee: 'nobody' });
    const before = await desk.get(bystander);
    const schemaBefore = schemaOf(colibri);
    let created = 1;

    for (const text of INJECTIONS) {
      const id = await desk.create({ title: text, description: text, labels: [text], assignee: text });
      created += 1;
      await desk.update(id, {
        title: text,
        description: text,
        labels: [text, 'x'],
        assignee: text,
        blocked_reason: text,
      });
      expect
        .soft(await desk.get(id), text)
        .toMatchObject({ title: text, description: text, labels: [text, 'x'], assignee: text });

      expect.soft(await desk.listIds({ label: text }), text).toEqual([id]);
      expect.soft(await desk.listIds({ assignee: text }), text).toEqual([id]);
      const found = await desk.listIds({ search: text, limit: 500 });
      expect.soft(found, text).toContain(id);
      expect.soft(found, text).not.toContain(bystander);
      await expectRefusedEverywhere(desk, text);
    }

    expect(await desk.get(bystander)).toEqual(before);
    expect((await desk.list({ limit: 1 })).total_count).toBe(created);
    expect(schemaOf(colibri)).toEqual(schemaBefore);
    await expectSound(colibri);
  },
);

/** Fields that take no free text: an id that is none, an unknown project or sort, a date that is none. */
async function expectRefusedEverywhere(desk: Desk, text: string): Promise<void> {
  const codes: Record<string, string | undefined> = {
    task_id: (await desk.server.call('task_get', { task_id: text })).error?.code,
    parent_id: (await desk.server.call('task_create', { title: 'x', project: 'p', parent_id: text })).error
      ?.code,
    depends_on: (await desk.server.call('task_update', { task_id: 'T-0001', depends_on: [text] })).error
      ?.code,
    project: (await desk.server.call('task_create', { title: 'x', project: `${text}!` })).error?.code,
    sort_by: (await desk.server.call('task_list', { sort_by: text })).error?.code,
    sort_order: (await desk.server.call('task_list', { sort_order: text })).error?.code,
    status: (await desk.server.call('task_list', { status: [text] })).error?.code,
    created_after: (await desk.server.call('task_list', { created_after: text })).error?.code,
  };
  for (const [field, code] of Object.entries(codes)) {
    expect.soft(['INVALID_PARAMS', 'ERR_TASK_NOT_FOUND'], `${field} ${text}: ${code}`).toContain(code);
  }
}

/** Arguments exactly as written, down to the last digit. */
async function sendRaw(desk: Desk, tool: TaskTool, args: string): Promise<ToolAnswer> {
  rawId += 1;
  const id = `raw-${rawId}`;
  const line = `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`;
  const message: Message = await desk.server.sendLine(line, id);
  return toToolAnswer(message);
}

let rawId = 0;

function schemaOf(colibri: Playground): unknown {
  return withDatabase(colibri.dbPath, (db) =>
    db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all(),
  );
}

async function expectSound(colibri: Playground): Promise<void> {
  expect(colibri.readAudit().findings).toEqual([]);
  expect(await findingsAt(colibri.dbPath)).toEqual([]);
}
