import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';

const named = process.env.COLIBRI_VECTORS;
const folder = named ?? fileURLToPath(new URL('../../../../shared/vectors', import.meta.url));

/**
 * Describes what must hold for test data published by others, which is not part of this repository. Where it
 * is absent the report says so; where its folder was named and is absent, that is an error.
 */
export function describePublished(name: string, body: () => void): void {
  if (existsSync(folder)) return void describe(name, body);
  if (named !== undefined) throw new Error(`COLIBRI_VECTORS names ${named}, which does not exist`);
  describe(`${name}: NOT CHECKED, set COLIBRI_VECTORS to the folder of the published vectors`, () => {
    test.skip('the published vectors are present', () => {});
  });
}

export function readPublished(...path: readonly string[]): Buffer {
  return readFileSync(join(folder, ...path));
}

export function readPublishedJson<T>(...path: readonly string[]): T {
  return JSON.parse(readPublished(...path).toString('utf8'));
}
