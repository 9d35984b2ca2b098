import { betterSqlite3Driver, nodeSqliteDriver, type SqliteDriver } from '../../storage/sqlite/driver.ts';

/** Whether this Node brings a SQLite of its own. */
export const hasNodeSqlite = isAtLeast(process.versions.node, 22, 13);

/** Every driver that can be loaded here. Each must behave the same. */
export async function availableDrivers(): Promise<[name: string, driver: SqliteDriver][]> {
  const drivers = [await betterSqlite3Driver(), ...(hasNodeSqlite ? [nodeSqliteDriver()] : [])];
  return drivers.map((driver) => [driver.name, driver]);
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [a = 0, b = 0] = version.split('.').map(Number);
  return a > major || (a === major && b >= minor);
}
