import { saltedDigest, sha256Hex } from '../../../src/integrity/digest.ts';
import { formatId, STATE_TABLES, type StateTable, TASKS } from '../../../src/log/tables.ts';
import { openDatabase } from '../../driver/database.ts';
import { type ForgedLog, newSalt } from '../forge.ts';
import * as legal from '../legal.ts';
import type { Found } from '../sources.ts';
import { type Forgery, forbidden, foreign, row, strayText } from './forgery.ts';

/** The first row of `processes`. */
const FIRST_PROCESS =
  '(process, actor) = (SELECT process, actor FROM processes ORDER BY process, actor LIMIT 1)';

// Rows of state and texts changed by somebody who has the file and nothing else; and derived tables.

type Edit = Parameters<ForgedLog['edit']>[0];

const OTHER_HASH = Buffer.from(sha256Hex('x'), 'hex');

function edited(
  id: string,
  holds: Forgery['holds'],
  change: Edit,
  finds: Found | readonly Found[] | ((log: ForgedLog) => Found | readonly Found[]),
  more: Partial<Forgery> = {},
): Forgery {
  return {
    id,
    holds,
    forge(log) {
      log.edit(change);
      return typeof finds === 'function' ? finds(log) : finds;
    },
    ...more,
  };
}

/** A change of what is worked out from the rows. */
function derived(
  what: string,
  change: Edit,
  finds: Parameters<typeof edited>[3],
  more: Pick<Forgery, 'onlyInFile'> = {},
): Forgery {
  return { ...edited(`derived: ${what}`, 'database', change, finds, { isBesideRows: true }), ...more };
}

/** Each column of each table of state, changed in the row that was written last. */
export const COLUMN_FORGERIES: readonly Forgery[] = STATE_TABLES.flatMap((table) =>
  table.facts
    .filter((column) => column !== 'id')
    .map(
      (column): Forgery => ({
        id: `state: ${table.name}.${column} is changed`,
        holds: 'everywhere',
        forge(log) {
          const id = rowToChange(log, table, column);
          const { position } = log.state(table, id);
          log.edit((db) => {
            const before = db.prepare(`SELECT ${column} FROM ${table.name} WHERE id = ?`).pluck().get(id);
            const after =
              typeof before === 'number'
                ? before + 1
                : before === null && NUMBERS.includes(column)
                  ? 5
                  : `${before ?? ''}x`;
            db.prepare(`UPDATE ${table.name} SET ${column} = ? WHERE id = ?`).run(after, id);
          });
          return {
            kind: 'altered',
            record: formatId(table, id),
            columns: [column],
            position: Number(position),
          };
        },
      }),
    ),
);

const NUMBERS = [
  'blocked_reason_call',
  'estimate_hours',
  'parent_id',
  'session_id',
  'sealed_task_id',
  'tree_depth',
  'leaf_count',
];

function rowToChange(log: ForgedLog, table: StateTable, column: string): number {
  const count = log.nextId(table) - 1;
  for (let id = count; id > 0; id -= 1) if (log.state(table, id)[column] !== null) return id;
  return count;
}

