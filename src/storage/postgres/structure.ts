import { sha256Hex } from '../../integrity/digest.ts';
import { visibleLine } from '../../untrusted.ts';
import type { StorageProblem } from '../engine.ts';
import { OBJECTS } from './objects.ts';
import { SCHEMA } from './schema.ts';

const TRIGGERS = 'the setting session_replication_role';

/**
 * Everything in the schema that acts or holds data: each table with its columns, keys, indexes, triggers and rules, the view,
 * the functions, and the mark of the version on the table log. An administrator can also turn off every trigger of a
 * connection, by a setting of the database or of the role.
 */
export const DEFINITIONS = `
  WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname = 'colibri'),
    relations AS (SELECT c.* FROM pg_class c JOIN ours ON c.relnamespace = ours.oid AND relkind NOT IN ('i', 't')),
    parts (of, part) AS (
      SELECT oid, concat_ws(' ', relkind, relpersistence, relrowsecurity, relispartition, relhassubclass) FROM relations
      UNION ALL SELECT attrelid, concat_ws(' ', 'column', attnum, attname, format_type(atttypid, atttypmod), attnotnull,
        attgenerated, attidentity, (SELECT collname FROM pg_collation l WHERE l.oid = attcollation), pg_get_expr(adbin, adrelid))
      FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attnum > 0 AND NOT attisdropped
      UNION ALL SELECT conrelid, concat_ws(' ', 'constraint', conname, pg_get_constraintdef(oid), convalidated)
      FROM pg_constraint WHERE contype <> 'n'
      UNION ALL SELECT indrelid, concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid, indisready) FROM pg_index
      UNION ALL SELECT tgrelid, concat_ws(' ', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
      UNION ALL SELECT ev_class, concat_ws(' ', 'rule', rulename, CASE rulename WHEN '_RETURN'
        THEN regexp_replace(pg_get_viewdef(ev_class), '\\s|actions\\.|[()]', '', 'g') END) FROM pg_rewrite
      UNION ALL SELECT polrelid, concat_ws(' ', 'policy', polname) FROM pg_policy
      UNION ALL SELECT oid, obj_description(oid, 'pg_class') FROM relations WHERE relname = 'log'
    )
  SELECT relname AS name, string_agg(part, E'\\n' ORDER BY part) AS definition
  FROM relations JOIN parts ON of = relations.oid GROUP BY relname
  UNION ALL SELECT 'function ' || proname, concat_ws(' ', prosrc, provolatile, proisstrict, prosecdef, pronargs, proconfig::text)
  FROM pg_proc JOIN ours ON pronamespace = ours.oid
  UNION ALL SELECT '${TRIGGERS}', current_setting('session_replication_role')
  ORDER BY 1`;

export interface Definition {
  readonly name: string;
  readonly definition: string;
}

/** Enough of a digest to tell one definition from another. */
export const digestOf = ({ definition }: Definition) => sha256Hex(definition).slice(0, 16);

/** The columns of each table, by its name. */
const COLUMNS = new Map(
  [...SCHEMA.matchAll(/CREATE TABLE (\w+) \((.*?)\n {2}\)/gs)].map(([, table = '', body = '']) => [
    table,
    [...body.matchAll(/(\w+) +(?:BIGINT|TEXT|BYTEA|DOUBLE|TSVECTOR)/g)].map(([, name = '']) => name),
  ]),
);

const problemOf = (record: string, message: string): StorageProblem => ({
  ...{ kind: 'schema', table: 'schema', record, message },
});

/** Tables and columns that are not there: without them nothing can be read. */
export function missingParts(found: readonly Definition[]): StorageProblem[] {
  return [...COLUMNS].flatMap(([table, columns]) => {
    const definition = found.find(({ name }) => name === table)?.definition;
    if (definition === undefined) return [problemOf(table, `${table} was removed from the schema.`)];
    const there = new Set([...definition.matchAll(/^column \d+ (\w+) /gm)].map(([, name]) => name));
    const gone = columns.filter((name) => !there.has(name));
    const message = `The table ${table} has no column ${gone.join(', ')}: it was renamed or removed.`;
    return gone.length === 0 ? [] : [problemOf(table, message)];
  });
}

/** What is in the schema and should not be, is not as it should be, or is missing. Hostile input enters here: any text may be a name. */
export function compareStructure(found: readonly Definition[]): StorageProblem[] {
  const problems = missingParts(found);
  // What depends on it has changed with it.
  if (problems.length > 0) return problems;
  const tell = (record: string, message: string) => problems.push(problemOf(record, message));
  const seen = new Set<string>();
  for (const one of found) {
    const name = visibleLine(one.name.slice(0, NAME_CHARS_MAX));
    const due = Object.hasOwn(OBJECTS, one.name) ? OBJECTS[one.name] : undefined;
    if (due === undefined) tell(name, `${name} is not one of Colibri's.`);
    else if (seen.has(one.name) || due !== digestOf(one)) tell(name, CHANGES[one.name] ?? changed(name));
    seen.add(one.name);
  }
  for (const name of Object.keys(OBJECTS))
    if (!seen.has(name)) tell(name, `${name} was removed from the schema.`);
  return problems;
}

const changed = (name: string) => `The definition of ${name}, or of what belongs to it, was changed.`;

const CHANGES: Readonly<Record<string, string>> = {
  [TRIGGERS]:
    'session_replication_role is not "origin" for this connection, so triggers that protect the log do not run. Its administrator can reset it with ALTER DATABASE … RESET session_replication_role, or ALTER ROLE.',
};

const NAME_CHARS_MAX = 128;
