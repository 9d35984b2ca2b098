// npm run bench [-- --quick] [-- --out FILE] [-- SECTION ...]: measures, prints a table, writes JSON. A whole run, or the
// sections named, replace theirs in bench/results.json, and docs/performance.md with its plots is made of it. A quick run
// is for looking: it leaves out what needs the registry (the package and the rivals) or PostgreSQL, and writes to dist/bench/results.json.
import { parseArgs } from 'node:util';
import { buildBareServer, SERVER } from './build.mjs';
import { calls } from './calls.mjs';
import { coldStart } from './cold-start.mjs';
import { disk } from './disk.mjs';
import { writeDocument } from './document.mjs';
import { growth } from './growth.mjs';
import { loadNow, machine } from './machine.mjs';
import { memory } from './memory.mjs';
import { packageSize } from './package.mjs';
import { postgres } from './postgres.mjs';
import { progress } from './progress.mjs';
import { COMMITTED, mergeInto, QUICK } from './results.mjs';
import { rivals } from './rivals/rivals.mjs';
import { sessions } from './sessions.mjs';
import { startAtSize } from './start-at-size.mjs';
import { printTable } from './table.mjs';
import { toolsList } from './tools-list.mjs';
import { verify } from './verify.mjs';

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, out: { type: 'string' } },
  allowPositionals: true,
});
// Folders and servers are cleared up at the exit, so there must be one.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

const pick = (full, quick) => (values.quick ? quick : full);

const SECTIONS = {
  'cold-start': async () => coldStart({ rounds: pick(40, 8), server: SERVER, bare: await buildBareServer() }),
  calls: async () =>
    calls({
      bare: await buildBareServer(),
      rounds: pick(20, 5),
      callsPerRound: pick(100, 50),
      pipelined: pick(1_000, 300),
    }),
  // Before the growth, which adds to the databases the two share.
  verify: () =>
    verify({
      small: pick({ tasks: 20_000, rows: 200_000 }, { tasks: 500, rows: 5_000 }),
      large: pick({ tasks: 100_000, rows: 1_000_000 }, { tasks: 2_000, rows: 20_000 }),
      rounds: pick(5, 2),
    }),
  start: () =>
    startAtSize({
      size: pick({ tasks: 100_000, rows: 1_000_000 }, { tasks: 2_000, rows: 20_000 }),
      rounds: pick(20, 5),
    }),
  growth: () =>
    growth({
      sizes: pick([1_000, 10_000, 100_000], [500, 2_000]),
      rounds: pick(10, 4),
      callsPerRound: pick(100, 50),
    }),
  sessions: () => sessions({ records: pick(10_000, 2_000), chain: pick(100_000, 5_000), rounds: pick(5, 2) }),
  memory: async () =>
    memory({ bare: await buildBareServer(), calls: pick(10_000, 1_000), starts: pick(3, 1) }),
  'tools-list': async () => toolsList({ bare: await buildBareServer(), install: !values.quick }),
  disk: () => disk({ calls: pick(5_000, 500) }),
  package: () => packageSize(),
  postgres: () =>
    postgres({
      rounds: pick(10, 3),
      callsPerRound: pick(100, 30),
      pipelined: pick(960, 192),
      processes: pick([1, 2, 4, 8], [1, 2]),
      delays: pick([0, 1, 2, 5, 10], [1]),
    }),
  rivals: () => rivals({ quick: values.quick }),
};

const wanted =
  positionals.length > 0
    ? positionals
    : Object.keys(SECTIONS).filter((name) => pick(true, !['package', 'postgres', 'rivals'].includes(name)));
const unknown = wanted.filter((name) => !Object.hasOwn(SECTIONS, name));
if (unknown.length > 0)
  throw new Error(`no section "${unknown[0]}"; there are ${Object.keys(SECTIONS).join(', ')}`);

const file = values.out ?? pick(COMMITTED, QUICK);
const measured = {};
for (const name of wanted) {
  try {
    measured[name] = await measure(name);
    // After each section, so that a run that is broken off keeps what it has.
    mergeInto(file, { [name]: measured[name] });
  } catch (error) {
    // The others are worth having; what the file had of this one stays.
    progress(`${name} failed: ${error.stack}`);
    process.exitCode = 1;
  }
}
printTable(measured);
progress(`wrote ${file}`);
if (file === COMMITTED) for (const written of writeDocument()) progress(`wrote ${written}`);

async function measure(name) {
  progress(name);
  const load_before = loadNow();
  const { rows = [], ...more } = await SECTIONS[name]();
  const at = new Date().toISOString();
  return { at, quick: values.quick, machine, load_before, rows: rows.map(judged), ...more };
}

/** Met or missed: what was measured against the bar, nothing else. */
function judged(row) {
  const met = row.sense === 'at least' ? row.value >= row.limit : row.value <= row.limit;
  return { ...row, sense: row.sense ?? 'at most', verdict: met ? 'met' : 'missed' };
}
