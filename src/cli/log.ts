import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { parseInstant } from '../instant.ts';
import { formatId, type StateTable } from '../log/state.ts';
import { SESSIONS, TASKS } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import {
  callsAfter,
  concerning,
  type Filter,
  newestCalls,
  newestPosition,
  type PastCall,
  toldOf,
} from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { ProofDesk } from './proof-status.ts';
import { parseRecordId } from './record-id.ts';
import { readSignedHeads, type SignedHeads } from './signed-heads.ts';
import { type Stopping, untilStopped } from './stopping.ts';
import { PROOF_LEGEND, tellCall } from './story.ts';
import { printable } from './text.ts';

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
  usage: '[--task ID] [--session ID] [--since TIME] [--limit N] [--all] [--follow]',
  summary: 'the trail of calls and thoughts: who, what, why, how well proved',
  details: `Oldest first, times in UTC. ${PROOF_LEGEND}. A mark speaks of the two audit rows of its call and what lies beside them: they were hashed now and led to a signed head that was found now. It says nothing of other rows; "colibri verify" does. Successful reads are left out unless --all is given. --json prints one object a line. --follow stays until Ctrl-C. Exit 1 when a signed head disagrees.`,
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
    const filter = readFilter(invocation);
    const limit = readLimit(values.limit);
    const stopping = values.follow === true ? untilStopped() : undefined;
    if (stopping !== undefined) await waitForDatabase(settings, stopping, out);
    if (stopping?.stopped === true) return EXIT.fine;
    return await withDatabase(settings, undefined, async (storage) => {
      const heard = new Set<string>();
      const tell = async (calls: readonly PastCall[]) => {
        if (calls.length === 0) return;
        const heads = await readSignedHeads(settings, storage);
        for (const message of await storage.read((tx) => tellAll(tx, heads, calls, out))) {
          if (!heard.has(message)) out.error(`${printable(message)} "colibri verify" tells more.`);
          heard.add(message);
        }
      };
      // One look at both: a call between two looks would be told twice or not at all.
      const [calls, through] = await storage.read(async (tx) => [
        await newestCalls(tx, await filter(tx), limit, readId(values.task, TASKS)),
        await newestPosition(tx),
      ]);
      if (calls.length === 0 && !out.json) out.line(through === 0 ? 'Nothing yet.' : 'Nothing matches.');
      await tell(calls);
      if (stopping !== undefined) await follow(storage, through, stopping, filter, tell);
      return heard.size > 0 ? EXIT.found : EXIT.fine;
    });
  },
};

/** Who follows may come before the first call. The file is whole when it can be opened; until then it is being made. */
async function waitForDatabase(config: Config, stopping: Stopping, out: Output): Promise<void> {
  if (existsSync(config.dbPath)) return;
  out.error(`There is no database at ${config.dbPath} yet. Waiting for the first call.`);
  while (!stopping.stopped) {
    await stopping.pause(FOLLOW_MS);
    const opens = existsSync(config.dbPath) && withDatabase(config, undefined, async () => true);
    if (opens !== false && (await opens.catch(() => false))) return;
  }
}

/** Tells the calls that end after `through`, until somebody has had enough. */
async function follow(
  storage: StorageEngine,
  through: number,
  stopping: Stopping,
  filter: FilterReader,
  tell: (calls: readonly PastCall[]) => Promise<void>,
): Promise<void> {
  for (let position = through; !stopping.stopped; ) {
    const news = await storage.read(async (tx) => {
      const { calls, through } = await callsAfter(tx, position);
      return { calls: calls.length === 0 ? calls : calls.filter(await filter(tx)), through };
    });
    await tell(news.calls);
    // There may be more than one page: only an empty one is a reason to wait.
    if (news.through === position) await stopping.pause(FOLLOW_MS);
    position = news.through;
  }
}

/** Tells the calls, each with how well it is proved. Answers what was found wrong, in sentences. */
async function tellAll(
  tx: Reader,
  heads: SignedHeads,
  calls: readonly PastCall[],
  out: Output,
): Promise<string[]> {
  const desk = await ProofDesk.open(tx, heads);
  const changed: number[] = [];
  for (const call of calls) {
    const proof = await desk.ofCall(call);
    if (proof === 'wrong') changed.push(call.position);
    if (out.json) out.verbatim(JSON.stringify({ ...toldOf(call), proof }));
    else for (const line of tellCall(call, proof, out)) out.line(line);
  }
  return [
    ...[...desk.contradictions.values()].map(({ message }) => message),
    ...changed.map((position) => `The call that ended in audit row ${position} is not as it was recorded.`),
  ];
}

/** What belongs to a session grows, so each look asks anew. */
type FilterReader = (tx: Reader) => Promise<Filter>;

function readFilter({ values }: Invocation): FilterReader {
  const since = values.since === undefined ? undefined : readTime(String(values.since));
  const ids = [readId(values.task, TASKS), readId(values.session, SESSIONS)].filter((id) => id !== undefined);
  return async (tx) => {
    const subjects = await Promise.all(ids.map((id) => concerning(tx, id)));
    return (call) =>
      (values.all === true || call.row.outcome !== 'ok' || !READING_TOOLS.includes(call.row.tool)) &&
      (since === undefined || call.row.at >= since) &&
      subjects.every((concerns) => concerns(call));
  };
}

function readId(value: unknown, table: StateTable): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [, id] = parseRecordId(value, [table]);
  return formatId(table, id);
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
