import { short } from '../table.mjs';
import { figure, table, words } from './markdown.mjs';

/** Calls a second by the number of processes that share a database. */
export function processesTable({ postgres }) {
  return table(
    [
      figure('Server processes', ({ processes }) => processes),
      figure('PostgreSQL, calls/s', (row) => row.postgres),
      figure('One file, calls/s', ({ file }) => file),
    ],
    postgres.by_processes,
  );
}

/** Calls a second by the time to the server and back. */
export function delayTable({ postgres }) {
  return table(
    [
      figure('Round trip, ms', ({ trip }) => trip),
      figure('One in flight, calls/s', ({ lone }) => lone),
      figure('Round trips per lone write', ({ trip, lone }) => 1000 / lone / trip),
      figure('32 in flight, calls/s', ({ many }) => many),
    ],
    postgres.by_delay,
  );
}

/** When it was measured, and on what. */
export function measuredText({ postgres }) {
  const { cpu, cores, node } = postgres.machine;
  const best = Math.max(...postgres.by_processes.map((row) => row.postgres));
  return words(
    '',
    () =>
      `Measured on ${postgres.at.slice(0, 10)} with Node ${node} on ${cores} cores (${cpu}). The most was ${short(best)} calls a second.`,
  ).of({});
}
