// npm run bench [-- --quick] [-- SECTION ...]: prints a table and writes bench/results.json.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { buildBareServer, SERVER } from './build.mjs';
import { calls } from './calls.mjs';
import { coldStart } from './cold-start.mjs';
import { growth } from './growth.mjs';
import { sessions } from './sessions.mjs';

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const pick = (full, quick) => (values.quick ? quick : full);

const SECTIONS = {
  'cold-start': async () => coldStart({ rounds: pick(30, 8), server: SERVER, bare: await buildBareServer() }),
  calls: async () =>
    calls({
      bare: await buildBareServer(),
      rounds: pick(20, 5),
      callsPerRound: pick(100, 50),
      pipelined: pick(4_000, 1_000),
    }),
  growth: () =>
    growth({
      tasks: pick(100_000, 5_000),
      rows: pick(1_000_000, 20_000),
      rounds: pick(10, 4),
      callsPerRound: pick(100, 50),
    }),
  sessions: () => sessions({ records: pick(10_000, 2_000), chain: pick(100_000, 5_000) }),
};

const wanted = positionals.length === 0 ? Object.keys(SECTIONS) : positionals;
const rows = [];
for (const name of wanted) {
  const section = SECTIONS[name];
  if (section === undefined)
    throw new Error(`no section "${name}"; there are ${Object.keys(SECTIONS).join(', ')}`);
  for (const row of await section()) rows.push({ section: name, ...row, verdict: verdictOf(row) });
}

/** Met or missed, by ratio where there is a reference in the same run, else by the absolute figure. */
function verdictOf({ ratio, reach, p50_ms, reach_ms }) {
  return (ratio === undefined ? p50_ms <= reach_ms : ratio <= reach) ? 'met' : 'missed';
}

const round = (value) => (typeof value === 'number' ? Math.round(value * 1000) / 1000 : value);
console.table(
  rows.map(({ what, reference_ms, p50_ms, p99_ms, ratio, reach, reach_ms, verdict }) =>
    Object.fromEntries(
      Object.entries({
        what,
        reference_ms,
        p50_ms,
        p99_ms,
        ratio,
        reach: reach ?? `${reach_ms} ms`,
        verdict,
      }).map(([key, value]) => [key, round(value)]),
    ),
  ),
);
const machine = {
  node: process.version,
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  platform: process.platform,
};
writeFileSync(
  new URL('results.json', import.meta.url),
  `${JSON.stringify({ machine, quick: values.quick, rows }, null, 2)}\n`,
);
