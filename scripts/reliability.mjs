// The reliability battery: every test that stands for a row of R1 to R41, wherever it lives.
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
const placesOf = (names) => names.flatMap((row) => rows[row]);
const filesOf = (names) => [...new Set(placesOf(names).map((place) => place.file ?? place))];
// A test names its rows at the front of its name, or the table names the test.
const sentences = placesOf(chosen)
  .flatMap((place) => place.test ?? [])
  .map((text) => text.replace(/[^\w ]/g, '.'));
const names = [`\\b(?:${chosen.join('|')})\\b[:,]`, ...sentences].join('|');

// Rows with waits among their figures. In the full tier they get the machine to themselves, first.
const TIMED = filesOf(['R1', 'R7', 'R9', 'R39']);
const files = filesOf(chosen);
const alone = values.full ? files.filter((file) => TIMED.includes(file)) : [];
const together = files.filter((file) => !alone.includes(file));
const passed = [run(alone, ['--no-file-parallelism']), run(together, [])];
process.exit(passed.every(Boolean) ? 0 : 1);

function run(some, options) {
  if (some.length === 0) return true;
  const { status } = spawnSync('npx', ['vitest', 'run', ...options, ...some, '-t', names], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      ...(values.full && { COLIBRI_TEST_FULL: '1' }),
      ...(values.seed !== undefined && { COLIBRI_TEST_SEED: values.seed }),
      ...(values.figures !== undefined && { COLIBRI_TEST_FIGURES: values.figures }),
    },
  });
  return status === 0;
}
