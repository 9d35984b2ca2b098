import { expect, test } from 'vitest';
import { loadDriver, type SqliteDriver } from '../../storage/sqlite/driver.ts';
import { assertUnderstood, preparePrivateFile } from '../../storage/sqlite/file.ts';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from '../../storage/sqlite/schema.ts';
import { forwarding } from './drivers.ts';
import { scratchPath } from './scratch.ts';

test('R8: a file that another process finishes making while it is looked at is ours all the same', async () => {
  const path = scratchPath();
  const real = await loadDriver();
  preparePrivateFile(path);
  const maker = real.open(path, { readOnly: false });
  // The other process has switched to a write-ahead log and not yet made its tables.
  maker.exec('PRAGMA journal_mode = WAL');
  maker.exec('CREATE TABLE x (y); DROP TABLE x');
  const finish = () => {
    maker.exec('BEGIN IMMEDIATE');
    maker.exec(SCHEMA);
    maker.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  };
  const between: SqliteDriver = {
    ...real,
    open(file, options) {
      const connection = real.open(file, options);
      return {
        exec: (sql) => connection.exec(sql),
        close: () => connection.close(),
        function: (...of) => connection.function(...of),
        prepare(sql) {
          const statement = connection.prepare(sql);
          if (!sql.includes('application_id')) return statement;
          return {
            ...forwarding(statement),
            get(...params) {
              const found = statement.get(...params);
              finish();
              return found;
            },
          };
        },
      };
    },
  };

  expect(() => assertUnderstood(between, path)).not.toThrow();
  maker.close();
});
