import { opendirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Sets V8 up for a process that serves calls, and answers what to tell it after each batch. */
export function tuneRuntime(): (calls: number) => void {
  // V8 would give short-lived objects 16 times the room they need here, and let the heap grow fourfold before it looks what
  // is still in use: 24 and 20 MB for nothing measurable.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=50');
  yieldToCalls();
  return optimizeOnceBusy();
}

/**
 * V8 compiles and collects garbage on threads of its own, half a second of it in the first thousand calls. On two cores, two
 * servers and their client sometimes waited milliseconds for these threads to leave a core. With a low priority for them, two
 * processes write 2 % more per second one call at a time, and 3 to 10 % more with 16 calls in flight.
 */
function yieldToCalls(): void {
  if (process.platform !== 'linux') return;
  try {
    const [main, ...others] = threadsInOrder();
    // Where these are the numbers of another namespace, they may be those of other processes here.
    if (main !== process.pid) return;
    const low = Math.min(getPriority() + PRIORITY_STEPS, LOWEST_PRIORITY);
    for (const thread of others.slice(0, THREADS_OF_V8)) setPriority(thread, low);
    // A call waits while short-lived objects are collected: that must not wait for those threads.
    setFlagsFromString('--no-parallel-scavenge');
  } catch {
    // Where threads cannot be seen or set, they stay as they are.
  }
}

/** The threads of this process in the order in which they were made. Sorted, as `readdirSync` does it, they would not be. */
function threadsInOrder(): number[] {
  const folder = opendirSync('/proc/self/task');
  try {
    const threads: number[] = [];
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync())
      threads.push(Number(entry.name));
    return threads;
  } finally {
    folder.closeSync();
  }
}

/** Node makes them before all others, unless told otherwise: four that work and one that wakes them. Syncs are on later ones. */
const THREADS_OF_V8 = 5;
const LOWEST_PRIORITY = 19;
/** Not down to the lowest: the main thread waits for them at the end of a large collection, and they must get on. */
const PRIORITY_STEPS = 10;

/**
 * Once a session has hundreds of calls, what runs often is optimized after a quarter of V8's usual time: a read then takes a
 * fifth less. Not before: it keeps another core busy, which two servers and their agents have better use for at the start.
 * From Node 22 on, V8 has a faster compiler in between and no such setting; the one in its place makes calls slower.
 */
function optimizeOnceBusy(): (calls: number) => void {
  let isBusy = !HAS_INTERRUPT_BUDGET;
  return (calls) => {
    if (isBusy || calls < BUSY_FROM_CALLS) return;
    isBusy = true;
    setFlagsFromString('--interrupt-budget=30000');
  };
}

const HAS_INTERRUPT_BUDGET = Number.parseInt(process.versions.v8, 10) < 12;
/** In the first 500 calls, optimizing early took a third of all processor time. */
const BUSY_FROM_CALLS = 256;
