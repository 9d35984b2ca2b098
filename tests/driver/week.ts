import { runColibri } from './command-line.ts';
import type { Playground } from './playground.ts';
import type { ServerProcess } from './server-process.ts';

// A week of three agents: 150 tasks, 600 thoughts, in German, Chinese, Persian and emoji, with refusals, cancellations,
// takeovers and an erasure by the lead. The script keeps its own count of what it did, from the answers it got.

const AGENTS = ['ada', 'bob', '小明'] as const;
const PROJECTS = ['website', 'research', 'billing'] as const;
const TITLES = [
  'Die Übergabe der Schlüssel an die Werkstatt beschreiben',
  '发布第二版的说明并通知所有的客户',
  'گزارش هفتگی را برای گروه بنویس',
  'Ship the new icons 🎨👩‍👩‍👧‍👦 everywhere',
  'Rotate the signing keys of the staging environment',
];
const THOUGHTS = [
  'Die Preise stehen mit Steuer da: die meisten kaufen für sich selbst.',
  '先做小的改动，因为这样出错时影响最小。',
  'این کار را اول انجام می‌دهیم، چون بقیه به آن وابسته‌اند.',
  'Small steps 🐾: a mistake then stays small.',
];
const TASKS_EACH = 50;
const THOUGHTS_EACH = 4;

/** What the script did, by agent and by project. */
const COUNTED = [
  ...(['created', 'started', 'finished', 'cancelled', 'refused', 'thoughts', 'abandoned', 'erased'] as const),
];
type Counted = (typeof COUNTED)[number];
export type Tally = Map<string, Record<Counted, number>>;

export interface Week {
  readonly byAgent: Tally;
  readonly byProject: Tally;
  readonly commits: Set<string>;
  readonly finished: Map<string, { readonly by: string; readonly reason: string }>;
  /** Tasks that were left in progress, and those that somebody else took over, with both. */
  readonly left: { task_id: string; by: string; project: string }[];
  readonly takenOver: { task_id: string; by: string; taken_over_by: string }[];
  /** Between the first and the second half of the week. */
  middle: string;
}

/** Plays the week through three servers at once. */
export async function playWeek(colibri: Playground): Promise<Week> {
  const week: Week = {
    ...{ byAgent: new Map(), byProject: new Map(), commits: new Set(), finished: new Map(), middle: '' },
    ...{ left: [], takenOver: [] },
  };
  const servers = await Promise.all(AGENTS.map((clientName) => colibri.start({ clientName })));
  const half = async (from: number, to: number) =>
    await Promise.all(servers.map((server, i) => workOn(server, AGENTS[i] ?? '', from, to, week)));
  await half(0, TASKS_EACH / 2);
  await new Promise((resolve) => setTimeout(resolve, 20));
  week.middle = new Date().toISOString();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await half(TASKS_EACH / 2, TASKS_EACH);
  await Promise.all(servers.map((server) => server.closeInput()));
  await takeOver(colibri, week);
  await eraseOne(colibri, week);
  return week;
}

/** Everybody has gone home: ada takes over what the others left. */
async function takeOver(colibri: Playground, { left, takenOver, byAgent, byProject }: Week): Promise<void> {
  const server = await colibri.start({ clientName: 'ada' });
  for (const { task_id, by, project } of left.filter(({ by }) => by !== 'ada').slice(0, 5)) {
    await server.call('task_update', { task_id, takeover: true });
    add(byAgent, by, 'abandoned');
    add(byProject, project, 'abandoned');
    takenOver.push({ task_id, by, taken_over_by: 'ada' });
  }
  await server.closeInput();
}

/** The lead erases what should not have been written down. */
async function eraseOne(colibri: Playground, { byAgent, byProject }: Week): Promise<void> {
  const args = ['erase', 'TH-1', '--reason', 'a customer asked for it', '--yes'];
  const { code, stderr } = await runColibri(colibri, args, { env: { COLIBRI_AGENT_ID: 'lead' } });
  if (code !== 0) throw new Error(stderr);
  add(byAgent, 'lead', 'erased');
  add(byProject, 'website', 'erased');
}

async function workOn(
  server: ServerProcess,
  agent: string,
  from: number,
  to: number,
  week: Week,
): Promise<void> {
  for (let i = from; i < to; i += 1) {
    const project = PROJECTS[i % PROJECTS.length] ?? 'website';
    const count = (what: Counted) => {
      add(week.byAgent, agent, what);
      add(week.byProject, project, what);
    };
    const made = await server.call('task_create', {
      title: `${TITLES[i % TITLES.length]} ${i + 1}`,
      project,
      priority: ['low', 'normal', 'high', 'critical'][i % 4],
      labels: i % 2 === 0 ? ['woche'] : [],
    });
    const task_id = String(made.envelope?.data?.task_id);
    count('created');
    const reasons = Array.from(
      { length: THOUGHTS_EACH },
      (_, n) => `${THOUGHTS[(i + n) % THOUGHTS.length]} (${agent} ${i + 1}.${n + 1})`,
    );
    const calls: [tool: string, args: object][] = reasons.map((content, n) => {
      const commit_sha =
        n === 0 ? `${agent === '小明' ? 'c' : agent[0]}${String(i).padStart(9, '0')}` : undefined;
      if (commit_sha !== undefined) week.commits.add(commit_sha);
      count('thoughts');
      return ['thought_record', { task_id, type: 'decision', content, ...(commit_sha && { commit_sha }) }];
    });
    const move = (status: string, what?: Counted) => {
      calls.push(['task_update', { task_id, status }]);
      if (what !== undefined) count(what);
    };
    // Every fifth stays in the backlog, every tenth is cancelled, every fourth of the others is tried too early.
    const isStarted = i % 5 !== 4;
    const isFinished = isStarted && i % 3 !== 2;
    if (i % 10 === 9) move('cancelled', 'cancelled');
    if (isStarted && i % 4 === 0) move('done', 'refused');
    if (isStarted) move('todo');
    if (isStarted) move('in_progress', 'started');
    if (isFinished) move('review');
    if (isFinished) move('done', 'finished');
    await server.callTogether(calls);
    if (isFinished) week.finished.set(task_id, { by: agent, reason: reasons.at(-1) ?? '' });
    else if (isStarted) week.left.push({ task_id, by: agent, project });
  }
}

function add(tally: Tally, name: string, what: Counted): void {
  const none = Object.fromEntries(COUNTED.map((one) => [one, 0])) as Record<Counted, number>;
  const counts = tally.get(name) ?? none;
  counts[what] += 1;
  tally.set(name, counts);
}
