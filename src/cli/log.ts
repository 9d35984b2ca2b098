import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { idsFrom } from '../domains/lookup.ts';
import { READING_TOOLS } from '../domains/rules.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import { isWithin, type Period } from '../report/glance.ts';
import {
  callsAfter,
  concerning,
  type Filter,
  namesOf,
  newestCalls,
  type PastCall,
  tasksOfSessions,
  tellCalls,
} from '../report/past-calls.ts';
import { tellCall } from '../report/telling.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { readView } from '../trust/own-log.ts';
import { visibleLine } from '../untrusted.ts';
import { isText } from '../verify/sources/forms.ts';
import { parseRecordId } from './brought.ts';
import { command, EXIT } from './command.ts';
import { PERIOD_OPTIONS, readPeriod } from './dates.ts';
import { untilRead, untilStopped, withLog } from './open.ts';
import type { Colour, Output } from './output.ts';
import { type ProofState, type ProvedCall, proveCalls, readSignedLog } from './proof-status.ts';
import { readLimit } from './table.ts';
import { displayWidth, shownBy, toWidth, wrapShort } from './text.ts';

const MARKS: Readonly<Record<ProofState, readonly [mark: string, colour: Colour, meaning: string]>> = {
  anchored: ['◆', 'green', 'anchored'],
  checkpointed: ['●', 'green', 'checkpointed'],
  unsigned: ['○', 'yellow', 'not signed'],
  wrong: ['✗', 'red', 'not as it was signed'],
};

export const PROOF_LEGEND = Object.values(MARKS)
  .map(([mark, , meaning]) => `${mark} ${meaning}`)
  .join('  ');

const FOLLOW_MS = 500;

/** Calls and thoughts in the order in which they happened. */
export const log = command({
  name: 'log',
  usage: '[--actor NAME] [--project NAME] [--task ID] [--since TIME] [--until TIME] [--follow]',
  summary: 'show calls and thoughts: who, what, why, and how well they are proved',
  details: `Oldest first, times in UTC. ${PROOF_LEGEND}. A mark covers the two audit rows of its call, their arguments and result, and the records they wrote; all of these were just checked against a signed head. It says nothing about other rows; "colibri verify" checks them all. "(cli)" marks a person's call from the command line. Successful reads are left out unless you add --reads or --all. On a terminal, a long log opens in $PAGER, and a long thought is shortened with … ("colibri show" prints all of it). --json prints one object per line. --follow runs until Ctrl-C. Exit 1 if something shown is not as it was signed.`,
  options: {
    actor: { value: 'NAME', help: 'only calls by this agent or person' },
    project: { value: 'NAME', help: 'only calls about tasks of this project' },
    task: { value: 'ID', help: 'only calls about this task' },
    session: { value: 'ID', help: 'only calls about this session' },
    ...PERIOD_OPTIONS,
    reads: { help: 'include successful reads' },
    limit: { short: 'n', value: 'N', help: 'at most the newest N calls' },
    all: { help: 'everything: no limit, and successful reads too' },
    follow: { short: 'f', help: 'keep running and show new calls as they arrive' },
  },
  async run({ values, out, config }) {
    const signal = values.follow === true ? untilStopped() : undefined;
    if (signal?.aborted === true) return EXIT.fine;
    const task = readId(values.task, TASKS);
    const period = readPeriod(values);
    const filter = filterOf({
      ids: [task, readId(values.session, SESSIONS)].flatMap((id) => id ?? []),
      period,
      actor: values.actor,
      project: values.project,
      reads: values.all === true || values.reads === true,
    });
    const limit = readLimit(values, out);
    const show = (to: Output) =>
      withLog(config, out, async (storage) => {
        const print = printer(config, storage, to);
        // One snapshot for both: a call between two snapshots would be shown twice or not at all.
        const [{ calls, more, isAll }, { last }] = await storage.read(async (tx) => [
          await newestCalls(tx, await filter(tx), {
            ...{ limit, since: period.since },
            ids: task === undefined ? undefined : await namesOf(tx, task),
          }),
          await readView(tx),
        ]);
        if (calls.length === 0 && !out.json)
          to.line(last.position === 0 ? 'Nothing yet.' : 'Nothing matches.');
        await print(calls);
        if (more > 0) sayMore(more, isAll, calls.length, out, to);
        for (let { position } = last; signal?.aborted === false; ) {
          const before = position;
          const read = () => storage.read(async (tx) => callsAfter(tx, await filter(tx), before));
          const news = await untilRead(read, signal, out);
          await untilRead(() => print(news.calls), signal, out);
          // Ends early when it is time to stop.
          if (news.through === before) await sleep(FOLLOW_MS, undefined, { signal }).catch(() => undefined);
          position = news.through;
        }
        return print.found() ? EXIT.found : EXIT.fine;
      });
    return signal === undefined ? await out.paged(show) : await show(out);
  },
});

