/// <reference lib="dom" />
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { displayWidth } from '../../src/cli/text.ts';
import { runColibri, StayingCommand } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { playWeek, type Tally, type Week } from '../driver/week.ts';
import {
  type Browser,
  openPage,
  settled,
  shownText,
  startBrowser,
  verdictOf,
  watchPage,
} from './chromium.ts';

// Issue 18: a lead's questions about a week of three agents, answered by commands and by the page, with the same numbers.

interface Stats {
  readonly totals: Record<string, number>;
  readonly by_agent: readonly ({ readonly name: string } & Record<string, unknown>)[];
  readonly by_project: Stats['by_agent'];
  readonly finished: readonly Record<'task_id' | 'by' | 'reason' | 'title', string>[];
  readonly started: readonly Record<'by', string>[];
  readonly cancelled: readonly Record<'by', string>[];
  readonly abandoned: readonly Record<'task_id' | 'by' | 'taken_over_by', string>[];
  readonly erased: readonly Record<'what' | 'by', string>[];
  readonly refused: readonly { readonly code: string; readonly count: number; readonly reason: string }[];
  readonly commits: readonly { readonly commit: string }[];
  readonly tasks_now: readonly Record<'open' | 'finished' | 'cancelled' | 'total', number>[];
}

let colibri: Playground;
let week: Week;
let stats: Stats;
const browser: Browser = await startBrowser();
const run = (...args: string[]) => runColibri(colibri, args);
const statsOf = async (...args: string[]) =>
  JSON.parse((await run('stats', '--json', ...args)).stdout) as Stats;

beforeAll(async () => {
  colibri = new Playground();
  week = await playWeek(colibri);
  stats = await statsOf('--since', '7d');
}, 240_000);

afterAll(async () => {
  if ('context' in browser) await browser.close();
  expect(await colibri.dispose()).toEqual([]);
});

const tallied = (tally: Tally) => [...tally].map(([name, counts]) => ({ name, ...counts })).sort(byName);
const counted = (rows: Stats['by_agent'], tally: Tally) => {
  const names = Object.keys([...tally.values()][0] ?? {});
  return rows
    .map((row) => ({ name: row.name, ...Object.fromEntries(names.map((one) => [one, row[one]])) }))
    .sort(byName);
};
const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1);

