import { linearScale, lineChart, logScale } from '../plot.mjs';
import { short } from '../table.mjs';

/** Latency of each call against the size of the database. The steps are tens, so they stand equally far apart. */
export function growthPlot({ series, machine }) {
  const sizes = series[0].points.map(({ tasks }) => tasks);
  const at = (i) => 0.02 + (0.96 * i) / (sizes.length - 1);
  const max = Math.max(...series.flatMap(({ points }) => points.map(({ p50 }) => p50)));
  return lineChart({
    title: 'Latency against database size',
    subtitle: `p50 of a call over stdio, one in flight; ${machine.cores} cores, Node ${machine.node}`,
    x: {
      label: 'tasks in the database, each with ten audit rows',
      ticks: sizes.map((size, i) => ({ at: at(i), text: size === 0 ? 'empty' : size.toLocaleString('en') })),
    },
    y: { label: 'milliseconds', ...linearScale(max) },
    series: series.map(({ name, points }) => ({
      name,
      points: points.map(({ p50 }, i) => ({ at: at(i), value: p50, text: short(p50) })),
    })),
  });
}

/** Latency of one write as the store grows, of all servers. They lie far apart: powers of ten. */
export function rivalsPlot({ servers, extent, machine }) {
  const most = extent.growth.windows.at(-1).until;
  const grown = servers.filter(({ growth }) => growth !== undefined && growth.points.length > 0);
  const values = grown.flatMap(({ growth }) => growth.points.map(({ p50 }) => p50));
  return lineChart({
    title: 'One write as the store grows',
    subtitle: `p50 of a write over stdio, one in flight; ${machine.cores} cores, Node ${machine.node}`,
    x: {
      label: 'items stored',
      ticks: [0, 0.2, 0.4, 0.6, 0.8, 1].map((at) => ({ at, text: (at * most).toLocaleString('en') })),
    },
    y: { label: 'milliseconds', ...logScale(Math.min(...values), Math.max(...values)) },
    series: grown.map(({ name, growth: { points, cut } }) => ({
      name,
      points: points.map(({ items, p50 }) => ({
        at: items / most,
        value: p50,
        text: `${short(p50)}${cut === undefined ? '' : ', then cut'}`,
      })),
    })),
  });
}
