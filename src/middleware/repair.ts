import * as z from 'zod';

/**
 * Undoes what real clients get wrong, where only one reading is possible: null for an optional field, an object or array
 * sent as JSON text, "42" and "true" where a number or a boolean is due. Everything else is left for the schema to judge.
 * `notes` receives the path of each repair. Never changes its input.
 */
export function repair(schema: z.ZodType, value: unknown, notes: string[], path = ''): unknown {
  const bare = unwrap(schema);
  if (typeof value === 'string') return repairText(bare, value, notes, path);
  if (bare instanceof z.ZodObject && isPlainObject(value)) return repairFields(bare, value, notes, path);
  if (bare instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item, i) => repair(bare.element as z.ZodType, item, notes, `${path}[${i}]`));
  }
  return value;
}

function repairFields(schema: z.ZodObject, value: object, notes: string[], path: string): object {
  const repaired: [string, unknown][] = [];
  for (const [key, field] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`;
    const expected = Object.hasOwn(schema.shape, key) ? (schema.shape[key] as z.ZodType) : undefined;
    if (expected === undefined) repaired.push([key, field]);
    else if (field === null && isAbsence(expected)) notes.push(`${at}: null taken as absent`);
    else repaired.push([key, repair(expected, field, notes, at)]);
  }
  return Object.fromEntries(repaired);
}

/** A field may be left out and has no use for null itself. */
function isAbsence(expected: z.ZodType): boolean {
  return expected.safeParse(undefined).success && !expected.safeParse(null).success;
}

function repairText(schema: z.ZodType, text: string, notes: string[], path: string): unknown {
  const parsed = parseAs(schema, text);
  if (parsed === undefined) return text;
  notes.push(
    `${path === '' ? 'arguments' : path}: text taken as ${Array.isArray(parsed) ? 'array' : typeof parsed}`,
  );
  return repair(schema, parsed, notes, path);
}

function parseAs(schema: z.ZodType, text: string): unknown {
  if (schema instanceof z.ZodNumber)
    return String(Number(text)) === text && Number.isFinite(Number(text)) ? Number(text) : undefined;
  if (schema instanceof z.ZodBoolean) return text === 'true' ? true : text === 'false' ? false : undefined;
  const wantsArray = schema instanceof z.ZodArray;
  if (!wantsArray && !(schema instanceof z.ZodObject) && !(schema instanceof z.ZodRecord)) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return (wantsArray ? Array.isArray(parsed) : isPlainObject(parsed)) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The type inside `optional`, `default` and their like. */
function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable) {
    return unwrap(schema.unwrap() as z.ZodType);
  }
  return schema;
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
