import * as z from 'zod';
import type { Tool } from '../tool.ts';

/** A tool as `tools/list` shows it. */
export interface ToolDescriptor {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: { type: 'object'; [key: string]: unknown };
  readonly annotations: Readonly<Record<string, boolean>>;
}

/** Derived from the one definition of the tool, so list, validation and annotations cannot disagree. */
export function describeTool(tool: Tool): ToolDescriptor {
  const reads = tool.effect === 'reads';
  return {
    name: tool.name,
    title: tool.title,
    description: tool.summary,
    inputSchema: lean(z.toJSONSchema(tool.input, { io: 'input' })) as ToolDescriptor['inputSchema'],
    // The protocol's defaults are the worst case, so all four are said. Nothing is ever destroyed: history stays.
    annotations: {
      readOnlyHint: reads,
      destructiveHint: false,
      idempotentHint: reads || tool.idempotent === true,
      openWorldHint: false,
    },
  };
}

/**
 * Without what costs every client tokens and tells no model anything: the dialect, the bounds of a safe integer, that a text
 * is not empty, that names are texts. Validation keeps all of it.
 */
function lean(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(lean);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => !isIdle(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, lean(value)]));
}

function isIdle(key: string, value: unknown): boolean {
  if (key === '$schema' || key === 'propertyNames') return true;
  if (key === 'minLength') return value === 1;
  return value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER;
}
