import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { bundleSource } from './build.mjs';
import { filledDatabase } from './databases.mjs';
import { progress } from './progress.mjs';
import { byRound, inTurns, p50, p99 } from './statistics.mjs';

/** The design's bar for the audit rows with their stored texts. */
const LOG_ROWS_PER_SECOND_MIN = 250_000;
/** The study's bar for a reader that takes apart and compares everything there is. */
const ALL_ROWS_PER_SECOND_MIN = 80_000;
const FLAT_MAX = 1.2;

/** Verification beside the hashing of the same bytes, and its memory on a log and on a longer one. */
export async function verify({ small, large, rounds }) {
  const script = await bundleSource('verify-database');
  const run = async ({ COLIBRI_DB_PATH }, what) => {
    const { stdout } = await promisify(execFile)(process.execPath, [script, COLIBRI_DB_PATH, what]);
    return JSON.parse(stdout);
  };
  const [smallEnv, largeEnv] = [await filledDatabase(small), await filledDatabase(large)];
  const samples = await inTurns(rounds, {
    hash: () => run(largeEnv, 'hash'),
    log: () => run(largeEnv, 'log'),
    large: () => run(largeEnv, 'verify'),
    small: () => run(smallEnv, 'verify'),
  });
  const findings = [...samples.log, ...samples.large, ...samples.small]
    .flat()
    .reduce((sum, one) => sum + one.findings, 0);
  if (findings > 0) throw new Error(`verification reported ${findings} findings on sound databases`);
  const size = samples.large[0][0].rows;
  progress(`verify: ${size} rows, ${rounds} rounds`);
  return {
    rows: [
      rate('verify-log', 'verify: the audit rows with their texts', size, {
        verified: samples.log,
        hashed: samples.hash.map((round) => round.map((one) => one.text_ms)),
        reference_is: 'crypto.hash over the same texts',
        limit: LOG_ROWS_PER_SECOND_MIN,
      }),
      rate('verify-all', 'verify: all of it, with payloads, state and derived tables', size, {
        verified: samples.large,
        hashed: samples.hash.map((round) => round.map((one) => one.text_ms + one.payload_ms)),
        reference_is: 'crypto.hash over the same texts and payloads',
        limit: ALL_ROWS_PER_SECOND_MIN,
      }),
      memoryRow(samples),
    ],
  };
}

/** Rows a second, judged by the bar; how far the hashing alone would go stands beside it. */
function rate(id, what, size, { verified, hashed, reference_is, limit }) {
  const took = verified.map((round) => round.map((one) => one.ms));
  const perSecond = (ms) => (size / ms) * 1000;
  const { spread } = byRound({ took }, ({ took: ms }) => perSecond(ms));
  return {
    id,
    what: `${what}, ${size.toLocaleString('en')} rows`,
    unit: 'rows/s',
    reference: perSecond(p50(hashed)),
    reference_is,
    p50: perSecond(p50(took)),
    p99: perSecond(p99(took)),
    value: perSecond(p50(took)),
    spread,
    bar: `at least ${limit.toLocaleString('en')} rows/s`,
    limit,
    sense: 'at least',
  };
}

function memoryRow(samples) {
  const peaks = (list) => list.map((round) => round.map((one) => one.peak_mb));
  const [small, large] = [peaks(samples.small), peaks(samples.large)];
  const rowsOf = (list) => list[0][0].rows.toLocaleString('en');
  return {
    id: 'verify-memory',
    what: `memory of verify at ${rowsOf(samples.large)} rows, at its peak`,
    unit: 'MB',
    reference: p50(small),
    reference_is: `at ${rowsOf(samples.small)} rows`,
    p50: p50(large),
    p99: p99(large),
    ...byRound({ small, large }, (round) => round.large / round.small),
    bar: `flat: at most ${FLAT_MAX} × the shorter log`,
    limit: FLAT_MAX,
  };
}
