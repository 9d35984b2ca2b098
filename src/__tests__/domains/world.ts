import { expect } from 'vitest';
import { TransactionLookup } from '../../domains/lookup.ts';
import { type AsyncLookup, type Outside, type Ruling, settle, settleAsync } from '../../domains/rule.ts';
import { applyRow } from '../../domains/ruled.ts';
import { RULES } from '../../domains/rules.ts';
import { ColibriError } from '../../errors.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { RULES_VERSION, seenAt } from '../../log/row.ts';
import { takeTexts } from '../../log/texts.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { LastSeen } from '../../verify/last-seen.ts';
import { Memory } from '../../verify/memory.ts';
import { LostRows } from '../../verify/rules/links.ts';
import type { ReadRow } from '../../verify/rules/row-form.ts';
import { NEW_YEAR, stillClock } from '../log/still-clock.ts';
import { aCall } from '../middleware/a-tool.ts';
import { openScratch } from '../storage/scratch.ts';

/** What a rule said: what to write and to answer, or why not. */
export type Ruled =
  | (Ruling<Record<string, unknown>> & { readonly code?: never })
  | { readonly code: string; readonly message: string; readonly details: Readonly<Record<string, unknown>> };

export interface Circumstances {
  readonly actor?: string;
  readonly source?: 'mcp' | 'cli';
  /** As it is seen before the transaction; whether a holder is there is seen in it. */
  readonly outside?: Outside | undefined;
  readonly process?: string;
}

/**
 * One state twice, in a database and in memory. Every call is ruled on both, every question of a rule must get the same
 * answer from both, and what it wrote is taken in by both.
 */
export class World {
  readonly storage: StorageEngine;
  readonly #lastSeen = new LastSeen();
  readonly memory = new Memory({ whole: true }, new LostRows(), this.#lastSeen);
  readonly #clock = stillClock();
  #calls = 0;

  private constructor(storage: StorageEngine) {
    this.storage = storage;
  }

  static async make(): Promise<World> {
    return new World(await openScratch());
  }

  async run(
    tool: string,
    given: object,
    { actor = 'ada', source = 'mcp', outside: before = {}, process = 'p' }: Circumstances = {},
  ): Promise<Ruled> {
    const writing = RULES[RULES_VERSION]?.[tool];
    if (writing === undefined) throw new Error(`no rule is called ${tool}`);
    this.#calls += 1;
    const position = this.#calls * 2;
    const at = new Date(NEW_YEAR + position).toISOString();
    const outside = { ...before };
    const { args, texts } = takeTexts({ ...given }, writing.texts, this.#clock);
    const call = aCall({
      ...{ tool, actor, source, process, at, enter: position - 1, position, outside, texts },
    });
    const content = texts.find(({ digest }) => digest === args.content)?.text;
    const exit = { tool, position, process, effects: [] } as unknown as ReadRow;
    const said = { exit, contentHash: contentHash(position), refused: false, args, rows: new Map() };
    this.memory.begin({ ...said, body: { outside }, content });

    const ruled = await this.storage.write(async (tx) => {
      const real = new TransactionLookup(tx, call);
      const lookup = comparing(real, this.memory);
      const inDatabase = await outcomeOf(() => settleAsync(writing.rule(args as never, call), lookup));
      const inMemory = await outcomeOf(() => settle(writing.rule(args as never, call), this.memory));
      expect(inDatabase).toEqual(inMemory);
      const sql = 'INSERT OR REPLACE INTO processes (process, actor, last_seen) VALUES (?, ?, ?)';
      await tx.run(sql, process, actor, seenAt(this.#lastSeen.of(process, actor), at));
      if (inDatabase.code !== undefined) return inDatabase;
      for (const written of inDatabase.rows)
        await applyRow(tx, written, new Map(texts.map(({ digest, text }) => [digest, text])), real.seen);
      await tx.run(
        'INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)',
        position,
        '{}',
        Buffer.from(contentHash(position), 'hex'),
        Buffer.from(contentHash(position), 'hex'),
      );
      return inDatabase;
    });
    this.#lastSeen.note(process, actor, at);
    if (ruled.code === undefined) this.memory.apply(ruled.rows, contentHash(position));
    return ruled;
  }

  /** Runs calls that must be allowed; answers what the last one was answered. */
  async played(...calls: readonly (readonly [tool: string, args: object, circumstances?: Circumstances])[]) {
    let last: Record<string, unknown> = {};
    for (const [tool, args, circumstances] of calls) {
      const ruled = await this.run(tool, args, circumstances);
      if (ruled.code !== undefined) throw new Error(`${tool} ${JSON.stringify(args)}: ${ruled.message}`);
      last = ruled.result;
    }
    return last;
  }
}

/** Stands for the hash of the exit row of a call. */
function contentHash(position: number): string {
  return sha256Hex(`row ${position}`);
}

async function outcomeOf(work: () => Ruling | Promise<Ruling>): Promise<Ruled> {
  try {
    const { rows, result } = await work();
    return { rows, result: { ...result } };
  } catch (error) {
    if (!(error instanceof ColibriError)) throw error;
    return { code: error.code, message: error.message, details: error.details };
  }
}

/** Answers from the first, after the second has answered the same. */
function comparing(lookup: AsyncLookup, memory: Memory): AsyncLookup {
  return new Proxy(lookup, {
    get(target, name: keyof AsyncLookup) {
      return async (...args: readonly unknown[]) => {
        const one = await (target[name] as (...given: readonly unknown[]) => Promise<unknown>).apply(target, [
          ...args,
        ]);
        const other = (memory[name] as (...given: readonly unknown[]) => unknown).apply(memory, [...args]);
        expect(plain(name, other), `${name} ${JSON.stringify(args)}`).toEqual(plain(name, one));
        return one;
      };
    },
  });
}

/** Which of several there are is a set; everything else has its order. What comes from a driver has a prototype of its own. */
function plain(name: string, answer: unknown): unknown {
  if (name === 'existing') return new Set(answer as number[]);
  if (answer instanceof Map) return [...answer];
  if (Array.isArray(answer)) return answer.map((one) => plain(name, one));
  if (typeof answer === 'object' && answer !== null) return { ...answer, task: undefined };
  return answer;
}
