import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, NO_POSTGRES, rowsAt, startCluster } from '../../../tests/driver/postgres.ts';
import { OBJECTS } from '../../storage/postgres/objects.ts';
import { SCHEMA } from '../../storage/postgres/schema.ts';
import {
  compareStructure,
  DEFINITIONS,
  type Definition,
  digestOf,
} from '../../storage/postgres/structure.ts';

describe.skipIf(NO_POSTGRES !== undefined)(`the schema on PostgreSQL ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  let url: string;
  const database = () => url.slice(url.lastIndexOf('/') + 1);
  const definitions = () => rowsAt(url, DEFINITIONS) as unknown as Definition[];

  beforeAll(async () => {
    cluster = await startCluster();
    url = await cluster.createDatabase();
    cluster.sql(database(), `CREATE SCHEMA colibri; SET search_path = colibri; ${SCHEMA}`);
  });
  afterAll(() => cluster?.stop());

  test('is what its digests say', () => {
    const found = Object.fromEntries(definitions().map((one) => [one.name, digestOf(one)]));

    expect(found).toEqual(OBJECTS);
  });

  test('misses every column that is gone, and names it once', () => {
    const columns = rowsAt(
      url,
      `SELECT table_name AS t, column_name AS c FROM information_schema.columns JOIN pg_class ON relname = table_name AND relkind = 'r'
       WHERE table_schema = 'colibri'`,
    ) as { t: string; c: string }[];
    const whole = definitions();
    const told = columns.map(({ t, c }) => {
      const found = whole.map(({ name, definition }) =>
        name === t
          ? { name, definition: definition.replace(new RegExp(`^(column \\d+) ${c} `, 'm'), '$1 another ') }
          : { name, definition },
      );
      return compareStructure(found).map(({ message }) => message);
    });

    expect(columns.length).toBeGreaterThan(90);
    expect(told).toEqual(
      columns.map(({ t, c }) => [`The table ${t} has no column ${c}: it was renamed or removed.`]),
    );
  });

  test.each([
    ['CREATE TABLE colibri.more (a int)', /more is not one of Colibri's/],
    [
      'ALTER TABLE colibri.tasks DISABLE TRIGGER tasks_no_delete',
      /tasks, or of what belongs to it, was changed/,
    ],
    ['DROP TRIGGER actions_no_update ON colibri.actions', /actions, or of what/],
    ['ALTER TABLE colibri.texts ADD COLUMN more text', /texts, or of what/],
    ['ALTER TABLE colibri.tasks ALTER COLUMN title TYPE text COLLATE "POSIX"', /tasks, or of what/],
    ["COMMENT ON TABLE colibri.log IS 'colibri schema 99'", /definition of log, or of what/],
    ['COMMENT ON TABLE colibri.log IS NULL', /definition of log, or of what/],
    ['SET session_replication_role = replica', /triggers that protect the log do not run/],
    ['DROP VIEW colibri.audit_rows', /audit_rows was removed/],
    ['DROP INDEX colibri.tasks_by_project', /tasks, or of what/],
    ['CREATE RULE r AS ON INSERT TO colibri.actions DO INSTEAD NOTHING', /actions, or of what/],
    [
      "CREATE OR REPLACE FUNCTION colibri.said(said text) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT '{}'::jsonb $$",
      /function said, or of what/,
    ],
    [
      'CREATE OR REPLACE VIEW colibri.audit_rows AS SELECT position, text, content_hash, chain_hash, sequence_no, tool AS stage, tool, actor, source, correlation_id, at, rules, schema_valid, args_hash, outcome, error_code, duration_ms, result_hash, effects, process, repaired FROM colibri.audit_rows WHERE false',
      /audit_rows, or of what/,
    ],
  ])('names what was changed: %s', (change, message) => {
    const sql = `BEGIN; ${change}; SET LOCAL search_path = colibri; SELECT json_agg(q) FROM (${DEFINITIONS}) q; ROLLBACK`;
    const found = JSON.parse(cluster.sql(database(), sql)) as Definition[];

    expect(
      compareStructure(found)
        .map((problem) => problem.message)
        .join(' '),
    ).toMatch(message);
  });
});