describe('by commands', () => {
  test('who did how much, in all and in each project', () => {
    expect(counted(stats.by_agent, week.byAgent)).toEqual(tallied(week.byAgent));
    expect(counted(stats.by_project, week.byProject)).toEqual(tallied(week.byProject));
  });

  test('the counts add up, cancelled tasks included', async () => {
    for (const [name, total] of Object.entries(stats.totals))
      for (const rows of [stats.by_agent, stats.by_project])
        expect(
          rows.reduce((sum, row) => sum + Number(row[name]), 0),
          name,
        ).toBe(total);
    const now = { open: 0, finished: 0, cancelled: 0, total: 0 };
    for (const row of stats.tasks_now)
      for (const name of ['open', 'finished', 'cancelled', 'total'] as const) now[name] += row[name];
    expect(now.total).toBe(150);
    expect(now.open + now.finished + now.cancelled).toBe(150);
    expect(now).toMatchObject({ finished: stats.totals.finished, cancelled: stats.totals.cancelled });
    expect(stats.totals).toMatchObject({ created: 150, thoughts: 600 });
    expect([stats.finished, stats.started, stats.cancelled].map(({ length }) => length)).toEqual(
      ['finished', 'started', 'cancelled'].map((name) => stats.totals[name]),
    );
  });

  test('what was finished and why, by whom, and the commits that thoughts name', () => {
    const told = stats.finished.map(({ task_id, by, reason }) => [task_id, { by, reason }] as const);

    expect(new Map(told)).toEqual(week.finished);
    expect(new Set(stats.commits.map(({ commit }) => commit))).toEqual(week.commits);
    expect(stats.refused).toEqual([
      expect.objectContaining({ code: 'ERR_INVALID_TRANSITION', count: stats.totals.refused }),
    ]);
    expect(stats.refused[0]?.reason).toContain('Allowed next');
  });

  test('what was taken over and from whom, and what was erased, by whom and why', async () => {
    const text = (await run('stats', '--since', '7d', '--limit', '200')).stdout;
    const [erased] = stats.erased;

    expect(stats.abandoned.map(({ task_id, by, taken_over_by }) => ({ task_id, by, taken_over_by }))).toEqual(
      week.takenOver.toReversed(),
    );
    expect(stats.erased).toHaveLength(1);
    expect(erased).toMatchObject({ what: 'Θ-0001 because a customer asked for it', by: 'lead' });
    expect(text).toContain(`Refused (${stats.totals.refused})`);
    expect(text).toMatch(/Abandoned \(5\)\n {2}T-\d+ .* · taken over by ada\n/);
    expect(text).toMatch(/Erased \(1\)\n {2}Θ-0001 because a customer asked for it · lead · \d{4}/);
  });

  test('of one agent the same counts and lists as of that agent among all', async () => {
    const [one] = week.takenOver;
    const own = await statsOf('--since', '7d', '--actor', one?.by ?? '');

    expect([{ name: one?.by, ...own.totals }]).toEqual(stats.by_agent.filter(({ name }) => name === one?.by));
    expect(own.by_agent.map(({ name }) => name)).toEqual([one?.by]);
    for (const list of ['abandoned', 'started', 'finished', 'cancelled'] as const)
      expect(own[list], list).toEqual(stats[list].filter(({ by }) => by === one?.by));
  });

  test('a period ends and begins where it is told to, and nothing falls between two of them', async () => {
    const [before, after] = [
      await statsOf('--since', '7d', '--until', week.middle),
      await statsOf('--since', week.middle),
    ];

    expect(before.totals.created).toBe(75);
    for (const [name, total] of Object.entries(stats.totals))
      expect(Number(before.totals[name]) + Number(after.totals[name]), name).toBe(total);
    expect((await statsOf('--until', '2020-01-01', '--since', '2019-01-01')).totals.created).toBe(0);
  });

  test('one agent in one project, in the statistics and in the log', async () => {
    const some = await statsOf('--actor', '小明', '--project', 'billing');
    const filter = ['--actor', '小明', '--project', 'billing'];
    const lines = (await run('log', '--json', ...filter)).stdout.split('\n').slice(0, -1);
    const calls = lines.map((line) => JSON.parse(line) as { row: { tool: string; actor: string } });
    const people = await run('log', ...filter, '--limit', '7');

    expect(some.by_agent.map(({ name }) => name)).toEqual(['小明']);
    expect(some.by_project.map(({ name }) => name)).toEqual(['billing']);
    expect(calls.filter(({ row }) => row.tool === 'thought_record')).toHaveLength(
      Number(some.totals.thoughts),
    );
    expect(calls.filter(({ row }) => row.tool === 'task_create')).toHaveLength(Number(some.totals.created));
    expect(people.stdout.split('\n')).toHaveLength(7 + 2);
    expect(people.stdout).toContain(
      `${calls.length - 7} earlier calls: --limit ${calls.length} or --all shows them.`,
    );
  });

  test('where the reasons are that speak of something', async () => {
    const said = async (...args: string[]) => JSON.parse((await run('search', ...args, '--json')).stdout);
    const project = await said('PREISE', 'steuer', '--project', 'billing', '--limit', '3');

    // One on each task, and one of them was erased.
    expect(await said('PREISE', 'steuer')).toMatchObject({ total_count: 0, thoughts_total_count: 150 - 1 });
    expect(await said('وابسته‌اند')).toMatchObject({ thoughts_total_count: 150 });
    expect(project).toMatchObject({ thoughts_total_count: 48, thoughts_returned_count: 3 });
  });

  test('what is open, cancelled or urgent, as a list, as a board and for a spreadsheet', async () => {
    const cancelled = await run('list', '--status', 'cancelled', '--csv');
    const board = JSON.parse((await run('board', '--all', '--json')).stdout) as {
      status: string;
      tasks: object[];
    }[];

    expect(cancelled.stdout.trimEnd().split('\r\n')).toHaveLength(1 + Number(stats.totals.cancelled));
    expect(board.flatMap(({ tasks }) => tasks)).toHaveLength(150);
    expect(board.find(({ status }) => status === 'done')?.tasks).toHaveLength(Number(stats.totals.finished));
    const csv = await run('stats', '--csv');
    // Three agents in three projects, and the lead in one.
    expect(csv.stdout.trimEnd().split('\r\n')).toHaveLength(1 + 3 * 3 + 1);
  });

  test.each([80, 140])('every screen fits into %d columns', async (columns) => {
    for (const args of [
      ['stats'],
      ['list', '-n', '20'],
      ['board'],
      ['log', '-n', '20'],
      ['sessions'],
      ['show', 'T-3'],
    ]) {
      const { code, stdout } = await runColibri(colibri, args, { env: { COLUMNS: String(columns) } });
      expect(code).toBe(0);
      const wide = stdout.split('\n').filter((line) => displayWidth(line) > columns);
      expect(wide, args.join(' ')).toEqual([]);
    }
  });
});

