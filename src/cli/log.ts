import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { READING_TOOLS } from '../domains/rules.ts';
import { parseInstant } from '../instant.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { isText } from '../verify/sources/forms.ts';
import { PROOF_LEGEND, printCall } from './call-text.ts';
import { command, EXIT, UsageError } from './command.ts';
import { callsAfter, concerning, newestCalls, newestPosition, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { proveCalls, readSignedLog } from './proof-status.ts';
import { parseRecordId } from './record-id.ts';
import { type Stopping, untilStopped } from './stopping.ts';
import { printable } from './text.ts';

const LIMIT_DEFAULT = 50;
const FOLLOW_MS = 500;

/** Calls and thoughts in the order in which they happened. */
export const log = command({
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
  async run({ values, out, config: readConfig }) {
    const config = readConfig();
    const task = readId(values.task, TASKS);
    const ids = [task, readId(values.session, SESSIONS)].flatMap((id) => id ?? []);
    const filter = filterOf(ids, readTime(values.since), values.all === true);
    const limit = readLimit(values.limit);
    const stopping = values.follow === true ? untilStopped() : undefined;
    if (stopping !== undefined) await waitForDatabase(config, stopping, out);
    if (stopping?.stopped === true) return EXIT.fine;
    return await withDatabase(config, async (storage) => {
      const reported = new Set<string>();
      const print = async (calls: readonly PastCall[]) => {
        if (calls.length > 0) reportNew(await printCalls(calls, config, storage, out), reported, out);
      };
      // One snapshot for both: a call between two snapshots would be shown twice or not at all.
      const [calls, through] = await storage.read(async (tx) => [
        await newestCalls(tx, await filter(tx), limit, task),
        await newestPosition(tx),
      ]);
      if (calls.length === 0 && !out.json) out.line(through === 0 ? 'Nothing yet.' : 'Nothing matches.');
      await print(calls);
      await stopping?.follow(through, FOLLOW_MS, async (position) => {
        const news = await storage.read(async (tx) => callsAfter(tx, await filter(tx), position));
        await print(news.calls);
        return news.through;
      });
      return reported.size > 0 ? EXIT.found : EXIT.fine;
    });
  },
});

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

/** Prints the calls, each with how well it is proved. Answers what was found wrong, in sentences. */
async function printCalls(calls: readonly PastCall[], config: Config, storage: StorageEngine, out: Output) {
  const signed = await readSignedLog(config, storage);
  const proved = await storage.read((tx) => proveCalls(signed, tx, calls));
  for (const call of proved.calls) {
    if (out.json) out.verbatim(JSON.stringify(call));
    else printCall(call, out);
  }
  return [...signed.refusal, ...proved.findings].map(({ message }) => message);
}

/** The records of a session grow, so each read asks again. */
function filterOf(ids: readonly string[], since: string, all: boolean) {
  return async (tx: Reader) => {
    const subjects = await Promise.all(ids.map((id) => concerning(tx, id)));
    return (call: PastCall) => {
      const { at, outcome, tool } = call.row;
      const isRead = outcome === 'ok' && isText(at) && isText(tool) && READING_TOOLS.has(tool);
      // A damaged row that does not say when it was written is shown, whatever the time.
      return (all || !isRead) && !(isText(at) && at < since) && subjects.every((concerns) => concerns(call));
    };
  };
}

function readId(given: string | undefined, table: StateTable): string | undefined {
  return given === undefined ? undefined : formatId(table, parseRecordId(given, [table])[1]);
}

/** Every time is at or after the empty text. */
function readTime(given = ''): string {
  const time = given === '' ? given : parseInstant(given);
  if (time !== undefined) return time;
  throw new UsageError(`--since takes a time such as 2026-01-31 or 2026-01-31T12:00Z, not "${given}".`);
}

function readLimit(given = String(LIMIT_DEFAULT)): number {
  const limit = Number(given);
  if (Number.isSafeInteger(limit) && limit > 0) return limit;
  throw new UsageError(`--limit takes a whole number from 1, not "${given}".`);
}
