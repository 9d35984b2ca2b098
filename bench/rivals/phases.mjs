import { residentMb } from '../processes.mjs';
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
export async function writes(desk, { count }) {
  return await onEmptyStore(desk, async ({ open, write }) => {
    const client = await open();
    for (let i = 0; i < 10; i += 1) await mustWrite(write, client, `warm-${i}`);
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

/** The p50 of a write as the store grows, and the memory of the process before and after. */
export async function growth(desk, { windows, limitMs }) {
  return await onEmptyStore(desk, async ({ open, write }) => {
    const client = await open();
    await client.request('tools/list', {});
    await mustWrite(write, client, 'item-0');
    const started = residentMb(client.child.pid);
    const points = [];
    const began = performance.now();
    let [items, cut] = [1, undefined];
    for (const { until, sample } of windows) {
      const late = () => performance.now() - began > limitMs;
      while (items < until - sample && !late()) {
        await mustWrite(write, client, `item-${items}`);
        items += 1;
      }
      if (late()) {
        cut = { items, after_s: limitMs / 1000 };
        break;
      }
      const samples = await timed(sample, (i) => mustWrite(write, client, `item-${items + i}`));
      items += sample;
      points.push({ items, p50: p50(samples), p99: p99(samples) });
    }
    const after = residentMb(client.child.pid);
    return { growth: { points, ...(cut !== undefined && { cut }) }, memory: { started, after } };
  });
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

/** Two processes on one store, as two clients of one project make them; each writes one at a time. */
export async function twoProcesses(desk, { tries, count, limitMs }) {
  return await sum(tries, () =>
    onEmptyStore(desk, async ({ open, write, tryWrite, stored }) => {
      const first = await open();
      await mustWrite(write, first, 'warm');
      const clients = [first, await open()];
      const names = [];
      let refused = 0;
      const began = performance.now();
      await Promise.all(
        clients.map(async (client, side) => {
          for (let i = 0; i < count && performance.now() - began < limitMs; i += 1) {
            const name = `item-${side}-${i}`;
            if (await tryWrite(client, name)) names.push(name);
            else refused += 1;
          }
        }),
      );
      for (const client of clients) await client.close();
      return { refused, ...compare(names, await stored()) };
    }),
  );
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
  return {
    tries: outcomes.length,
    ...Object.fromEntries(['acknowledged', 'refused', 'lost', 'unreadable'].map((key) => [key, sumOf(key)])),
  };
}