/** Says that older calls were left out. A program that reads the data hears of it on the other channel. */
function sayMore(more: number, isAll: boolean, shown: number, out: Output, to: Output): void {
  const count = isAll ? String(more) : `more than ${more}`;
  const flag = isAll ? `--limit ${shown + more} or --all` : '--limit N or --all';
  const sentence = `${count} earlier ${more === 1 ? 'call' : 'calls'}: ${shownBy(flag, more)}`;
  if (out.json) out.error(sentence);
  else to.line(to.paint('dim', sentence));
}

/** Prints calls with their proofs, and what is wrong with them, each thing once. */
function printer(config: Config, storage: StorageEngine, out: Output) {
  const reported = new Set<string>();
  const print = async (calls: readonly PastCall[]) => {
    if (calls.length === 0) return;
    const signed = await readSignedLog(config, storage);
    const { proved, told } = await storage.read(async (tx) => ({
      proved: await proveCalls(signed, tx, calls),
      told: await tellCalls(tx, calls),
    }));
    for (const [i, call] of proved.calls.entries()) {
      const { task, title, project } = told[i] ?? {};
      if (!out.json) printCall(call, out, { task, title });
      else out.value({ ...call, ...(title !== undefined && { task: { title, project } }) });
    }
    const findings = [...signed.refusal, ...proved.findings];
    reportNew(new Set(findings.map(({ message }) => message)), reported, out);
  };
  return Object.assign(print, { found: () => reported.size > 0 });
}

const MESSAGES_MAX = 5;

/** Says what is wrong, each thing once. One deleted row may leave hundreds of others without a proof. */
function reportNew(messages: ReadonlySet<string>, reported: Set<string>, out: Output): void {
  const news = [...messages].filter((message) => !reported.has(message));
  for (const message of news.slice(0, MESSAGES_MAX)) out.error(visibleLine(message));
  if (news.length > MESSAGES_MAX) out.error(`… and ${news.length - MESSAGES_MAX} more.`);
  if (news.length > 0) out.error('"colibri verify" checks everything.');
  for (const message of news) reported.add(message);
}

interface Asked {
  readonly ids: readonly string[];
  readonly period: Period;
  readonly actor: string | undefined;
  readonly project: string | undefined;
  readonly reads: boolean;
}

/** The records of a session and the tasks of a project grow, so each read asks again. */
function filterOf({ ids, period, actor, project, reads }: Asked) {
  return async (tx: Reader) => {
    const subjects = await Promise.all(ids.map((id) => concerning(tx, id)));
    const inProject = project === undefined ? undefined : await concerningProject(tx, project);
    return (call: PastCall) => {
      const { at, outcome, tool } = call.row;
      const isRead = outcome === 'ok' && isText(at) && isText(tool) && READING_TOOLS.has(tool);
      return (
        (reads || !isRead) &&
        isWithin(period, at) &&
        (actor === undefined || call.row.actor === actor) &&
        inProject?.(call) !== false &&
        subjects.every((concerns) => concerns(call))
      );
    };
  };
}

