import { TASKS, THOUGHTS } from '../../../src/log/tables.ts';
import type { ForgedLog } from '../forge.ts';
import * as legal from '../legal.ts';
import { type Forgery, forbidden, refusable, row } from './forgery.ts';

// Lies about what the owner has erased: what is gone, what is still there, and whose it was.

const strange = (log: ForgedLog) => forbidden(log.last, 'digests');
const titleOf = (log: ForgedLog, task: number) => String(log.state(TASKS, task).title);
const contentOf = (log: ForgedLog, thought: number) => String(log.state(THOUGHTS, thought).content);

/** An erasure of T-0013, whose only text is its title. */
function erases(
  id: string,
  change: (log: ForgedLog) => Parameters<typeof legal.erase>[3],
  found: (log: ForgedLog) => ReturnType<Forgery['forge']>,
  more: Partial<Forgery> = {},
): Forgery {
  return {
    id: `erasure: ${id}`,
    holds: 'everywhere',
    forge(log) {
      legal.erase(log, 'T-0013', 'T-0013', change(log));
      return found(log);
    },
    ...more,
  };
}

export const ERASURE_FORGERIES: readonly Forgery[] = [
  erases(
    'the text is still there',
    () => ({ gone: [] }),
    (log) => ({ kind: 'stray', record: titleOf(log, 13), position: log.last.fields.position }),
    { shownBy: 'T-0013' },
  ),
  erases(
    'more is gone than it says',
    (log) => ({ digests: [titleOf(log, 13)], gone: [titleOf(log, 13), titleOf(log, 8)] }),
    (log) =>
      row('missing', log.exit('task_create', 'ok', { title: titleOf(log, 8) }).fields.sequence_no, 'title'),
    { shownBy: 'T-0008' },
  ),
  erases('the title of another task', (log) => ({ digests: [titleOf(log, 8)] }), strange, {
    shownBy: 'T-0008',
  }),
  erases('a thought goes with a task', (log) => ({ digests: [contentOf(log, 1)] }), strange),
  erases(
    'a text that no call carried',
    (log) => ({ digests: [titleOf(log, 13), 'a'.repeat(64)], gone: [titleOf(log, 13)] }),
    strange,
  ),
  erases(
    'one text twice',
    (log) => ({ digests: [titleOf(log, 13), titleOf(log, 13)], gone: [titleOf(log, 13)] }),
    strange,
  ),
  erases(
    'nothing',
    () => ({ digests: [] }),
    (log) => refusable(log.last),
  ),
  erases(
    'it answers for another record',
    () => ({ result: { record: 'T-0001' } }),
    (log) => forbidden(log.last, 'record'),
  ),
  erases(
    'by a client',
    () => ({ source: 'mcp' as const }),
    (log) => row('forbidden', log.last.fields.sequence_no, 'source'),
    { shownBy: 'T-0013' },
  ),
  {
    id: 'erasure: a second time',
    holds: 'everywhere',
    forge(log) {
      const digests = legal.textsOf(log, 'T-0013', 'T-0013');
      legal.erase(log, 'T-0013', 'T-0013');
      legal.erase(log, 'T-0013', 'T-0013', { digests, gone: [] });
      log.edit((db) => db.exec('UPDATE erased_texts SET position = position + 2'));
      return strange(log);
    },
  },
  {
    id: 'erasure: before the call that carried it',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.erase(log, 'T-0013', 'T-0013', { digests: ['a'.repeat(64)], gone: [] });
      legal.update(log, 13, { title: 'Later' });
      const title = titleOf(log, 13);
      log.takeAway(title);
      Object.assign(log.resultOf(exit), { digests: [title] });
      return forbidden(exit, 'digests');
    },
  },
  {
    id: 'erasure: why the owner did something',
    holds: 'everywhere',
    forge(log) {
      const { reason } = log.argsOf(legal.adopt(log));
      const act = log.last.fields.sequence_no;
      legal.erase(log, `#${act}`, undefined, { digests: [String(reason)] });
      return strange(log);
    },
  },
  {
    id: 'erasure: a call that wrote a record, by its row',
    holds: 'everywhere',
    forge(log) {
      const call = log.exit('task_create', 'ok', { title: titleOf(log, 13) }).fields.sequence_no;
      legal.erase(log, `#${call}`, undefined, { digests: [titleOf(log, 13)] });
      return strange(log);
    },
  },
  {
    id: 'derived: erased_texts names a text that nobody erased',
    holds: 'database',
    isBesideRows: true,
    forge(log) {
      log.edit((db) => db.exec(`INSERT INTO erased_texts VALUES ('${'b'.repeat(64)}', 1, 2)`));
      return { kind: 'stray', record: 'b'.repeat(16) };
    },
  },
  {
    id: 'derived: erased_texts lacks a text',
    holds: 'database',
    isBesideRows: true,
    forge(log) {
      legal.erase(log, 'T-0013', 'T-0013');
      log.edit((db) => db.exec('DELETE FROM erased_texts'));
      return { kind: 'missing', record: titleOf(log, 13).slice(0, 16) };
    },
  },
  {
    id: 'derived: erased_texts has another row and task',
    holds: 'database',
    isBesideRows: true,
    forge(log) {
      legal.erase(log, 'T-0013', 'T-0013');
      log.edit((db) => db.exec('UPDATE erased_texts SET position = 2, task_id = 1'));
      return { kind: 'altered', record: titleOf(log, 13).slice(0, 16), columns: ['position', 'task_id'] };
    },
  },
];
