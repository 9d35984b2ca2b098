import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WireError } from '../driver/message.ts';

/** What an agent is told to call, as it is written: `tool {arguments}`. T-0007 stands for any task. */
export interface TaughtCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** The two documents that teach the loop: the skill, and the text for AGENTS.md in the guide. */
export const DOCUMENTS = {
  skill: partOf(read('.agents/skills/colibri/SKILL.md'), '## The loop', '\n## '),
  'AGENTS.md': partOf(read('docs/guides/agent.md'), '```text\nWork through Colibri', '\n```\n'),
} as const;

function partOf(text: string, from: string, to: string): string {
  const [, rest] = text.split(from);
  if (rest === undefined) throw new Error(`nothing begins with ${from}`);
  return rest.split(to)[0] as string;
}

const CALL = /\b((?:task|thought)_[a-z_]+) (\{[^}]*\})/g;

export function callsIn(text: string): TaughtCall[] {
  return [...text.matchAll(CALL)].map(([, tool = '', args = '']) => ({ tool, args: JSON.parse(args) }));
}

/** One tool call, whichever client makes it. */
export type MakeCall = (
  tool: string,
  args: object,
) => Promise<{ readonly data: Record<string, unknown>; readonly error?: WireError | undefined }>;

interface Listed {
  readonly task_id: string;
  readonly status?: string;
  readonly dependencies_unmet?: number;
}

/** What one turn of the loop came to. */
export type Turn = 'finished' | 'refused' | 'followed the hint' | 'nothing to do';

/**
 * An agent that does what a document says and nothing else. What it calls is taken from the document; of its own it has
 * only the order in which the loop goes, and that it does what a hint or an error says.
 */
export class TaughtAgent {
  readonly #calls: readonly TaughtCall[];
  readonly #call: MakeCall;
  /** Everything that was refused, in order. */
  readonly refusals: WireError[] = [];

  constructor(document: string, call: MakeCall) {
    this.#calls = callsIn(document);
    this.#call = call;
  }

  /** From asking what to do to a task that is finished, or to why not. */
  async turn(): Promise<Turn> {
    const task = await this.claim();
    return typeof task === 'string' ? task : await this.finish(task.task_id);
  }

  /** Asks what to do, and takes it. */
  async claim(): Promise<Listed | Turn> {
    const { data } = await this.#call('task_next_actions', this.#taught('task_next_actions', {}).args);
    const list = (name: string) => (data[name] ?? []) as Listed[];
    const [own] = list('yours');
    if (own !== undefined) return own;
    const ready = list('next_actions').find((task) => task.dependencies_unmet === 0);
    if (ready !== undefined) {
      const status = ready.status === undefined ? 'in_progress' : 'GATHER';
      return (await this.#make('task_update', { status }, ready.task_id)) ? ready : 'refused';
    }
    const [left] = list('abandoned');
    if (left !== undefined)
      return (await this.#make('task_update', { takeover: true }, left.task_id)) ? left : 'refused';
    const [hinted] = callsIn(String(data.hint));
    if (hinted === undefined) return 'nothing to do';
    return (await this.#do(hinted.tool, hinted.args)) ? 'followed the hint' : 'refused';
  }

  /** Writes down why, and moves the task to its end. */
  async finish(task_id: string): Promise<Turn> {
    if (!(await this.#make('thought_record', {}, task_id))) return 'refused';
    const { data } = await this.#call('task_get', { task_id });
    const rest = data.workflow === 'pipeline' ? PIPELINE : KANBAN;
    for (const status of rest.slice(rest.indexOf(String(data.status)) + 1)) {
      // The steps of a pipeline are in the skill's table of workflows.
      const isMade =
        data.workflow === 'pipeline'
          ? await this.#do('task_update', { task_id, status })
          : await this.#make('task_update', { status }, task_id);
      if (!isMade) return 'refused';
    }
    return 'finished';
  }

  /** The call of a tool that the document teaches with these arguments. */
  #taught(tool: string, given: Readonly<Record<string, unknown>>): TaughtCall {
    const fits = ({ args }: TaughtCall) =>
      Object.entries(given).every(([name, value]) => args[name] === value);
    // What the short text leaves out, errors and answers say: the status of a pipeline task.
    const [found] = this.#calls.filter((call) => call.tool === tool && fits(call));
    if (found !== undefined) return found;
    if (given.status === 'GATHER') return { tool, args: { task_id: 'T-0007', ...given } };
    throw new Error(`the document does not teach ${tool} ${JSON.stringify(given)}`);
  }

  async #make(tool: string, given: Readonly<Record<string, unknown>>, task_id: string): Promise<boolean> {
    return await this.#do(tool, { ...this.#taught(tool, given).args, task_id });
  }

  /** Once more where the error says which call comes first. */
  async #do(tool: string, args: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { error } = await this.#call(tool, args);
    if (error === undefined) return true;
    this.refusals.push(error);
    if (error.code !== 'ERR_WRITEBACK_REQUIRED' || typeof args.task_id !== 'string') return false;
    await this.#make('thought_record', {}, args.task_id);
    return (await this.#call(tool, args)).error === undefined;
  }
}

const KANBAN = ['backlog', 'todo', 'in_progress', 'review', 'done'];
const PIPELINE = ['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE'];