export const STATE_FORGERIES: readonly Forgery[] = [
  edited(
    'state: a task is deleted',
    'everywhere',
    (db) => {
      db.exec('DELETE FROM tasks WHERE id = 8; DELETE FROM task_words WHERE rowid = 8');
    },
    (log) => ({ kind: 'missing', record: 'T-0008', position: Number(log.state(TASKS, 8).position) }),
  ),
  edited(
    'state: a task that no call made',
    'everywhere',
    (db) => {
      const columns = TASKS.facts.filter((name) => !['id', 'sequence'].includes(name)).join(', ');
      db.exec(
        `INSERT INTO tasks (id, sequence, ${columns}, unmet, is_final, queue) SELECT 77, 77, ${columns}, 0, 0, 0 FROM tasks WHERE id = 8`,
      );
      db.exec(
        'INSERT INTO task_words (rowid, title, description) SELECT 77, title, description FROM task_words WHERE rowid = 8',
      );
    },
    { kind: 'unexplained', record: 'T-0077', columns: ['id'] },
  ),
  edited(
    'state: a thought is deleted',
    'everywhere',
    (db) => void db.exec('DELETE FROM thoughts WHERE id = 2'),
    (log) => ({
      ...{
        kind: 'missing',
        record: 'Θ-0002',
        position: Number(log.versions(THOUGHTS_TABLE, 2)[0]?.position),
      },
    }),
  ),
  edited(
    'texts: a text is changed',
    'everywhere',
    (db) => {
      db.prepare(
        "UPDATE texts SET text = 'Another' WHERE digest = (SELECT title FROM tasks WHERE id = 13)",
      ).run();
      db.prepare("UPDATE task_words SET title = 'Another' WHERE rowid = 13").run();
    },
    (log) => textFinding(log, 'altered', 13, 'salt', 'text'),
    { shownBy: 'T-0013' },
  ),
  edited(
    'texts: a salt is changed',
    'everywhere',
    (db) => {
      db.prepare('UPDATE texts SET salt = ? WHERE digest = (SELECT title FROM tasks WHERE id = 13)').run(
        newSalt(),
      );
    },
    (log) => textFinding(log, 'altered', 13, 'salt', 'text'),
  ),
  edited(
    'texts: a text is gone',
    'everywhere',
    (db) => {
      db.prepare('DELETE FROM texts WHERE digest = (SELECT title FROM tasks WHERE id = 13)').run();
      db.prepare("UPDATE task_words SET title = '' WHERE rowid = 13").run();
    },
    (log) => textFinding(log, 'missing', 13, 'title'),
  ),
  ...(
    [
      ['another id of its call', 'id + 1'],
      ['an id of another call', 'id + 8'],
      ['an id of no call', '-id'],
    ] as const
  ).map(([where, id]) =>
    edited(
      `texts: a text lies under ${where}`,
      'everywhere',
      (db) => {
        db.exec(`UPDATE texts SET id = ${id} WHERE digest = (SELECT title FROM tasks WHERE id = 13)`);
        db.prepare("UPDATE task_words SET title = '' WHERE rowid = 13").run();
      },
      (log) => textFinding(log, 'missing', 13, 'title'),
    ),
  ),
  edited(
    'texts: a digest is changed',
    'everywhere',
    (db) => {
      db.exec(
        `UPDATE texts SET digest = '${'a'.repeat(64)}' WHERE digest = (SELECT title FROM tasks WHERE id = 13)`,
      );
    },
    (log) => textFinding(log, 'altered', 13, 'digest'),
  ),
  edited(
    'texts: a text is there twice',
    'everywhere',
    (db) => {
      db.exec(`INSERT INTO texts SELECT id + 4, digest, salt, text FROM texts
        WHERE digest = (SELECT title FROM tasks WHERE id = 13)`);
    },
    (log) => strayText(String(log.state(TASKS, 13).title)),
  ),
  {
    id: 'texts: a text that no call speaks of',
    holds: 'everywhere',
    forge(log) {
      return strayText(log.addText('Nobody said this.'));
    },
  },
  {
    id: 'V5 texts: the salt takes over the text',
    holds: 'everywhere',
    shownBy: 'T-0013',
    forge(log) {
      const title = String(log.state(TASKS, 13).title);
      const kept = log.texts.get(title);
      if (kept === undefined) throw new Error('no text');
      log.texts.set(title, { salt: kept.salt + Buffer.from(kept.text).toString('hex'), text: '' });
      return textFinding(log, 'altered', 13, 'salt');
    },
  },
  {
    id: 'texts: a different salt in the row than in the call',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.create(log);
      const write = log.written(exit, TASKS);
      const text = log.texts.get(String(write.row.title))?.text ?? '';
      const salt = newSalt();
      const digest = saltedDigest(salt, text);
      log.texts.set(digest, { salt, text });
      write.row.title = digest;
      return [forbidden(exit, 'title'), strayText(digest)];
    },
  },
  {
    id: 'texts: two calls name one text',
    holds: 'everywhere',
    forge(log) {
      const { second, own } = nameTwice(log);
      log.texts.delete(own);
      return row('malformed', log.enterOf(second));
    },
  },
  {
    id: 'texts: two calls name one text, and one is named by none',
    holds: 'everywhere',
    forge(log) {
      const { second, own } = nameTwice(log);
      return [row('malformed', log.enterOf(second)), strayText(own)];
    },
  },
  {
    id: 'texts: a text stands in the arguments instead of its digest',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.create(log);
      const title = String(log.written(exit, TASKS).row.title);
      log.texts.delete(title);
      Object.assign(log.argsOf(exit), { title: 'Planted' });
      log.written(exit, TASKS).row.title = 'Planted';
      return row('malformed', log.enterOf(exit), 'title');
    },
  },
  {
    id: 'texts: a list that is not canonical JSON',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.think(log, 8, { tests_run: '[ "a" ]' });
      return row('malformed', log.enterOf(exit), 'tests_run');
    },
  },
];

