import { readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { install } from '../npm.mjs';
import { progress } from '../progress.mjs';
import { p50, p99 } from '../statistics.mjs';
import { short } from '../table.mjs';
import { countTokens } from '../tokens.mjs';
import { listFigures } from '../tools-list.mjs';
import {
  coldStart,
  growth,
  killedBusy,
  killedIdle,
  together,
  total,
  twoProcesses,
  writes,
} from './phases.mjs';
import { SERVERS } from './servers.mjs';
import { syncsPerWrite } from './syncs.mjs';

const OWN_PACKAGE = new URL('../../package.json', import.meta.url);

const WINDOWS = [100, 500, 1_000, 2_000, 3_000, 4_000, 5_000].map((until) => ({ until, sample: 90 }));

const FULL = {
  starts: 10,
  writeRounds: 5,
  writes: { warm: 30, count: 100 },
  together: { rounds: 3, inFlight: 32, count: 1_000, limitMs: 10_000 },
  growth: { windows: WINDOWS, limitMs: 240_000 },
  killedIdle: { tries: 5, count: 20 },
  killedBusy: { tries: 5, inFlight: 16, acknowledged: 100, limitMs: 10_000 },
  twoProcesses: { rounds: 3, inFlight: 1, count: 3_000, first: 1_000, limitMs: 20_000 },
  twoBusy: { rounds: 3, inFlight: 16, count: 500, limitMs: 20_000 },
  syncsPerWrite: { count: 20 },
};

const QUICK = {
  starts: 2,
  writeRounds: 1,
  writes: { warm: 5, count: 20 },
  together: { rounds: 1, inFlight: 32, count: 200, limitMs: 5_000 },
  growth: { windows: WINDOWS.slice(0, 2), limitMs: 10_000 },
  killedIdle: { tries: 1, count: 5 },
  killedBusy: { tries: 1, inFlight: 16, acknowledged: 50, limitMs: 5_000 },
  twoProcesses: { rounds: 1, inFlight: 1, count: 30, first: 10, limitMs: 5_000 },
  twoBusy: { rounds: 1, inFlight: 16, count: 100, limitMs: 5_000 },
  syncsPerWrite: { count: 5 },
};

/** The same workload on the servers a user would pick instead, and on Colibri, by the same code. */
export async function rivals({ quick }) {
  const extent = quick ? QUICK : FULL;
  const { count, by } = await countTokens({ install: true });
  const desks = SERVERS.map(openDesk);
  // What is timed goes in turns, so that a noisy neighbour disturbs all alike; then one server after the other.
  for (let round = 0; round < extent.starts; round += 1)
    for (const desk of desks) await note(desk, 'starts', () => coldStart(desk));
  for (let round = 0; round < extent.writeRounds; round += 1)
    for (const desk of desks) await note(desk, 'writes', () => writes(desk, extent.writes));
  const turn = inOrder();
  await Promise.all(
    desks.map((desk) => note(desk, 'growth', () => growth(desk, { ...extent.growth, turn }))),
  );
  for (const [name, phase] of Object.entries({ together, twoProcesses, twoBusy: twoProcesses }))
    for (let round = 0; round < extent[name].rounds; round += 1)
      for (const desk of desks) await note(desk, name, () => phase(desk, extent[name]));
  for (const desk of desks)
    for (const [name, phase] of Object.entries({ killedIdle, killedBusy, syncsPerWrite }))
      await note(desk, name, () => phase(desk, extent[name]));
  const servers = desks.map((desk) => figures(desk, count));
  return { rows: standings(servers, short(extent.twoProcesses.first)), tokens_by: by, extent, servers };
}

/** Where Colibri stands among the servers that store: it must be first. A write that is lost was not stored. */
function standings([colibri, ...others], begin) {
  const first = (id, what, phase, rate = 'per_second') => {
    const of = ({ [phase]: measured }) =>
      measured?.acknowledged > 0 ? measured[rate] * (1 - measured.lost / measured.acknowledged) : undefined;
    const [best] = others.filter((server) => of(server) !== undefined).sort((a, b) => of(b) - of(a));
    if (best === undefined || of(colibri) === undefined) return [];
    return {
      id,
      what,
      unit: 'writes/s',
      reference: of(best),
      reference_is: `${best.name}, the fastest of the others`,
      p50: of(colibri),
      value: of(colibri) / of(best),
      bar: 'more than any other server that stores',
      limit: 1,
      sense: 'at least',
    };
  };
  const lost = ['together', 'killed', 'killed_in_burst', 'two', 'two_busy'].map(
    (phase) => colibri[phase]?.lost ?? 0,
  );
  const count = lost.reduce((sum, one) => sum + one, 0);
  return [
    first('rivals-in-flight', 'writes that are kept, 32 in flight', 'together'),
    first('rivals-two-busy', 'writes that are kept, by two processes, 16 in flight each', 'two_busy'),
    first('rivals-two', 'writes that are kept, by two processes, one in flight each', 'two'),
    first(
      'rivals-two-first',
      `writes that are kept, by two processes, one in flight each, the first ${begin} of each`,
      'two',
      'first_per_second',
    ),
    {
      id: 'rivals-lost',
      what: 'acknowledged writes that were lost in all of these tests',
      unit: 'writes',
      p50: count,
      value: count,
      bar: 'none',
      limit: 0,
    },
  ].flat();
}

/** Runs what it is given one after the other, in the order of asking. */
function inOrder() {
  let last = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** A server that cannot be installed keeps its row, with the reason instead of figures. */
function openDesk(server) {
  const desk = { server, measured: {}, failed: {} };
  try {
    desk.installed = server.package === undefined ? undefined : install(server.package, server.version);
  } catch (error) {
    desk.failed.install = published(error.message);
  }
  return desk;
}

/** One phase of one server. What cannot be measured is said in its place; a server that does not start is left alone. */
async function note({ server, measured, failed }, phase, work) {
  if (failed.install ?? failed.starts ?? failed[phase]) return;
  progress(`rivals: ${server.name}, ${phase}`);
  try {
    measured[phase] = [...(measured[phase] ?? []), await work()];
  } catch (error) {
    failed[phase] = published(error.message);
    progress(`rivals: ${server.name}, ${phase} failed: ${error.message}`);
  }
}

/** The reason as it may stand in a document: without places of this machine and its network, and not endless. */
function published(message) {
  return message
    .replaceAll(tmpdir(), '…')
    .replaceAll(homedir(), '~')
    .replace(/https?:\/\/\S+/g, '…')
    .slice(0, 300);
}

function figures({ server, measured, failed }, tokensOf) {
  const { name, package: from, setting, store } = server;
  const version = server.version ?? JSON.parse(readFileSync(OWN_PACKAGE, 'utf8')).version;
  const of = (phase, make) =>
    failed[phase] === undefined && measured[phase] ? make(measured[phase]) : undefined;
  return {
    ...{ name, package: from, version, setting, store },
    ...(Object.keys(failed).length > 0 && { failed }),
    started: of('starts', (starts) => ({
      initialize: p50(starts.map((sample) => sample.initialize)),
      tools_list: p50(starts.map((sample) => sample.tools_list)),
    })),
    list: of('starts', ([{ tools }]) => listFigures(tools, tokensOf)),
    write: of('writes', (samples) => ({ p50: p50(samples), p99: p99(samples) })),
    together: of('together', togetherFigures),
    growth: of('growth', ([grown]) => grown.growth),
    memory: of('growth', ([grown]) => grown.memory),
    killed: of('killedIdle', ([sum]) => sum),
    killed_in_burst: of('killedBusy', ([sum]) => sum),
    two: of('twoProcesses', twoFigures),
    two_busy: of('twoBusy', twoFigures),
    syncs_per_write: of('syncsPerWrite', ([count]) => count),
  };
}

function togetherFigures(bursts) {
  return { per_second: p50(bursts.map((burst) => burst.per_second)), ...total(bursts) };
}

function twoFigures(rounds) {
  const sum = (key) => rounds.reduce((all, round) => all + round[key], 0);
  const rate = (writes, ms) => (sum(writes) / sum(ms)) * 1000;
  return {
    per_second: rate('acknowledged', 'spent_ms'),
    first_per_second: rate('first_acknowledged', 'first_ms'),
    ...total(rounds),
  };
}
