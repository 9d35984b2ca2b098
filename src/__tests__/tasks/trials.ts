import type { Parameters as PropertyParameters } from 'fast-check';
import { tier } from '../../../tests/driver/tier.ts';

/** How often a property is tried, and from which seed. COLIBRI_TEST_SEED repeats a failure. */
export function trials<T>(what: string, runs: number, full = runs): PropertyParameters<T> {
  const seed = Number(process.env.COLIBRI_TEST_SEED ?? (Date.now() ^ process.pid) >>> 0);
  console.error(`${what}: COLIBRI_TEST_SEED=${seed}`);
  return { seed, numRuns: tier(runs, full), endOnFailure: false };
}
