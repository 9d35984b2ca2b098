import { residentMb } from '../processes.mjs';
import { progress } from '../progress.mjs';
import { p50, p99, timed } from '../statistics.mjs';
import { onEmptyStore } from './desk.mjs';

/** Process start to the answers of `initialize` and `tools/list`, on an empty store. */
export async function coldStart(desk) {
  return await onEmptyStore(desk, async ({ open }) => {
    const client = await open();
    const initialize = performance.now() - client.started;
    const { result } = await client.request('tools/list', {});
    return { initialize, tools_list: performance.now() - client.started, tools: result.tools };
  });
}

/** Writes one after the other on an almost empty store. */
export async function writes(desk, { warm, count }) {
  return await onEmptyStore(desk, async ({ open, write }) => {
    const client = await open();
    for (let i = 0; i < warm; i += 1) await mustWrite(write, client, `warm-${i}`);
    return await timed(count, (i) => mustWrite(write, client, `item-${i}`));
  });
}

/** Many writes at once to one process, and what a fresh process finds of those acknowledged. */
export async function together(desk, { inFlight, count, limitMs }) {
  return await onEmptyStore(desk, async ({ open, write, tryWrite, stored }) => {
    const client = await open();
    await mustWrite(write, client, 'warm');
    const names = [];
    let [sent, refused] = [0, 0];
    const began = performance.now();
    const worker = async () => {
      while (sent < count && performance.now() - began < limitMs) {
        sent += 1;
        const name = `item-${sent}`;
        if (await tryWrite(client, name)) names.push(name);
        else refused += 1;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, worker));
    const per_second = (names.length / (performance.now() - began)) * 1000;
    await client.close();
    return { per_second, refused, ...compare(names, await stored()) };
  });
}

/**
 * The p50 of a write as the store grows, and the memory of the process before and after. `turn` lets the servers grow step
 * by step together, one at work at a time; only its own time counts against the limit.
 */
export async function growth(desk, { windows, limitMs, turn }) {
  return await onEmptyStore(desk, async ({ open, write }) => {
    const client = await turn(open);
    const started = await turn(async () => {
      await client.request('tools/list', {});
      await mustWrite(write, client, 'item-0');
      return residentMb(client.child.pid);
    });
    const grown = { items: 1, spentMs: 0, points: [] };
    for (const window of windows)
      if (grown.spentMs < limitMs) {
        await turn(() => growThrough(window, { client, write, grown, limitMs }));
        progress(`rivals: ${desk.server.name}, growth to ${grown.items}`);
      }
    const { items, spentMs, points } = grown;
    const cut = spentMs < limitMs ? {} : { cut: { items, after_s: limitMs / 1000 } };
    return { growth: { points, ...cut }, memory: { started, after: residentMb(client.child.pid) } };
  });
}

/** Writes up to the end of a window and times its last writes, unless the limit comes first. */
async function growThrough({ until, sample }, { client, write, grown, limitMs }) {
  const began = performance.now();
  const spent = () => grown.spentMs + performance.now() - began;
  const next = () => mustWrite(write, client, `item-${grown.items++}`);
  while (grown.items < until - sample && spent() < limitMs) await next();
  if (spent() < limitMs) {
    const samples = await timed(sample, next);
    grown.points.push({ items: grown.items, p50: p50(samples), p99: p99(samples) });
  }
  grown.spentMs = spent();
}

/** Killed right after an answer, with nothing else going on. */
export async function killedIdle(desk, { tries, count }) {
  return await sum(tries, () =>
    onEmptyStore(desk, async ({ open, write, stored }) => {
      const client = await open();
      const names = [];
      for (let i = 0; i < count; i += 1) {
        await mustWrite(write, client, `item-${i}`);
        names.push(`item-${i}`);
      }
      await client.kill();
      return compare(names, await stored());
    }),
  );
}

/** Killed in the middle of a burst. */
export async function killedBusy(desk, { tries, inFlight, acknowledged, limitMs }) {
  return await sum(tries, () =>
    onEmptyStore(desk, async ({ open, write, tryWrite, stored }) => {
      const client = await open();
      await mustWrite(write, client, 'warm');
      const names = [];
      let [sent, over] = [0, false];
      const began = performance.now();
      const worker = async () => {
        while (!over) {
          sent += 1;
          const name = `item-${sent}`;
          if (await tryWrite(client, name)) names.push(name);
          over ||= names.length >= acknowledged || performance.now() - began > limitMs;
        }
        await client.kill();
      };
      await Promise.all(Array.from({ length: inFlight }, worker));
      return compare(names, await stored());
    }),
  );
}

/** Two processes on one store, as two clients of one project make them. `first`: for so many of the writes, the time is told apart. */
export async function twoProcesses(desk, { inFlight, count, first = count, limitMs }) {
  return await onEmptyStore(desk, async ({ open, write, tryWrite, stored }) => {
    const clients = [await open()];
    await mustWrite(write, clients[0], 'warm');
    clients.push(await open());
    const names = [];
    let [refused, firstMs] = [0, undefined];
    const began = performance.now();
    await Promise.all(
      clients.flatMap((client, side) => {
        let sent = 0;
        const worker = async () => {
          while (sent < count && performance.now() - began < limitMs) {
            sent += 1;
            const name = `item-${side}-${sent}`;
            if (await tryWrite(client, name)) names.push(name);
            else refused += 1;
            if (names.length === 2 * first) firstMs ??= performance.now() - began;
          }
        };
        return Array.from({ length: inFlight }, worker);
      }),
    );
    const spentMs = performance.now() - began;
    for (const client of clients) await client.close();
    return {
      refused,
      spent_ms: spentMs,
      // Where the limit came before them, all that there were are the first.
      first_acknowledged: Math.min(names.length, 2 * first),
      first_ms: firstMs ?? spentMs,
      ...compare(names, await stored()),
    };
  });
}

async function mustWrite(write, client, name) {
  if (!(await write(client, name))) throw new Error(`a write was answered but not acknowledged (${name})`);
}

function compare(acknowledged, { names, unreadable }) {
  const found = new Set(names);
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((name) => !found.has(name)).length,
    unreadable: unreadable === undefined ? 0 : 1,
  };
}

async function sum(tries, once) {
  const outcomes = [];
  for (let i = 0; i < tries; i += 1) outcomes.push(await once());
  return total(outcomes);
}

/** The counts of several tries together. */
export function total(outcomes) {
  const sumOf = (key) => outcomes.reduce((sum, outcome) => sum + (outcome[key] ?? 0), 0);
  const counts = ['acknowledged', 'refused', 'lost', 'unreadable'];
  return { tries: outcomes.length, ...Object.fromEntries(counts.map((key) => [key, sumOf(key)])) };
}
