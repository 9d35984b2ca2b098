// Loaded before the server by NODE_OPTIONS: says at its end how long its event loop stood still at most.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
// Loading and opening are not the question.
setTimeout(() => delay.enable(), 300).unref();
process.on('exit', () => {
  const longest = Math.max(0, Math.round(delay.max / 1e6) - RESOLUTION_MS);
  process.stderr.write(`event loop stopped ${longest} ms\n`);
});
