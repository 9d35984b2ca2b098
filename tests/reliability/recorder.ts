import type { ToolAnswer, WireError } from '../driver/message.ts';
import type { ServerProcess } from '../driver/server-process.ts';

/** A call whose answer the client has read, as the checker wants it: what was answered, or the code of the refusal. */
export type Answered =
  | { readonly id: number; readonly tool: string; readonly data: unknown }
  | { readonly id: number; readonly tool: string; readonly code: string };

/** A client that keeps a history of what it was told. */
export class Recorder {
  /** In the order the answers came. */
  readonly acked: Answered[] = [];
  /** Longest time one answer took. */
  worstMs = 0;
  readonly #server: ServerProcess;

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  async call(tool: string, args: object): Promise<ToolAnswer> {
    const sentMs = performance.now();
    const answering = this.#server.call(tool, args);
    const id = this.#server.history.at(-1)?.id as number;
    const answer = await answering;
    this.worstMs = Math.max(this.worstMs, performance.now() - sentMs);
    const { error, envelope } = answer;
    if (error !== undefined) this.acked.push({ id, tool, code: preciseCode(error) });
    else if (envelope?.ok === true) this.acked.push({ id, tool, data: envelope.data });
    return answer;
  }

  /** For calls that must work. */
  async data(tool: string, args: object): Promise<Record<string, unknown>> {
    const answer = await this.call(tool, args);
    if (answer.error !== undefined || answer.envelope?.data === undefined)
      throw new Error(`${tool}: ${JSON.stringify(answer.message).slice(0, 500)}`);
    return answer.envelope.data;
  }

  /** A task from its making to its seal: seven calls of the five writing tools. */
  async chapter(words: string): Promise<void> {
    const { task_id } = await this.data('task_create', {
      title: words,
      project: 'load',
      description: words.repeat(5),
      labels: ['a', 'b'],
    });
    await this.data('task_update', { task_id, status: 'todo', progress: 12.5 });
    const { session_id } = await this.data('audit_session_start', { task_id, auditor_id: 'checker' });
    await this.data('thought_record', { task_id, type: 'plan', content: words });
    await this.data('task_update', { task_id, status: 'in_progress' });
    await this.data('thought_record', { task_id, type: 'decision', content: `${words} and so on` });
    await this.data('merkle_finalize', { session_id });
  }
}

/** The families of pattern A put the code at the front of the message. */
export function preciseCode({ code, message }: WireError): string {
  return code === 'HANDLER_ERROR' ? (/^([A-Z_]+): /.exec(message)?.[1] ?? code) : code;
}

/** Chapters in several lanes at once, so that calls share an fsync; stops when told or when the server is gone. */
export async function writeChapters(recorder: Recorder, lanes: number, chapters: number): Promise<void> {
  const lane = async (number: number) => {
    for (let i = 0; i < chapters; i += 1) await recorder.chapter(`lane ${number} chapter ${i} `);
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
}
