import { expect, test } from 'vitest';
import { COPIED } from '../../log/copy.ts';
import { openStorage } from '../../storage/open.ts';

/** Kept by triggers, by an engine for itself, or computed. */
const MADE = ['task_labels', 'task_dependencies', 'audit_rows', 'task_terms', 'urgency'];

test('a transfer copies every table and every column that is not made by the engine', async () => {
  const storage = await openStorage({ dbPath: ':memory:' }, {});
  const stored = await storage.read((tx) =>
    tx.all<{ name: string; column: string }>(
      `SELECT t.name, c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE 'task_words%'`,
    ),
  );
  await storage.close();

  const due = stored.filter(({ name, column }) => !MADE.includes(name) && !MADE.includes(column));
  const copied = COPIED.flatMap(({ name, columns }) => columns.map((column) => `${name}.${column}`));
  expect(copied.sort()).toEqual(due.map(({ name, column }) => `${name}.${column}`).sort());
});
