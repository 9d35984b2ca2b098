import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type * as z from 'zod';
import * as proof from '../../src/domains/proof/tools.ts';
import * as trail from '../../src/domains/trail/schema.ts';
import { changedBy, openDatabase, withoutTriggers } from '../driver/database.ts';
import type { ToolAnswer } from '../driver/message.ts';
import type { Playground, StartOptions } from '../driver/playground.ts';
import { Desk, type Refusal } from './tasks-desk.ts';

const OUTPUTS = {
  thought_record: trail.RecordOutput,
  thought_record_list: trail.ListOutput,
  audit_verify_chain: trail.VerifyOutput,
  audit_session_start: proof.StartOutput,
  merkle_finalize: proof.FinalizeOutput,
  merkle_root: proof.RootOutput,
} as const;

type TrailTool = keyof typeof OUTPUTS;
export type Output<T extends TrailTool> = z.output<(typeof OUTPUTS)[T]>;

const PATTERN_A: readonly TrailTool[] = ['thought_record', 'thought_record_list', 'audit_verify_chain'];

/** A server and the words of the trail and proof tools; `tasks` has those of the task tools. */
export class TrailDesk {
  readonly tasks: Desk;

  constructor(tasks: Desk) {
    this.tasks = tasks;
  }

  get server() {
    return this.tasks.server;
  }

  /** The answer's data, after it was held against the tool's output schema. */
  async ok<T extends TrailTool>(tool: T, args: object): Promise<Output<T>> {
    return OUTPUTS[tool].parse(await this.tasks.other(tool, args)) as Output<T>;
  }

  /** A domain error in the pattern of the tool's family. In pattern A the code leads the message, and is returned apart. */
  async refused(tool: TrailTool, args: object): Promise<Refusal> {
    const answer = await this.server.call(tool, args);
    const isA = PATTERN_A.includes(tool);
    const error = {
      code: isA ? 'HANDLER_ERROR' : expect.stringMatching(/^ERR_/),
      message: isA ? expect.stringMatching(/^ERR_[A-Z_]+: \S/) : expect.any(String),
      details: expect.any(Object),
    };
    const what = `${tool} ${JSON.stringify(args)}`;
    expect(answer.envelope, what).toEqual(
      isA ? { ok: false, error } : { ok: true, data: { ok: false, error } },
    );
    expect(answer.isError, what).toBe(true);
    expectSameText(answer);
    const { code, message, details = {} } = answer.error as Refusal;
    if (!isA) return { code, message, details };
    const [lead = ''] = message.split(': ');
    return { code: lead, message: message.slice(lead.length + 2), details };
  }

  /** Input that never reached the handler. Returns the text of its issues. */
  async rejected(tool: TrailTool, args: object): Promise<string> {
    const answer = await this.server.call(tool, args);
    const what = `${tool} ${JSON.stringify(args).slice(0, 200)}`;
    expect(answer.envelope, what).toEqual({
      ok: false,
      error: { code: 'INVALID_PARAMS', message: expect.any(String), details: { issues: expect.any(Array) } },
    });
    expect(answer.isError, what).toBe(true);
    expectSameText(answer);
    return answer.error?.message ?? '';
  }

  async think(
    task_id: string,
    content = 'because',
    more: Partial<trail.RecordArgs> = {},
  ): Promise<Output<'thought_record'>> {
    return await this.ok('thought_record', { task_id, type: 'decision', content, ...more });
  }

  /** The id of a new session. */
  async open(task_id: string, more: Partial<proof.StartArgs> = {}): Promise<string> {
    return (await this.ok('audit_session_start', { task_id, auditor_id: 'ada', ...more })).session_id;
  }

  async verify(subject: { task_id: string } | { session_id: string }): Promise<Output<'audit_verify_chain'>> {
    return await this.ok('audit_verify_chain', { ...subject, full_trace: true });
  }

  /** Names of the session's records, in order. */
  async recordsOf(session_id: string): Promise<string[]> {
    const { chain_valid, trace = [] } = await this.verify({ session_id });
    expect(chain_valid).toBe(true);
    return trace.map(({ record }) => record);
  }

  /** Hashes of these records as the tools and the file tell them, not as the session does. */
  async hashesOf(colibri: Playground, records: readonly string[]): Promise<string[]> {
    const stored = new Map<string, string>();
    for (const { position, content_hash } of colibri.readAudit().entries)
      stored.set(`#${position}`, content_hash);
    for (const { task_id } of (await this.tasks.list()).tasks) {
      const { thoughts } = await this.ok('thought_record_list', { task_id, limit: 500 });
      for (const thought of thoughts) stored.set(thought.thought_id, thoughtHash(thought));
    }
    return records.map((record) => stored.get(record) ?? `no record ${record}`);
  }
}

export async function openTrail(colibri: Playground, options: StartOptions = {}): Promise<TrailDesk> {
  return new TrailDesk(new Desk(await colibri.start(options)));
}

/** The published formula, written here again on purpose. */
export function thoughtHash(thought: {
  readonly task_id: string;
  readonly type: string;
  readonly content: string;
  readonly previous_hash: string | null;
  readonly recorded_at: string;
  readonly recorded_by: string;
}): string {
  const { task_id, type, content, previous_hash, recorded_at, recorded_by } = thought;
  const text = JSON.stringify({ task_id, type, content, previous_hash, recorded_at, recorded_by });
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** The root of RFC 6962 by its recursive definition. */
export function treeRoot(hashes: readonly string[]): string {
  return subtree(hashes.map((hash) => Buffer.from(hash, 'hex'))).toString('hex');
}

function subtree(hashes: readonly Buffer[]): Buffer {
  const [first] = hashes;
  if (first === undefined) return digest();
  if (hashes.length === 1) return digest(Buffer.of(0), first);
  let split = 1;
  while (split * 2 < hashes.length) split *= 2;
  return digest(Buffer.of(1), subtree(hashes.slice(0, split)), subtree(hashes.slice(split)));
}

function digest(...parts: readonly Buffer[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}

/** Changes the file behind the server's back, with the triggers out of the way while it is done. */
export function tamper(path: string, ...statements: readonly string[]): void {
  const db = openDatabase(path);
  try {
    // In a transaction it would do nothing.
    db.pragma('foreign_keys = OFF');
    db.transaction(() =>
      withoutTriggers(db, () => {
        for (const sql of statements)
          if (changedBy(db, sql) === 0) throw new Error(`this changes nothing: ${sql}`);
      }),
    ).immediate();
  } finally {
    db.close();
  }
}

function expectSameText(answer: ToolAnswer): void {
  const content = answer.message.result?.content as { type: string; text: string }[];
  expect(content).toHaveLength(1);
  expect(JSON.parse(content[0]?.text ?? '')).toEqual(answer.envelope);
}
