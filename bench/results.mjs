import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const COMMITTED = fileURLToPath(new URL('results.json', import.meta.url));
export const QUICK = fileURLToPath(new URL('../dist/bench/results.json', import.meta.url));

/** What was measured, by section; nothing where there is no such file. */
export function readResults(file = COMMITTED) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
}

/** Replaces these sections and leaves the others. */
export function mergeInto(file, sections) {
  mkdirSync(dirname(file), { recursive: true });
  const rounded = JSON.stringify({ ...readResults(file), ...sections }, threeDigits, 2);
  writeFileSync(file, `${rounded}\n`);
}

/** Nobody needs nanoseconds; and what is written is what is shown. */
function threeDigits(_key, value) {
  return typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
}
