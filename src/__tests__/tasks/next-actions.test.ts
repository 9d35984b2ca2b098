import { expect } from 'vitest';
import { proves } from '../../../tests/contract/proves.ts';
import { blockedTasks, nextActions } from '../../domains/tasks/reads.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import { SQLITE_DIALECT } from '../../storage/sqlite/dialect.ts';
import { scratchFolder } from '../storage/scratch.ts';
import { openBench } from './bench.ts';

interface Asked {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** A reader that answers nothing and remembers every question. */
function listener(): Reader & { readonly asked: Asked[] } {
  const asked: Asked[] = [];
  return {
    asked,
    get: (sql, ...params) => {
      asked.push({ sql, params });
      return Promise.resolve(undefined);
    },
    all: (sql, ...params) => {
      asked.push({ sql, params });
      return Promise.resolve([]);
    },
    lists: () => Promise.reject(new Error('nobody reads lists here')),
    isPresent: () => Promise.reject(new Error('nobody holds anything here')),
    dialect: SQLITE_DIALECT,
  };
}

const TEXT_STEP =
  /^(CORRELATED SCALAR SUBQUERY \d+|SEARCH texts USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)|SEARCH erased_texts USING PRIMARY KEY \(digest=\?\))$/;

const WALKS = [
  {
    what: 'next actions of all projects',
    ask: (tx: Reader) => nextActions(tx, undefined, 20),
    walk: 'COVERING INDEX tasks_next',
  },
  {
    what: 'next actions of one',
    ask: (tx: Reader) => nextActions(tx, 'p', 20),
    walk: 'COVERING INDEX tasks_next_in_project',
  },
  {
    what: 'blocked tasks of all',
    ask: (tx: Reader) => blockedTasks(tx, undefined, 20),
    walk: 'INDEX tasks_next',
  },
  {
    what: 'blocked tasks of one',
    ask: (tx: Reader) => blockedTasks(tx, 'p', 20),
    walk: 'INDEX tasks_next_in_project',
  },
] as const;

proves(
  'tasks.next.one-query',
  'what next is one walk along an index that finished tasks are not in',
  async () => {
    const bench = await openBench(scratchFolder());
    try {
      for (let i = 0; i < 300; i += 1) {
        await bench.call('task_create', { title: `t${i}`, project: 'p', workflow: 'pipeline' });
        if (i % 3 !== 0)
          await bench.call('task_update', {
            task_id: `T-${String(i + 1).padStart(4, '0')}`,
            status: 'CANCELLED',
          });
      }

      for (const { what, ask, walk } of WALKS) {
        const ear = listener();
        await ask(ear);
        expect(ear.asked, what).toHaveLength(1);
        const [{ sql, params }] = ear.asked as [Asked];
        const plan = await bench.storage.read((tx) =>
          tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...params),
        );

        const [first, ...others] = plan.map(({ detail }) => detail);
        expect(first, what).toMatch(new RegExp(`^SEARCH tasks USING ${walk} \\(`));
        // Each text is one step from the call that it came by.
        for (const step of others) expect(step, what).toMatch(TEXT_STEP);
      }
      const held = await bench.storage.read((tx) =>
        tx.all<{ sql: string }>(
          "SELECT sql FROM sqlite_schema WHERE name LIKE 'tasks_next%' AND type = 'index'",
        ),
      );
      expect(held).toHaveLength(2);
      for (const { sql } of held) expect(sql).toContain('WHERE queue > 0');
      expect(await bench.call('task_next_actions', { limit: 100 })).toMatchObject({
        ok: true,
        data: { count: 100 },
      });
    } finally {
      await bench.close();
    }
  },
);
