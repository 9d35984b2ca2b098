import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { canonicalJson } from '../../src/integrity/canonical-json.ts';
import { openDatabase } from '../driver/database.ts';
import { battery, noPython } from './battery.ts';
import { Checker } from './checker.ts';
import { Recorder } from './recorder.ts';

const checker = noPython === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

/** What the second reader must not overlook, and a word of what it must say. */
const TAMPERINGS: Readonly<Record<string, readonly [sql: string, says: RegExp]>> = {
  'a changed task': ["UPDATE tasks SET assignee = 'other' WHERE id = 1", /T-0001: it is not as #\d+ left it/],
  'a changed number': ['UPDATE tasks SET progress = 12.25 WHERE id = 1', /T-0001: it is not as #\d+ left it/],
  'a changed counter': ['UPDATE tasks SET unmet = 3 WHERE id = 1', /T-0001: is_final, queue or unmet/],
  'a record nobody made': [
    'INSERT INTO session_records SELECT 99, session_id, task_id, kind, ref, position FROM session_records WHERE id = 1',
    /R-0099: no call wrote it/,
  ],
  'a thought that is gone': ['DELETE FROM thoughts WHERE id = 1', /Θ-0001: .* gone/],
  'a changed audit row': [
    "UPDATE actions SET text = replace(text, 'task_create', 'task_delete') WHERE position = 1",
    /#1: content_hash/,
  ],
  'a missing audit row': ['DELETE FROM actions WHERE position = 3', /#4: row 3 was due/],
  'a changed argument': ["UPDATE action_payloads SET body = '{}' WHERE position = 1", /#1: its payload/],
  'a changed text': ["UPDATE texts SET text = text || '!'", /#1: title is not the text/],
  'a cut tail': ['DELETE FROM actions WHERE position > 12', /rows were signed.*acked and lost/s],
  'a head that is gone': ['DELETE FROM log_heads', /#1 to #\d+: signed by nobody/],
  'a mark without a call': ["INSERT INTO open_calls VALUES (1, 'x')", /open_calls: .* should not be there/],
};

for (const [what, [sql, says]] of Object.entries(TAMPERINGS)) {
  battery(
    'R4',
    `the checker itself finds ${what}`,
    async (colibri) => {
      const server = await colibri.start();
      const recorder = new Recorder(server);
      await recorder.chapter('a chapter');
      await server.closeInput();
      const question = { db: colibri.dbPath, acked: recorder.acked, settled: true };
      const before = await checker?.judge(question);

      tamper(colibri.dbPath, sql);
      const after = await checker?.judge(question);

      expect(before?.findings).toEqual([]);
      expect(after?.findings.join('\n')).toMatch(says);
    },
    { unless: noPython },
  );
}

/** Whoever holds the file can drop its triggers. */
function tamper(path: string, sql: string): void {
  const db = openDatabase(path);
  const triggers = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck().all();
  for (const name of triggers) db.exec(`DROP TRIGGER ${name}`);
  db.pragma('foreign_keys = OFF');
  db.exec(sql);
  db.close();
}

const NUMBERS = [
  0, -0, 1, -1, 0.1, 12.5, 100, 1e21, 1e-6, 1e-7, 1.5e-9, 123456789012345, 2.5e22, 4.35, 1e300,
];

test.skipIf(noPython !== undefined)('both languages write every number and text alike', () => {
  const values = [...NUMBERS, { b: 'ä\u2028"\\\n\u0001', '\u{1f600}': null, '\ufb33': [true, false] }];
  const script =
    'import json, sys; from checker import canonical\nfor v in json.load(sys.stdin): print(canonical(v))';

  const { stdout } = spawnSync('python3', ['-c', script], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' },
    input: JSON.stringify(values),
    encoding: 'utf8',
  });

  expect(stdout.trimEnd().split('\n')).toEqual(values.map(canonicalJson));
});
