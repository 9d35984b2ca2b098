import * as z from 'zod';
import type { CallContext, Tool } from '../../tool.ts';

/** A tool with nothing special about it, but for what the test asks for. */
export function aTool(parts: Partial<Tool> = {}): Tool {
  return {
    name: 'probe',
    title: 'Probe',
    summary: 'Does nothing in particular.',
    family: 'system',
    effect: 'reads',
    input: z.strictObject({}),
    output: z.object({}),
    handle: () => ({}),
    ...parts,
  };
}

/** A call as a handler sees it, with the same salt every time. */
export function aCall(parts: Partial<CallContext> = {}): CallContext {
  return {
    tool: 'probe',
    actor: 'ada',
    correlationId: '00000000-0000-4000-8000-000000000000',
    at: '2026-01-01T00:00:00.000Z',
    position: 2,
    effects: [],
    salt: () => '5a17'.repeat(8),
    breathe: () => Promise.resolve(),
    ...parts,
  };
}
