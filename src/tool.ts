import type * as z from 'zod';
import type { ToolEffect } from './modes.ts';
import type { Transaction } from './storage/engine.ts';

/** The family decides in which of the two envelope patterns a domain error travels. */
export type ToolFamily = 'system' | 'tasks' | 'trail' | 'proof' | 'skills';

/** One row of state that a call wrote, as the audit row reports it. */
export interface Effect {
  readonly table: string;
  readonly id: string;
  /** SHA-256 of the canonical JSON of the whole row after the write. */
  readonly hash: string;
  /** Four hex digits a column, in the order of their names: enough to say which column was changed later. */
  readonly columns: string;
  /** Of a session that was finalized: what was sealed, so that the log alone proves it. */
  readonly seal?: { readonly merkle_root: string; readonly leaf_count: number };
}

/** What a handler may know about the call it serves. */
export interface CallContext {
  readonly tool: string;
  readonly actor: string;
  readonly correlationId: string;
  /** When the call is recorded, ISO-8601 in UTC; never earlier than the last stored time. */
  readonly at: string;
  /** Position the call's exit row will have. Only meaningful inside a writing call. */
  readonly position: number;
  /** 128 fresh random bits in hex, for a row of state. */
  salt(): string;
  /** Filled by the state writer; becomes part of the exit row. */
  readonly effects: Effect[];
  /** Lets calls that wait for the lock go first. For long reads, between two slices. */
  breathe(): Promise<void>;
}

/** One entry of the closed surface. A handler awaits nothing but the transaction it is given. */
export interface Tool<I extends z.ZodObject = z.ZodObject, O extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** One to three sentences for a model; every word costs every client tokens. */
  readonly summary: string;
  readonly family: ToolFamily;
  readonly effect: ToolEffect;
  /** Repeating the same call changes nothing more. Only said of writing tools; reads always are. */
  readonly idempotent?: boolean;
  readonly input: I;
  readonly output: O;
  handle(args: z.output<I>, call: CallContext, tx: Transaction): Promise<z.input<O>> | z.input<O>;
}

/** Checks a tool's parts against each other at compile time, then forgets their types. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(tool: Tool<I, O>): Tool {
  return tool as unknown as Tool;
}
