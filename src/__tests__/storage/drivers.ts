import {
  chooseDriver,
  nodeSqliteDriver,
  packagedDriver,
  type SqliteDriver,
  type SqliteStatement,
} from '../../storage/sqlite/driver.ts';

/** SQLite as this Node brings it, or why it is not used. */
export const ownDriver: SqliteDriver | Error = await chooseDriver([nodeSqliteDriver]).catch(
  (error: Error) => error,
);

/** Every driver that can be used here. Each must behave the same. */
export async function availableDrivers(): Promise<[name: string, driver: SqliteDriver][]> {
  const drivers = [await packagedDriver(), ...(ownDriver instanceof Error ? [] : [ownDriver])];
  return drivers.map((driver) => [driver.name, driver]);
}

/** A statement that hands everything to another; for a test that changes a part of it. */
export function forwarding(statement: SqliteStatement): SqliteStatement {
  return {
    get: (...params) => statement.get(...params),
    all: (...params) => statement.all(...params),
    run: (...params) => statement.run(...params),
    setReturnArrays: (on) => statement.setReturnArrays(on),
    setReadBigInts: (on) => statement.setReadBigInts(on),
  };
}
