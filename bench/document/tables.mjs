import { short } from '../table.mjs';
import { figure, table, words } from './markdown.mjs';
import { WHERE } from './where.mjs';

const rowsOf = (results) => Object.values(results).flatMap(({ rows }) => rows);

/** How many bars are met, and which are not. */
export function verdictText(results) {
  const rows = rowsOf(results);
  const missed = rows.filter(({ verdict }) => verdict === 'missed');
  const counts = `**${rows.length - missed.length} of ${rows.length} bars are met.**`;
  if (missed.length === 0) return counts;
  return `${counts} Missed: ${missed.map(({ what }) => what).join('; ')}. [Why](#what-is-missed-and-where-the-time-goes)`;
}

/** Every row beside its reference. */
export function barsTable(results) {
  return table(
    [
      words('What', ({ what }) => what),
      words('Reference in the same run', (row) =>
        row.reference === undefined ? '' : `${short(row.reference)} ${row.unit}: ${row.reference_is}`,
      ),
      figure('p50', ({ p50, unit }) => `${short(p50)} ${unit}`),
      figure('p99', ({ p99 }) => (p99 === undefined ? '' : p99)),
      figure('Judged', ({ value, spread }) =>
        spread === undefined ? value : `${short(value)} (${short(spread[0])}–${short(spread[1])})`,
      ),
      words('Bar', ({ bar }) => bar),
      words('Verdict', ({ verdict }) => (verdict === 'met' ? 'met' : '**missed**')),
    ],
    rowsOf(results),
  );
}

/** For each missed bar, by how much, and what is known of the reason. */
export function missedText(results) {
  const missed = rowsOf(results).filter(({ verdict }) => verdict === 'missed');
  if (missed.length === 0) return 'Nothing is missed in these results.';
  return missed
    .map((row) => {
      const gap = `measured ${short(row.value)}, the bar is ${row.bar}`;
      const note = row.note === undefined ? '' : ` (${row.note})`;
      return `- **${row.what}**: ${gap}${note}. ${WHERE[row.id] ?? 'Not looked into yet.'}`;
    })
    .join('\n');
}

/** What is left of the calls in flight where they leave no pause. */
export function sustainedText({ calls: { sustained } }) {
  const { calls, per_second, share } = sustained;
  return `${calls.toLocaleString('en')} new tasks without any pause: ${short(per_second)} calls/s, ${(100 * share).toFixed(1)} % of the bare server’s.`;
}

/** The figures behind the plot. */
export function seriesTable({ growth }) {
  const sizes = growth.series[0].points.map(({ tasks }) => tasks);
  return table(
    [
      words('p50 in ms (p99)', ({ name }) => name),
      ...sizes.map((size, i) =>
        figure(size === 0 ? 'empty' : `${size.toLocaleString('en')} tasks`, ({ points }) => {
          return `${short(points[i].p50)} (${short(points[i].p99)})`;
        }),
      ),
    ],
    growth.series,
  );
}

/** Which machine, when, and how busy it was. Sections may have been measured at different times. */
export function machineText(results) {
  const sections = Object.entries(results);
  const machines = new Map(sections.map(([, { machine }]) => [JSON.stringify(machine), machine]));
  const described = [...machines.values()].map(
    (m) =>
      `- ${m.cpu}, ${m.cores} cores, ${m.memory_gb} GB, ${m.system}, databases on ${m.file_system}, Node ${m.node}`,
  );
  return [
    ...described,
    '',
    table(
      [
        words('Section', ([name]) => `\`${name}\``),
        words('Measured', ([, { at }]) => `${at.slice(0, 16).replace('T', ' ')} UTC`),
        figure('Load before', ([, { load_before }]) => load_before),
        words('', ([, { quick, note }]) => [quick ? 'quick run' : '', note ?? ''].filter(Boolean).join(', ')),
      ],
      sections,
    ),
  ].join('\n');
}