/** Whether a call was about a task of this project, or named the project. */
async function concerningProject(tx: Reader, project: string): Promise<Filter> {
  const tasks = new Set(
    (await idsFrom(tx, 'SELECT id FROM tasks WHERE project = ?', project)).map((id) => formatId(TASKS, id)),
  );
  const tasksIn = await tasksOfSessions(tx);
  return (call) => {
    const { task, session } = tellCall(call);
    return call.args.project === project || tasks.has(task || (tasksIn.get(session) ?? ''));
  };
}

function readId(given: string | undefined, table: StateTable): string | undefined {
  return given === undefined ? undefined : formatId(table, parseRecordId(given, [table])[1]);
}

/** In a narrower terminal, what happened goes below who did it, not next to it. */
const ONE_LINE_WIDTH_MIN = 80;
/** A thought may have 5,000 characters; `colibri show` prints them all. */
const LINES_MAX = 4;
const ACTOR_WIDTH = 14;
const ACTOR_WIDTH_WIDE = 20;
const WIDE = 120;
/** In a line of the log, a title is there to recognise the task. */
const TITLE_WIDTH_MAX = 40;

interface Printed {
  readonly indent?: number;
  /** The task, also where only the session of a call tells it. */
  readonly task?: string | undefined;
  /** What the task is called; left out where the reader knows. */
  readonly title?: string | undefined;
  /** A record that the reader knows already: neither its id nor its text is said again. */
  readonly known?: string;
}

/** Prints one call for a person: how well it is proved, when, who, what, and how it ended. */
export function printCall(
  call: ProvedCall,
  out: Output,
  { indent = 0, title, known, ...more }: Printed = {},
): void {
  const { at, actor, isPerson, kind, verb, error, tool, text, ...told } = tellCall(call);
  const { task = told.task } = more;
  const [mark, colour] = MARKS[call.proof];
  const when = toWidth(`${visibleLine(at).replace('T', ' ').slice(0, 19)}Z`, 20);
  const who = out.paint('cyan', actorCell(visibleLine(actor), isPerson, out));
  const head = `${' '.repeat(indent)}${out.paint(colour, mark)} ${out.paint('dim', when)} ${who}`;
  const failed = visibleLine(`${verb}${error && ` with ${error}`}: ${tool}`);
  const did = kind === 'failure' ? out.paint('red', failed) : visibleLine(kind === 'read' ? tool : verb);
  const isCreated = verb === 'created' || text === title;
  const name = title === undefined || isCreated ? '' : out.paint('dim', shortTitle(visibleLine(title), out));
  // A thought that is shown is not said again, nor is the title of a task with its creation.
  const isSaid = known !== undefined && (known === call.result.thought_id || (known === task && isCreated));
  const rest = [known === task ? '' : task, name && `${name}${text && ':'}`, isSaid ? '' : visibleLine(text)];
  const what = [did, ...rest].filter(Boolean).join(' ');
  const hang = out.wrapWidth < ONE_LINE_WIDTH_MIN ? indent + 4 : displayWidth(head) + 1;
  for (const line of wrapShort(`${head} ${what}`, out.wrapWidth, hang, LINES_MAX)) out.verbatim(line);
}

/** A person's calls come from the command line, and say so. */
function actorCell(actor: string, isPerson: boolean, { wrapWidth }: Output): string {
  const width = wrapWidth >= WIDE && wrapWidth !== Number.POSITIVE_INFINITY ? ACTOR_WIDTH_WIDE : ACTOR_WIDTH;
  if (!isPerson) return toWidth(actor, width);
  const room = width - CLI_MARK.length;
  return toWidth(`${displayWidth(actor) > room ? toWidth(actor, room) : actor}${CLI_MARK}`, width);
}

const CLI_MARK = ' (cli)';

function shortTitle(title: string, { wrapWidth }: Output): string {
  const isShort = wrapWidth === Number.POSITIVE_INFINITY || displayWidth(title) <= TITLE_WIDTH_MAX;
  return isShort ? title : toWidth(title, TITLE_WIDTH_MAX).trimEnd();
}
