import * as z from 'zod';
import type { Tool } from '../tool.ts';

type JsonSchema = { type: 'object'; [key: string]: unknown };

/** A tool as `tools/list` shows it, derived from its one definition: list, validation and annotations cannot disagree. */
export function describeTool(tool: Tool) {
  const reads = tool.effect === 'reads';
  return {
    name: tool.name,
    title: tool.title,
    description: tool.summary,
    inputSchema: lean(z.toJSONSchema(tool.input, { io: 'input' })) as JsonSchema,
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
