// The reliability battery: every test that stands for a row of R1 to R40, wherever it lives.
// usage: npm run test:reliability [-- --full] [--seed N] [--figures FILE] [R7 R39 …]
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const rows = JSON.parse(readFileSync(new URL('../tests/reliability/rows.json', import.meta.url), 'utf8'));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean' }, seed: { type: 'string' }, figures: { type: 'string' } },
});

const unknown = positionals.filter((row) => !Object.hasOwn(rows, row));
if (unknown.length > 0) {
  console.error(`There is no row ${unknown.join(', ')}; there are ${Object.keys(rows).join(', ')}.`);
  process.exit(2);
}
const chosen = positionals.length === 0 ? Object.keys(rows) : positionals;
const places = chosen.flatMap((row) => rows[row]);
const files = [...new Set(places.map((place) => place.file ?? place))];
// A test names its rows at the front of its name, or the table names the test.
const sentences = places.flatMap((place) => place.test ?? []).map((text) => text.replace(/[^\w ]/g, '.'));
const names = [`\\b(?:${chosen.join('|')})\\b[:,]`, ...sentences].join('|');

const { status } = spawnSync('npx', ['vitest', 'run', ...files, '-t', names], {
  cwd: root,
  stdio: 'inherit',
  env: {
    ...process.env,
    ...(values.full && { COLIBRI_TEST_FULL: '1' }),
    ...(values.seed !== undefined && { COLIBRI_TEST_SEED: values.seed }),
    ...(values.figures !== undefined && { COLIBRI_TEST_FIGURES: values.figures }),
  },
});
process.exit(status ?? 1);
