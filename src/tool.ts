import type * as z from 'zod';
import type { CallSource } from './log/row.ts';
import type { SaltedText } from './log/texts.ts';
import type { Sooner } from './sooner.ts';
import type { Reader, Transaction } from './storage/engine.ts';

/** The family decides in which of the two envelope patterns a domain error travels. */
export type ToolFamily = 'system' | 'tasks' | 'trail' | 'proof' | 'skills' | 'owner';

/** One row of state that a call wrote, as the audit row reports it. */
export interface Effect {
  readonly table: string;
  readonly id: string;
  /** SHA-256 of the canonical JSON of the whole row after the write, derived columns left out. */
  readonly hash: string;
  /** The position that wrote this row before; 0 for a new row. */
  readonly previous: number;
  /** Of a session that was finalized: what was sealed, so that the log alone proves it. */
  readonly seal?: { readonly leaf_count: number; readonly merkle_root: string };
}

/** What a handler may know about the call it serves. */
export interface CallContext {
  readonly tool: string;
  readonly actor: string;
  readonly source: CallSource;
  readonly correlationId: string;
  /** The server process that serves it. */
  readonly process: string;
  /** When the call is recorded, ISO 8601 in UTC; never earlier than the last stored time. */
  readonly at: string;
}

/**
 * What a read looks at. `point`: a few rows, so it may run between the writes of a batch. `snapshot`: more than should be
 * read while others wait for the write lock, or files. `long`: so much that later calls pass it meanwhile.
 */
export type ReadKind = 'point' | 'snapshot' | 'long';

type Members = Readonly<Record<string, unknown>>;

/** Arguments with their defaults, and what was seen outside the database. */
export type Prepared = { readonly [K in 'args' | 'outside']: Members };

/** What a writing handler knows beyond that. */
export interface WritingContext extends CallContext {
  /** Position of the call's enter row: its texts are stored by it. */
  readonly enter: number;
  /** Position the call's exit row will have. */
  readonly position: number;
  /** What the server saw outside the database; kept with the exit row. What is looked at within the transaction is added. */
  readonly outside: Record<string, unknown>;
  /** When an actor of this process was last seen, where that was in this very transaction. */
  lastSeen(actor: string): string | undefined;
  /** The texts of the call: its arguments hold their digests. */
  readonly texts: readonly SaltedText[];
  /** Filled by the handler; becomes part of the exit row. */
  readonly effects: Effect[];
}

interface ToolParts<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** One to three sentences for a model; every word costs every client tokens. */
  readonly summary: string;
  readonly input: I;
  readonly output: O;
  /** A first call that is right, where the schema alone does not show one. */
  readonly example?: z.input<I>;
}

/** A tool that reads. By its type, its handler cannot write. */
interface ReadingParts<I extends z.ZodObject, O extends z.ZodObject> extends ToolParts<I, O> {
  readonly effect: 'reads';
  /** Where it depends on the arguments, it is asked before they are validated. */
  readonly kind: ReadKind | ((sent: unknown) => ReadKind);
  handle(args: z.output<I>, call: CallContext, tx: Reader): Sooner<z.input<O>>;
}

/** A tool that writes: its effects and its exit row are one transaction. */
interface WritingParts<I extends z.ZodObject, O extends z.ZodObject> extends ToolParts<I, O> {
  readonly effect: 'writes';
  /** Arguments that are free texts: kept as salted digests, so that each can be erased. */
  readonly texts?: readonly string[];
  /** Its rule asks for rows of the log: those of the calls before it must be there. */
  readonly readsLog?: boolean;
  /** Reads what is outside the database, before the transaction, and writes defaults into the arguments. */
  prepare?(args: z.output<I>): Sooner<Prepared>;
  /** Learns from the transaction what its rule will ask first. */
  foresee?(args: Members, call: WritingContext, tx: Transaction): Promise<void>;
  /** Gets the kept arguments: a digest in the place of each text. */
  handle(args: Members, call: WritingContext, tx: Transaction): Sooner<z.input<O>>;
}

type InFamily<Parts> = Parts & { readonly family: ToolFamily };
export type ReadingTool = InFamily<ReadingParts<z.ZodObject, z.ZodObject>>;
export type WritingTool = InFamily<WritingParts<z.ZodObject, z.ZodObject>>;

/** One entry of the closed surface. A handler awaits nothing but the transaction it is given. */
export type Tool = ReadingTool | WritingTool;

/** Makes the tools of a family: checks the parts of each against each other at compile time, then forgets their types. */
export function toolsOf(family: ToolFamily) {
  return <I extends z.ZodObject, O extends z.ZodObject>(
    parts: ReadingParts<I, O> | WritingParts<I, O>,
  ): Tool => ({ ...parts, family }) as unknown as Tool;
}