/** Two tasks under one title: the second call names the text of the first, and its own is left over. */
function nameTwice(log: ForgedLog) {
  const [first, second] = [legal.create(log), legal.create(log)];
  const [title, own] = [first, second].map((exit) => String(log.written(exit, TASKS).row.title));
  Object.assign(log.argsOf(second), { title });
  log.written(second, TASKS).row.title = title ?? '';
  return { second, own: own ?? '' };
}

const THOUGHTS_TABLE: StateTable = STATE_TABLES.find(({ name }) => name === 'thoughts') ?? TASKS;

function textFinding(log: ForgedLog, kind: Found['kind'], task: number, ...columns: string[]): Found {
  const exit = log.exits('task_create').find((one) => log.written(one, TASKS).row.id === task);
  const position = exit?.fields.sequence_no ?? 0;
  return { kind, record: `#${position}`, ...(columns.length > 0 && { columns }), position };
}

/** Tables and columns that only a database has, each worked out from the rest. */
export const DERIVED_FORGERIES: readonly Forgery[] = [
  derived('unmet', (db) => void db.exec('UPDATE tasks SET unmet = 5 WHERE id = 10'), {
    kind: 'altered',
    record: 'T-0010',
    columns: ['unmet'],
  }),
  derived('is_final', (db) => void db.exec('UPDATE tasks SET is_final = 1 WHERE id = 8'), {
    kind: 'altered',
    record: 'T-0008',
    columns: ['is_final'],
  }),
  derived('queue', (db) => void db.exec('UPDATE tasks SET queue = 2 WHERE id = 8'), {
    kind: 'altered',
    record: 'T-0008',
    columns: ['queue'],
  }),
  derived(
    'a label is gone',
    (db) => void db.exec("DELETE FROM task_labels WHERE task_id = 11 AND label = 'c'"),
    { kind: 'index', record: 'T-0011' },
  ),
  {
    id: 'derived: a label of bytes that are not UTF-8',
    holds: 'database',
    onlyInFile: 'a server keeps no text that is not UTF-8',
    isBesideRows: true,
    forge(log) {
      const exit = legal.create(log, { labels: ['odd \ufffd'] });
      const id = Number(log.written(exit, TASKS).row.id);
      log.edit((db) =>
        db.prepare("UPDATE task_labels SET label = CAST(x'6f646420ff' AS TEXT) WHERE task_id = ?").run(id),
      );
      return { kind: 'index', record: formatId(TASKS, id) };
    },
  },
  derived('a label too many', (db) => void db.exec("INSERT INTO task_labels VALUES ('z', 8)"), {
    kind: 'index',
    record: 'T-0008',
  }),
  derived('a dependency is gone', (db) => void db.exec('DELETE FROM task_dependencies WHERE task_id = 10'), {
    kind: 'index',
    record: 'T-0010',
  }),
  derived('a dependency too many', (db) => void db.exec('INSERT INTO task_dependencies VALUES (8, 2)'), {
    kind: 'index',
    record: 'T-0008',
  }),
  derived(
    'a word that no task has',
    (db) => void db.exec("UPDATE task_words SET title = 'elsewhere' WHERE rowid = 8"),
    { kind: 'index', record: 'T-0008' },
    { onlyInFile: 'the index of words is another one on a server' },
  ),
  derived('an open call that is none', (db) => void db.exec("INSERT INTO open_calls VALUES (3, 'x')"), {
    kind: 'stray',
    record: '#3',
  }),
  {
    id: 'derived: an open call is not noted',
    holds: 'database',
    isBesideRows: true,
    forge(log) {
      log.begin({ tool: 'task_update', actor: 'alice', args: { task_id: 'T-0008', progress: 5 } });
      log.edit((db) => db.exec('DELETE FROM open_calls'));
      return row('missing', log.last);
    },
  },
  derived(
    'a process was seen later',
    (db) =>
      void db.exec(`UPDATE processes SET last_seen = '2026-12-01T00:00:00.000Z' WHERE ${FIRST_PROCESS}`),
    (log) => ({ kind: 'altered', record: firstProcess(log), columns: ['last_seen'] }),
  ),
  derived(
    'a process is gone',
    (db) => void db.exec(`DELETE FROM processes WHERE ${FIRST_PROCESS}`),
    (log) => ({ kind: 'missing', record: firstProcess(log) }),
  ),
  derived(
    'a call of a task is gone',
    (db) =>
      void db.exec(
        'DELETE FROM task_calls WHERE task_id = 11 AND position = (SELECT max(position) FROM task_calls WHERE task_id = 11)',
      ),
    { kind: 'missing', record: 'T-0011' },
  ),
  derived('a call too many of a task', (db) => void db.exec('INSERT INTO task_calls VALUES (8, 3)'), {
    kind: 'stray',
    record: 'T-0008',
  }),
  derived('a root of a block', (db) => void db.exec(`UPDATE log_blocks SET hash = '${sha256Hex('x')}'`), {
    kind: 'altered',
    record: 'block 0',
    columns: ['hash'],
    position: 256,
  }),
  derived('a root of a block is gone', (db) => void db.exec('DELETE FROM log_blocks'), {
    kind: 'missing',
    record: 'block 0',
    position: 256,
  }),
  edited(
    'actions: a content hash',
    'database',
    (db) => void db.prepare('UPDATE actions SET content = ? WHERE position = 9').run(OTHER_HASH),
    row('altered', 9, 'content_hash'),
  ),
  edited(
    'actions: a chain hash',
    'database',
    (db) => void db.prepare('UPDATE actions SET chain = ? WHERE position = 9').run(OTHER_HASH),
    row('unlinked', 9, 'chain_hash'),
  ),
  edited(
    'actions: the text of a row',
    'database',
    (db) =>
      void db.exec(
        `UPDATE actions SET text = replace(text, '"actor":"alice"', '"actor":"mallory"') WHERE position = 9`,
      ),
    row('altered', 9, 'text'),
  ),
  edited(
    'actions: a row is deleted',
    'database',
    (db) =>
      void db.exec(
        'DELETE FROM actions WHERE position = 200; DELETE FROM action_payloads WHERE position = 200',
      ),
    row('missing', 200),
  ),
  edited(
    'actions: two rows are swapped',
    'database',
    (db) => {
      db.exec(
        'UPDATE actions SET position = -1 WHERE position = 200; UPDATE actions SET position = 200 WHERE position = 202; UPDATE actions SET position = 202 WHERE position = -1',
      );
    },
    [
      row('unlinked', 200, 'chain_hash'),
      row('unlinked', 201, 'chain_hash'),
      row('unlinked', 202, 'chain_hash'),
      row('unlinked', 203, 'chain_hash'),
    ],
  ),
  edited(
    'actions: a row is there twice',
    'database',
    (db) => {
      const next = '(SELECT max(position) + 1 FROM actions)';
      db.exec(
        `INSERT INTO actions (position, text, content, chain) SELECT ${next}, text, content, chain FROM actions WHERE position = 200`,
      );
    },
    (log) => [
      row('unlinked', log.last.fields.position + 1, 'chain_hash'),
      foreign(log.last.fields.position + 1, log.last.fields.position + 1),
    ],
  ),
  {
    id: 'payloads: a body is changed',
    holds: 'everywhere',
    forge(log) {
      const { position } = log.enterOf(log.exit('task_update', 'crashed')).fields;
      log.edit((db) =>
        db
          .prepare("UPDATE action_payloads SET body = replace(body, 'T-0008', 'T-0007') WHERE position = ?")
          .run(position),
      );
      return row('altered', position, 'body', 'salt');
    },
  },
  {
    id: 'payloads: a salt is changed',
    holds: 'everywhere',
    forge(log) {
      const { position } = log.exit('task_update', 'ok', { task_id: 'T-0007' }).fields;
      log.edit((db) =>
        db.prepare('UPDATE action_payloads SET salt = ? WHERE position = ?').run(newSalt(), position),
      );
      return row('altered', position, 'body', 'salt');
    },
  },
  schema('a trigger is missing', 'DROP TRIGGER texts_no_update', 'texts_no_update'),
  schema(
    'a trigger too many',
    'CREATE TRIGGER quiet BEFORE INSERT ON texts BEGIN SELECT RAISE(IGNORE); END',
    'quiet',
  ),
  schema('a table too many', 'CREATE TABLE verdicts (text TEXT)', 'verdicts'),
  schema('a view too many', "CREATE VIEW verdict AS SELECT 'sound' AS text", 'verdict'),
  schema('an index is missing', 'DROP INDEX tasks_by_update', 'tasks_by_update'),
];

/** The schema of the file is another than the one this version makes. */
function schema(what: string, sql: string, name: string): Forgery {
  return {
    id: `schema: ${what}`,
    holds: 'database',
    isBesideRows: true,
    onlyInFile: 'a server has a schema of its own; tests/postgres/tamper.test.ts changes that',
    forge: () => [],
    damage(dbPath) {
      const db = openDatabase(dbPath);
      db.exec(sql);
      db.close();
      return { kind: 'schema', record: name };
    },
  };
}

/** A process, with the actor that it wrote rows for. */
function firstProcess(log: ForgedLog): string {
  return log.rows.map(({ fields }) => `${fields.process} ${fields.actor}`).sort()[0] ?? '';
}
