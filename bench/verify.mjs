import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { bundleSource } from './build.mjs';
import { filledDatabase } from './databases.mjs';
import { progress } from './progress.mjs';
import { byRound, inTurns, p50, p99 } from './statistics.mjs';

const ROWS_PER_SECOND_MIN = 40_000;
const HEAP_MB_MAX = 300;
const WRITTEN_SHARE_MIN = 0.8;

/** Verification with replay beside the hashing of the same bytes, and its heap on a log and on a longer one. */
export async function verify({ small, large, rounds }) {
  const script = await bundleSource('verify-database');
  const run = async ({ COLIBRI_DB_PATH }, what) => {
    const { stdout } = await promisify(execFile)(process.execPath, [script, COLIBRI_DB_PATH, what]);
    return JSON.parse(stdout);
  };
  const [smallEnv, largeEnv] = [await filledDatabase(small), await filledDatabase(large)];
  const samples = await inTurns(rounds, {
    hash: () => run(largeEnv, 'hash'),
    large: () => run(largeEnv, 'verify'),
    small: () => run(smallEnv, 'verify'),
  });
  const all = [...samples.large, ...samples.small].flat();
  const findings = all.reduce((sum, one) => sum + one.findings, 0);
  if (findings > 0) throw new Error(`verification reported ${findings} findings on sound databases`);
  const share = Math.min(...all.map(({ rows, written }) => written / rows));
  if (share < WRITTEN_SHARE_MIN) throw new Error(`only ${share} of the rows belong to writing calls`);
  progress(`verify: ${samples.large[0][0].rows} rows, ${rounds} rounds`);
  return { rows: [rateRow(samples, share), heapRow(samples)] };
}

/** Rows per second, judged by the bar; how far the hashing alone would go stands beside it. */
function rateRow({ large, hash }, share) {
  const size = large[0][0].rows;
  const took = large.map((round) => round.map((one) => one.ms));
  const hashed = hash.map((round) => round.map((one) => one.text_ms + one.payload_ms));
  const perSecond = (ms) => (size / ms) * 1000;
  const { spread } = byRound({ took }, ({ took: ms }) => perSecond(ms));
  return {
    id: 'verify-all',
    what: `verify: everything, with replay, ${size.toLocaleString('en')} rows, ${Math.round(share * 100)} % of them of writing calls`,
    unit: 'rows/s',
    reference: perSecond(p50(hashed)),
    reference_is: 'crypto.hash over the same texts and payloads',
    p50: perSecond(p50(took)),
    p99: perSecond(p99(took)),
    value: perSecond(p50(took)),
    spread,
    bar: `at least ${ROWS_PER_SECOND_MIN.toLocaleString('en')} rows/s on one thread`,
    limit: ROWS_PER_SECOND_MIN,
    sense: 'at least',
  };
}

function heapRow(samples) {
  const peaks = (list) => list.map((round) => round.map((one) => one.heap_mb));
  const [small, large] = [peaks(samples.small), peaks(samples.large)];
  const rowsOf = (list) => list[0][0].rows.toLocaleString('en');
  return {
    id: 'verify-memory',
    what: `heap of verify at ${rowsOf(samples.large)} rows, at its peak`,
    unit: 'MB',
    reference: p50(small),
    reference_is: `at ${rowsOf(samples.small)} rows`,
    p50: p50(large),
    p99: p99(large),
    value: p50(large),
    bar: `at most ${HEAP_MB_MAX} MB at 100,000 tasks`,
    limit: HEAP_MB_MAX,
  };
}