test.skipIf('reason' in browser)('by the report, with the same numbers', { timeout: 180_000 }, async () => {
  if ('reason' in browser) return;
  const path = colibri.path('week.html');
  expect((await run('report', '--since', '7d', '-o', path)).code).toBe(0);

  const { page, complaints } = await openPage(browser.context, path);
  expect((await verdictOf(page)).tone).toBe('good');
  const shown = await page.evaluate(() => {
    const card = [...document.querySelectorAll('section.card')].find((one) =>
      /^Since /.test(one.textContent ?? ''),
    );
    return {
      totals: card?.querySelector('p')?.textContent ?? '',
      sections: [...(card?.querySelectorAll('section') ?? [])].map((one) => one.textContent ?? ''),
      headings: [...(card?.querySelectorAll('h3') ?? [])].map((one) => one.textContent),
    };
  });
  const [agents, projects] = [await rowsOf(page, 'Counts by agent'), await rowsOf(page, 'Counts by project')];
  const grounds = await shownText(page, '.grounds');
  await page.close();

  expect(complaints).toEqual([]);
  expect(shown.totals).toBe(
    Object.entries(stats.totals)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  );
  const together = { ...stats.totals, name: 'together' } as Stats['by_agent'][number];
  expect(agents).toEqual(asTable([...stats.by_agent, together]));
  expect(projects).toEqual(asTable([...stats.by_project, together]));
  expect(shown.headings).toContain(`Finished (${stats.totals.finished})`);
  expect(shown.headings).toContain(`Cancelled (${stats.totals.cancelled})`);
  const section = (name: string) => shown.sections.find((text) => text.startsWith(name)) ?? '';
  for (const { task_id } of week.takenOver) expect(section('Abandoned (5)')).toContain(task_id);
  expect(section('Abandoned (5)').match(/taken over by ada/g)).toHaveLength(5);
  // N8: as "colibri stats" counts them, and not how many kinds there are.
  expect(stats.totals.refused).toBeGreaterThan(stats.refused.length);
  expect(section(`Refused (${stats.totals.refused})`)).toContain(stats.refused[0]?.reason);
  expect(section('Erased (1)')).toContain('Θ-0001 because a customer asked for itlead');
  expect(grounds).toMatch(/Θ-0001 was erased by lead at \S+ \(1 text\) because: a customer asked for it/);
});

test.skipIf('reason' in browser)(
  'by the live page, with the same numbers',
  { timeout: 180_000 },
  async () => {
    if ('reason' in browser) return;
    const served = new StayingCommand(colibri, ['serve', '--json'], { holdsInput: true });
    await served.printed('}');
    const { url } = JSON.parse(served.stdout);
    const { page, complaints } = await watchPage(browser.context);
    await page.goto(url);
    await page.waitForSelector('body[data-ready=true]');
    await page.waitForFunction(() =>
      /through row ([\d,]+) of \1;/.test(document.querySelector('#panel-summary')?.textContent ?? ''),
    );
    await settled(page);
    const figures = await shownText(page, '.figures');
    const [agents, projects] = [await rowsOf(page, 'Agents'), await rowsOf(page, 'Projects')];
    await page.selectOption('#filter-agent', '小明');
    await settled(page);
    const one = await rowsOf(page, 'Agents');
    await page.close();
    served.closeInput();
    await served.ended();

    // How many calls there were besides, reads included, is in the last column.
    const counted = (rows: readonly (readonly string[])[]) => rows.map((row) => row.slice(0, -1));
    expect(complaints.filter((line) => !line.startsWith(`request: ${url}`))).toEqual([]);
    expect(counted(agents).sort()).toEqual(asTable(stats.by_agent).sort());
    expect(counted(projects).sort()).toEqual(asTable(stats.by_project).sort());
    expect(one.map(([name]) => name)).toEqual(['小明']);
    const [now] = [{ finished: 0, open: 0, cancelled: 0 }];
    for (const row of stats.tasks_now)
      for (const name of ['finished', 'open', 'cancelled'] as const) now[name] += row[name];
    expect(figures).toContain(
      `${now.finished}\ntasks finished\nof 150; ${now.open} open, ${now.cancelled} cancelled`,
    );
    expect(figures).toContain('600\nthoughts recorded');
  },
);

/** The counts of some rows, as a table shows them. */
function asTable(rows: Stats['by_agent']): string[][] {
  const names = Object.keys(stats.totals).filter((name) => Number(stats.totals[name]) > 0);
  return rows.map((row) => [row.name, ...names.map((name) => String(row[name]))]);
}

/** The lines of a table below its heading. */
async function rowsOf(page: Page, label: string): Promise<string[][]> {
  return await page.$$eval(`[aria-label="${label}"] tbody tr`, (rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')),
  );
}
