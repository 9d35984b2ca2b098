import { expect } from 'vitest';
import type * as z from 'zod';
import * as schema from '../../src/domains/tasks/schema.ts';
import type { ToolAnswer, WireError } from '../driver/message.ts';
import type { Playground, StartOptions } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';

const OUTPUTS = {
  task_create: schema.CreateOutput,
  task_update: schema.UpdateOutput,
  task_get: schema.GetOutput,
  task_list: schema.ListOutput,
  task_next_actions: schema.NextOutput,
} as const;

export type TaskTool = keyof typeof OUTPUTS;
export type Output<T extends TaskTool> = z.output<(typeof OUTPUTS)[T]>;

/** A domain error or a refusal, with details that are always there to look into. */
export type Refusal = Required<WireError>;

/** A server and the words of the task tools. */
export class Desk {
  readonly server: ServerProcess;

  constructor(server: ServerProcess) {
    this.server = server;
  }

  /** The answer's data, after it was held against the tool's output schema. */
  async ok<T extends TaskTool>(tool: T, args: object): Promise<Output<T>> {
    const data = successOf(await this.server.call(tool, args), `${tool} ${brief(args)}`);
    return OUTPUTS[tool].parse(data) as Output<T>;
  }

  /** A tool of another family that this test needs to work. */
  async other(tool: string, args: object): Promise<Record<string, unknown>> {
    return successOf(await this.server.call(tool, args), `${tool} ${brief(args)}`);
  }

  /** A domain error, after its envelope was held against pattern B. */
  async refused(tool: TaskTool, args: object): Promise<Refusal> {
    const answer = await this.server.call(tool, args);
    const envelope = answer.message.result?.structuredContent;
    expect(envelope, `${tool} ${brief(args)}`).toEqual({
      ok: true,
      data: {
        ok: false,
        error: {
          code: expect.stringMatching(/^ERR_/),
          message: expect.any(String),
          details: expect.any(Object),
        },
      },
    });
    expect(answer.isError).toBe(true);
    expectSameText(answer);
    return answer.error as Refusal;
  }

  /** Input that never reached the handler: pattern A in every family. */
  async rejected(tool: TaskTool, args: unknown): Promise<Refusal> {
    const answer = await this.server.call(tool, args);
    expect(answer.envelope, `${tool} ${brief(args)}`).toEqual({
      ok: false,
      error: { code: 'INVALID_PARAMS', message: expect.any(String), details: { issues: expect.any(Array) } },
    });
    expect(answer.isError).toBe(true);
    expectSameText(answer);
    return answer.error as Refusal;
  }

  /** A new task's id. */
  async create(args: Partial<schema.CreateArgs> = {}): Promise<string> {
    return (await this.ok('task_create', { title: 'a task', project: 'p', ...args })).task_id;
  }

  async get(task_id: string): Promise<Output<'task_get'>> {
    return await this.ok('task_get', { task_id });
  }

  async update(task_id: string, changes: Partial<schema.UpdateArgs>): Promise<Output<'task_update'>> {
    return await this.ok('task_update', { task_id, ...changes });
  }

  /** Step by step; `blocked` gets a reason. */
  async move(task_id: string, ...path: readonly string[]): Promise<void> {
    for (const status of path) await this.ok('task_update', { task_id, ...step(status) });
  }

  async think(task_id: string): Promise<string> {
    const thought = await this.other('thought_record', { task_id, type: 'decision', content: 'because' });
    return thought.thought_id as string;
  }

  /** From wherever a fresh task stands to its end. */
  async finish(task_id: string): Promise<void> {
    await this.think(task_id);
    const { workflow } = await this.get(task_id);
    await this.move(task_id, ...TO_THE_END[workflow]);
  }

  async list(args: Partial<schema.ListArgs> = {}): Promise<Output<'task_list'>> {
    return await this.ok('task_list', args);
  }

  /** Ids only, in the order given. */
  async listIds(args: Partial<schema.ListArgs> = {}): Promise<string[]> {
    return (await this.list(args)).tasks.map((task) => task.task_id);
  }

  async next(args: Partial<z.output<typeof schema.NextInput>> = {}): Promise<Output<'task_next_actions'>> {
    return await this.ok('task_next_actions', args);
  }
}

const TO_THE_END = {
  kanban: ['todo', 'in_progress', 'review', 'done'],
  pipeline: ['GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE'],
} as const;

export async function openDesk(colibri: Playground, options: StartOptions = {}): Promise<Desk> {
  return new Desk(await colibri.start(options));
}

/** What sets a status and what it cannot be set without. */
export function step(status: string): object {
  return { status, ...(status === 'blocked' && { blocked_reason: 'waits' }) };
}

function successOf(answer: ToolAnswer, what: string): Record<string, unknown> {
  expect(answer.error, what).toBeUndefined();
  expect(answer.envelope?.ok, what).toBe(true);
  expect(answer.isError).toBe(false);
  expectSameText(answer);
  return answer.envelope?.data ?? {};
}

function expectSameText(answer: ToolAnswer): void {
  const content = answer.message.result?.content as { type: string; text: string }[];
  expect(content).toHaveLength(1);
  expect(JSON.parse(content[0]?.text ?? '')).toEqual(answer.message.result?.structuredContent);
}

function brief(args: unknown): string {
  return (JSON.stringify(args) ?? '').slice(0, 200);
}
