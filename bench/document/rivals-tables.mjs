import { short } from '../table.mjs';
import { figure, table, words } from './markdown.mjs';

const server = words('Server', ({ name, version }) =>
  name === 'Colibri' ? `**${name}**` : `${name} ${version}`,
);

export function rivalsSpeed({ rivals, 'tools-list': { list: ownList } }) {
  // Its list is measured more often than the servers are compared, and does not depend on the machine.
  const servers = rivals.servers.map((row) => (row.name === 'Colibri' ? { ...row, list: ownList } : row));
  return table(
    [
      server,
      figure('`initialize` ms', ({ started }) => started?.initialize),
      figure('`tools/list` ms', ({ started }) => started?.tools_list),
      figure('tools', ({ list }) => list?.tools),
      figure('list bytes', ({ list }) => list?.bytes),
      figure('tokens', ({ list }) => list?.tokens),
      figure('write p50 ms', ({ write }) => write?.p50),
      figure('p99', ({ write }) => write?.p99),
      figure('syncs a write', ({ syncs_per_write }) => syncs_per_write),
      figure(
        `writes/s, ${rivals.extent.together.inFlight} in flight`,
        ({ together }) => together?.per_second,
      ),
      figure('writes/s, two processes', ({ two }) => two?.per_second),
      figure(
        `the first ${short(rivals.extent.twoProcesses.first)} of each`,
        ({ two }) => two?.first_per_second,
      ),
      figure(
        `writes/s, two processes, ${rivals.extent.twoBusy.inFlight} in flight each`,
        ({ two_busy }) => two_busy?.per_second,
      ),
      figure('MB at start', ({ memory }) => memory?.started),
      figure('MB when grown', ({ memory }) => memory?.after),
    ],
    servers,
  );
}

export function rivalsGrowth({ rivals }) {
  const sizes = rivals.extent.growth.windows.map(({ until }) => until);
  return table(
    [
      server,
      words('Store', ({ store }) => store),
      ...sizes.map((size) =>
        figure(
          size.toLocaleString('en'),
          ({ growth }) => growth?.points.find(({ items }) => items === size)?.p50,
        ),
      ),
    ],
    rivals.servers,
  );
}

export function rivalsKept({ rivals }) {
  const { together, killedIdle, killedBusy, twoProcesses, twoBusy } = rivals.extent;
  const kept = (title, of) =>
    words(title, (row) => {
      const sum = of(row);
      if (sum === undefined) return '–';
      const refused = sum.refused > 0 ? `, ${short(sum.refused)} refused` : '';
      const lost =
        sum.lost > 0
          ? `**${short(sum.lost)} of ${short(sum.acknowledged)} lost**`
          : `0 of ${short(sum.acknowledged)}`;
      const broken =
        sum.unreadable > 0 ? `; store unreadable after ${sum.unreadable} of ${sum.tries} tries` : '';
      return lost + refused + broken;
    });
  return table(
    [
      server,
      kept(`${together.inFlight} in flight`, (row) => row.together),
      kept(`\`kill -9\` after the ${killedIdle.count}th answer`, (row) => row.killed),
      kept(`\`kill -9\` with ${killedBusy.inFlight} in flight`, (row) => row.killed_in_burst),
      kept(`two processes, ${short(twoProcesses.count)} writes each`, (row) => row.two),
      kept(`two processes, ${twoBusy.inFlight} in flight each`, (row) => row.two_busy),
    ],
    rivals.servers,
  );
}

/** How each was set up, where a growth was cut, and what could not be measured. */
export function rivalsNotes({ rivals }) {
  const notes = rivals.servers.flatMap(({ name, setting, growth, failed = {} }) => [
    ...(setting === undefined ? [] : [`- ${name} runs ${setting}.`]),
    ...(growth?.cut === undefined
      ? []
      : [`- ${name}: growth was cut after ${growth.cut.after_s} s, at ${short(growth.cut.items)} items.`]),
    ...Object.entries(failed).map(([phase, reason]) => `- ${name}: ${phase} not measured: ${reason}.`),
  ]);
  return [...notes, `- Tokens ${rivals.tokens_by}.`].join('\n');
}
