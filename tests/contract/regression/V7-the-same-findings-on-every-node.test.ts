import { copyFileSync } from 'node:fs';
import { expect } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { everyNode } from '../../driver/other-nodes.ts';
import { type LogDesk, proves, type Verdict } from '../log-desk.ts';

// Node 22 cut texts at U+0000 and found nothing; Node 24 would not read an integer beyond 2^53 at all.

const { nodes, missing } = everyNode();

/** What another program may have stored, each in several tables at once. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  'U+0000': everywhere((column) => `${column} || char(0) || 'x'`),
  'lone surrogates': everywhere((column) => `${column} || CAST(x'eda080' AS TEXT)`),
  'bytes that are not UTF-8': [
    ...everywhere((column) => `${column} || CAST(x'ff00c3' AS TEXT)`),
    `UPDATE actions SET text = replace(text, '"actor":"', '"actor":"' || CAST(x'ff' AS TEXT)) WHERE position = 4`,
  ],
  'integers beyond 2^53': [
    'UPDATE tasks SET progress = 9007199254740993 WHERE id = 1',
    'UPDATE thoughts SET chain_position = 9223372036854775807 WHERE id = 2',
    'UPDATE session_records SET id = -9223372036854775808 WHERE id = 1',
    'UPDATE task_calls SET position = 9007199254740995 WHERE position = (SELECT max(position) FROM task_calls)',
    'INSERT INTO actions (position, text, content, chain) SELECT 9007199254740997, text, content, chain FROM actions WHERE position = 1',
    'UPDATE action_payloads SET position = 9007199254740999 WHERE position = 5',
  ],
};

function everywhere(changed: (column: string) => string): string[] {
  return [
    ['texts', 'text', 'id = 8'],
    ['tasks', 'project', 'id = 1'],
    ['thoughts', 'recorded_by', 'id = 2'],
    ['sessions', 'auditor_id', 'id = 1'],
    ['log', 'origin', '1'],
    ['action_payloads', 'body', 'position = 3'],
    ['log_heads', 'checkpoint', '1'],
    ['task_labels', 'label', '1'],
  ].map(([table, column = '', where]) => `UPDATE ${table} SET ${column} = ${changed(column)} WHERE ${where}`);
}

proves(
  ['runtime.same-findings', 'runtime.quiet'],
  `V7, S6: what another program stored is found alike on Node 20, 22 and 24, and nothing else is printed${missing}`,
  async (desk) => {
    const server = await desk.colibri.start();
    await desk.ok(server, 'task_create', { title: 'Label it', project: 'demo', labels: ['one'] });
    await server.closeInput();
    await desk.work();

    for (const [what, changes] of Object.entries(CHANGES)) {
      const path = desk.colibri.path(`${what}.db`);
      copyFileSync(desk.dbPath, path);
      desk.tamper((db) => {
        db.exec('PRAGMA ignore_check_constraints = ON');
        for (const sql of changes) {
          db.exec(sql);
          expect(db.prepare('SELECT changes()').pluck().get(), sql).toBe(1);
        }
      }, path);

      const verdicts = await Promise.all([...nodes.values()].map((node) => verdictOn(desk, node, path)));

      expect(verdicts[0]?.findings.length, what).toBeGreaterThanOrEqual(5);
      for (const verdict of verdicts) expect(verdict, what).toEqual(verdicts[0]);
    }
  },
);

async function verdictOn(desk: LogDesk, node: string, path: string): Promise<Verdict> {
  const { stdout, stderr, code } = await runColibri(desk.colibri, ['verify', path, '--json'], { node });
  expect([stderr, code]).toEqual(['', 1]);
  return JSON.parse(stdout) as Verdict;
}
