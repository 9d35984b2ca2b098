import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { parseInstant } from '../instant.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { callLines, PROOF_LEGEND } from './call-text.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import {
  callData,
  callsAfter,
  concerning,
  type Filter,
  isReading,
  newestCalls,
  newestPosition,
  type PastCall,
} from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { proveCalls, readSignedLog, type SignedLog } from './proof-status.ts';
import { parseRecordId } from './record-id.ts';
import { type Stopping, untilStopped } from './stopping.ts';
import { printable } from './text.ts';

const LIMIT_DEFAULT = 50;
const FOLLOW_MS = 500;

/** Calls and thoughts in the order in which they happened. */
export const log: Command = {
  name: 'log',
  usage: '[--task ID] [--session ID] [--since TIME] [--limit N] [--all] [--follow]',
  summary: 'show calls and thoughts: who, what, why, and how well they are proved',
  details: `Oldest first, times in UTC. ${PROOF_LEGEND}. A mark covers the two audit rows of its call, their arguments and result, and the records they wrote: all of that was checked now under a signed head. It says nothing about other rows; "colibri verify" does. Successful reads are left out unless --all is given. --json prints one object per line. --follow stays until Ctrl-C. Exit 1 when something shown is not as it was signed.`,
  options: {
    task: { type: 'string', value: 'ID', help: 'only calls about this task' },
    session: { type: 'string', value: 'ID', help: 'only calls about this session' },
    since: { type: 'string', value: 'TIME', help: 'only calls from this time on (ISO-8601)' },
    limit: { type: 'string', short: 'n', value: 'N', help: `at most N calls, the newest (${LIMIT_DEFAULT})` },
    all: { type: 'boolean', help: 'also successful reads' },
    follow: { type: 'boolean', short: 'f', help: 'stay and show new calls as they arrive' },
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
    return await withDatabase(settings, async (storage) => {
      const reported = new Set<string>();
      const print = async (calls: readonly PastCall[]) => {
        if (calls.length === 0) return;
        const signed = await readSignedLog(settings, storage);
        const wrong = await storage.read((tx) => printCalls(storage, tx, signed, calls, out));
        reportNew(wrong, reported, out);
      };
      // One snapshot for both: a call between two snapshots would be shown twice or not at all.
      const [calls, through] = await storage.read(async (tx) => [
        await newestCalls(tx, await filter(tx), limit, readId(values.task, TASKS)),
        await newestPosition(tx),
      ]);
      if (calls.length === 0 && !out.json) out.line(through === 0 ? 'Nothing yet.' : 'Nothing matches.');
      await print(calls);
      if (stopping !== undefined) await follow(storage, through, stopping, filter, print);
      return reported.size > 0 ? EXIT.found : EXIT.fine;
    });
  },
};

const MESSAGES_MAX = 5;

/** Says what is wrong, each thing once. One deleted row may leave hundreds of others without a proof. */
function reportNew(messages: readonly string[], reported: Set<string>, out: Output): void {
  const news = [...new Set(messages)].filter((message) => !reported.has(message));
  for (const message of news.slice(0, MESSAGES_MAX)) out.error(printable(message));
  if (news.length > MESSAGES_MAX) out.error(`… and ${news.length - MESSAGES_MAX} more.`);
  if (news.length > 0) out.error('"colibri verify" checks everything.');
  for (const message of news) reported.add(message);
}

/** --follow may start before the first call. The file is complete when it can be opened; until then it is being created. */
async function waitForDatabase(config: Config, stopping: Stopping, out: Output): Promise<void> {
  if (existsSync(config.dbPath)) return;
  out.error(`There is no database at ${config.dbPath} yet. Waiting for the first call.`);
  while (!stopping.stopped) {
    await stopping.pause(FOLLOW_MS);
    const opens = existsSync(config.dbPath) && withDatabase(config, async () => true);
    if (opens !== false && (await opens.catch(() => false))) return;
  }
}

/** Prints the calls that end after `through`, until the user stops it. */
async function follow(
  storage: StorageEngine,
  through: number,
  stopping: Stopping,
  filter: FilterReader,
  print: (calls: readonly PastCall[]) => Promise<void>,
): Promise<void> {
  for (let position = through; !stopping.stopped; ) {
    const news = await storage.read(async (tx) => {
      const { calls, through } = await callsAfter(tx, position);
      return { calls: calls.length === 0 ? calls : calls.filter(await filter(tx)), through };
    });
    await print(news.calls);
    // There may be more than one page: only an empty one is a reason to wait.
    if (news.through === position) await stopping.pause(FOLLOW_MS);
    position = news.through;
  }
}

/** Prints the calls, each with how well it is proved. Answers what was found wrong, in sentences. */
async function printCalls(
  storage: StorageEngine,
  tx: Reader,
  signed: SignedLog,
  calls: readonly PastCall[],
  out: Output,
): Promise<string[]> {
  const { states, findings } = await proveCalls(storage, tx, signed, calls);
  for (const call of calls) {
    const proof = states.get(call.position) ?? 'unsigned';
    if (out.json) out.verbatim(JSON.stringify({ ...callData(call), proof }));
    else for (const line of callLines(call, proof, out)) out.line(line);
  }
  return [
    ...(signed.refused === undefined ? [] : [signed.refused]),
    ...findings.map(({ message }) => message),
  ];
}

/** The records of a session grow, so each read asks again. */
type FilterReader = (tx: Reader) => Promise<Filter>;

function readFilter({ values }: Invocation): FilterReader {
  const since = values.since === undefined ? undefined : readTime(String(values.since));
  const ids = [readId(values.task, TASKS), readId(values.session, SESSIONS)].filter((id) => id !== undefined);
  return async (tx) => {
    const subjects = await Promise.all(ids.map((id) => concerning(tx, id)));
    return (call) =>
      (values.all === true || call.row.outcome !== 'ok' || !isReading(call.row)) &&
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
