import { setTimeout as sleep } from 'node:timers/promises';
import { READING_TOOLS } from '../domains/rules.ts';
import { parseInstant } from '../instant.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import { tellCall } from '../report/telling.ts';
import type { Reader } from '../storage/engine.ts';
import { readView } from '../trust/own-log.ts';
import { visibleLine } from '../untrusted.ts';
import { isText } from '../verify/sources/forms.ts';
import { parseRecordId } from './brought.ts';
import { command, EXIT, UsageError } from './command.ts';
import { callsAfter, concerning, newestCalls, type PastCall } from './history.ts';
import { withDatabase } from './open.ts';
import type { Colour, Output } from './output.ts';
import { type ProofState, type ProvedCall, proveCalls, readSignedLog } from './proof-status.ts';
import { displayWidth, toWidth, wrap } from './text.ts';

const MARKS: Readonly<Record<ProofState, readonly [mark: string, colour: Colour, meaning: string]>> = {
  anchored: ['◆', 'green', 'anchored'],
  checkpointed: ['●', 'green', 'checkpointed'],
  unsigned: ['○', 'yellow', 'not signed'],
  wrong: ['✗', 'red', 'not as it was signed'],
};

export const PROOF_LEGEND = Object.values(MARKS)
  .map(([mark, , meaning]) => `${mark} ${meaning}`)
  .join('  ');

const LIMIT_DEFAULT = 50;
const FOLLOW_MS = 500;

/** Calls and thoughts in the order in which they happened. */
export const log = command({
  name: 'log',
  usage: '[--task ID] [--session ID] [--since TIME] [--limit N] [--all] [--follow]',
  summary: 'show calls and thoughts: who, what, why, and how well they are proved',
  details: `Oldest first, times in UTC. ${PROOF_LEGEND}. A mark covers the two audit rows of its call, their arguments and result, and the records they wrote: all of that was checked now under a signed head. It says nothing about other rows; "colibri verify" does. Successful reads are left out unless --all is given. --json prints one object per line. --follow stays until Ctrl-C. Exit 1 when something shown is not as it was signed.`,
  options: {
    task: { value: 'ID', help: 'only calls about this task' },
    session: { value: 'ID', help: 'only calls about this session' },
    since: { value: 'TIME', help: 'only calls from this time on (ISO-8601)' },
    limit: { short: 'n', value: 'N', help: `at most N calls, the newest (${LIMIT_DEFAULT})` },
    all: { help: 'also successful reads' },
    follow: { short: 'f', help: 'stay and show new calls as they arrive' },
  },
  async run({ values, out, config }) {
    const task = readId(values.task, TASKS);
    const ids = [task, readId(values.session, SESSIONS)].flatMap((id) => id ?? []);
    const filter = filterOf(ids, readTime(values.since), values.all === true);
    const limit = readLimit(values.limit);
    const signal = values.follow === true ? untilStopped() : undefined;
    if (signal?.aborted === true) return EXIT.fine;
    return await withDatabase(config, async (storage) => {
      const reported = new Set<string>();
      const print = async (calls: readonly PastCall[]) => {
        if (calls.length === 0) return;
        const signed = await readSignedLog(config, storage);
        const proved = await storage.read((tx) => proveCalls(signed, tx, calls));
        for (const call of proved.calls)
          if (out.json) out.value(call);
          else printCall(call, out);
        const findings = [...signed.refusal, ...proved.findings];
        reportNew(new Set(findings.map(({ message }) => message)), reported, out);
      };
      // One snapshot for both: a call between two snapshots would be shown twice or not at all.
      const [calls, { last }] = await storage.read(async (tx) => [
        await newestCalls(tx, await filter(tx), limit, task),
        await readView(tx),
      ]);
      if (calls.length === 0 && !out.json)
        out.line(last.position === 0 ? 'Nothing yet.' : 'Nothing matches.');
      await print(calls);
      for (let { position } = last; signal?.aborted === false; ) {
        const before = position;
        const news = await storage.read(async (tx) => callsAfter(tx, await filter(tx), before));
        await print(news.calls);
        // Ends early when it is time to stop.
        if (news.through === before) await sleep(FOLLOW_MS, undefined, { signal }).catch(() => undefined);
        position = news.through;
      }
      return reported.size > 0 ? EXIT.found : EXIT.fine;
    });
  },
});

const MESSAGES_MAX = 5;

/** Says what is wrong, each thing once. One deleted row may leave hundreds of others without a proof. */
function reportNew(messages: ReadonlySet<string>, reported: Set<string>, out: Output): void {
  const news = [...messages].filter((message) => !reported.has(message));
  for (const message of news.slice(0, MESSAGES_MAX)) out.error(visibleLine(message));
  if (news.length > MESSAGES_MAX) out.error(`… and ${news.length - MESSAGES_MAX} more.`);
  if (news.length > 0) out.error('"colibri verify" checks everything.');
  for (const message of news) reported.add(message);
}

/** From now on, Ctrl-C, SIGTERM and a closed output stop the command, and it can still close its files. */
function untilStopped(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  return stop.signal;
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

/** In a narrower terminal, what happened goes below who did it, not next to it. */
const ONE_LINE_WIDTH_MIN = 80;
/** A thought may have 5,000 characters; `colibri show` prints them all. */
const LINES_MAX = 4;
const ACTOR_WIDTH = 14;

/** Prints one call for a person: how well it is proved, when, who, what, and how it ended. */
export function printCall(call: ProvedCall, out: Output, indent = 0): void {
  const { at, actor, kind, verb, error, tool, task, text } = tellCall(call);
  const [mark, colour] = MARKS[call.proof];
  const when = toWidth(`${visibleLine(at).replace('T', ' ').slice(0, 19)}Z`, 20);
  const who = out.paint('cyan', toWidth(visibleLine(actor), ACTOR_WIDTH));
  const head = `${' '.repeat(indent)}${out.paint(colour, mark)} ${out.paint('dim', when)} ${who}`;
  const failed = visibleLine(`${verb}${error && ` with ${error}`}: ${tool}`);
  const did = kind === 'failure' ? out.paint('red', failed) : visibleLine(kind === 'read' ? tool : verb);
  const what = [did, task, visibleLine(text)].filter(Boolean).join(' ');
  const hang = out.wrapWidth < ONE_LINE_WIDTH_MIN ? indent + 4 : displayWidth(head) + 1;
  let room = LINES_MAX;
  for (const line of wrap(`${head} ${what}`, out.wrapWidth, hang)) {
    out.verbatim(room > 0 ? line : `${' '.repeat(hang)}…`);
    if (room === 0) break;
    room -= 1;
  }
}
