import { appendFileSync } from 'node:fs';

/** The long tier, for before a release. */
export const FULL = process.env.COLIBRI_TEST_FULL === '1';

/** A quantity by tier. */
export function tier<T>(quick: T, full: T): T {
  return FULL ? full : quick;
}

/** A row of the battery's table. */
export type Row = `R${number}`;

/** What was measured, for the table in docs/reliability.md. Printed, and added to COLIBRI_TEST_FIGURES where that names a file. */
export function figure(row: Row, facts: Readonly<Record<string, number | string>>): void {
  const line = JSON.stringify({ row, tier: tier('quick', 'full'), ...facts });
  console.error(line);
  const file = process.env.COLIBRI_TEST_FIGURES;
  if (file !== undefined) appendFileSync(file, `${line}\n`);
}
