import * as z from 'zod';
import type { ReadingTool, WritingContext, WritingTool } from '../../tool.ts';

const FACTS = {
  name: 'probe',
  title: 'Probe',
  summary: 'Does nothing in particular.',
  family: 'system',
  input: z.strictObject({}),
  output: z.object({}),
} as const;

/** A reading tool with nothing special about it, but for what the test asks for. */
export function aTool(parts: Partial<ReadingTool> = {}): ReadingTool {
  return { ...FACTS, effect: 'reads', kind: 'snapshot', handle: () => ({}), ...parts };
}

/** The same for a tool that writes. */
export function aWritingTool(parts: Partial<WritingTool> = {}): WritingTool {
  return { ...FACTS, name: 'change', effect: 'writes', handle: () => ({}), ...parts };
}

/** A call as a handler sees it. */
export function aCall(parts: Partial<WritingContext> = {}): WritingContext {
  return {
    tool: 'probe',
    actor: 'ada',
    source: 'mcp',
    correlationId: '00000000-0000-4000-8000-000000000000',
    at: '2026-01-01T00:00:00.000Z',
    process: 'p',
    enter: 1,
    position: 2,
    outside: {},
    lastSeen: () => undefined,
    texts: [],
    effects: [],
    ...parts,
  };
}
