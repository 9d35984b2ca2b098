import { setTimeout as sleep } from 'node:timers/promises';
import { parseInstant } from '../instant.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { callsAfter, concerns, newestCalls, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import { proofReach } from './proof-reach.ts';
import { PROOF_LEGEND, tellCall } from './story.ts';

const LIMIT_DEFAULT = 50;
const FOLLOW_MS = 500;
const READING_TOOLS: readonly string[] = [
  'task_get',
  'task_list',
  'task_next_actions',
  'thought_record_list',
  'audit_verify_chain',
  'merkle_root',
  'skill_list',
  'server_ping',
  'server_health',
];

/** The trail of calls and thoughts, as a story. */
export const log: Command = {
  name: 'log',
  usage: '[--task ID] [--session ID] [--since TIME] [--follow]',
  summary: 'the trail of calls and thoughts: who, what, why, how well proved',
  details: `Oldest first. ${PROOF_LEGEND}. Successful reads are left out unless --all is given.`,
  options: {
    task: { type: 'string', value: 'ID', help: 'only what concerns this task' },
    session: { type: 'string', value: 'ID', help: 'only what concerns this session' },
    since: { type: 'string', value: 'TIME', help: 'only from this time on (ISO-8601)' },
    limit: { type: 'string', short: 'n', value: 'N', help: `at most N calls, the newest (${LIMIT_DEFAULT})` },
    all: { type: 'boolean', help: 'reads too' },
    follow: { type: 'boolean', short: 'f', help: 'go on as new calls arrive' },
  },
  positionals: [0, 0],
  async run(invocation) {
    const { values, out, config } = invocation;
    const settings = config();
    const wanted = filterOf(invocation);
    const limit = readLimit(values.limit);
    return await withDatabase(settings, undefined, async (storage) => {
      const calls = await storage.read((tx) => newestCalls(tx, wanted, limit));
      const show = (call: PastCall) => {
        if (out.json) out.line(JSON.stringify(call));
        else for (const line of tellCall(call, proofReach(settings), out)) out.line(line);
      };
      if (calls.length === 0 && !out.json) out.line('Nothing yet.');
      for (const call of calls) show(call);
      let position = calls.at(-1)?.position ?? 0;
      while (values.follow === true) {
        await sleep(FOLLOW_MS);
        const news = await storage.read((tx) => callsAfter(tx, position));
        for (const call of news.calls) if (wanted(call)) show(call);
        position = news.through;
      }
      return EXIT.fine;
    });
  },
};

function filterOf({ values }: Invocation): (call: PastCall) => boolean {
  const since = values.since === undefined ? undefined : readTime(String(values.since));
  return (call) => {
    if (values.all !== true && call.row.outcome === 'ok' && READING_TOOLS.includes(call.row.tool))
      return false;
    if (typeof values.task === 'string' && !concerns(call, values.task)) return false;
    if (typeof values.session === 'string' && !concerns(call, values.session)) return false;
    return since === undefined || call.row.at >= since;
  };
}

function readTime(text: string): string {
  const time = parseInstant(text);
  if (time !== undefined) return time;
  throw new UsageError(`--since takes a time such as 2026-01-31 or 2026-01-31T12:00Z, not "${text}".`);
}

function readLimit(value: unknown): number {
  if (value === undefined) return LIMIT_DEFAULT;
  const limit = Number(value);
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new UsageError(`--limit takes a whole number from 1, not "${String(value)}".`);
  return limit;
}
