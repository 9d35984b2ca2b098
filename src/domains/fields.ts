import * as z from 'zod';
import { parseInstant } from '../instant.ts';
import { LIMITS } from '../limits.ts';

/** Text that is not blank. Stage 2 has already refused what is not well-formed. */
export const line = (max: number) => z.string().min(1).max(max).regex(/\S/, 'must not be blank');

/** A field that may be left out, with what it is then. Nothing is filled in here: a call is kept as it was made. */
export const otherwise = <S extends z.ZodType>(schema: S, value: string | number | boolean) =>
  schema.optional().meta({ default: value });

/** Any text that could be an id. Whether it is one, the lookup says, with the nearest that exist. */
export const recordId = z.string().min(1).max(32);

export const pageOffset = otherwise(z.int().min(0), 0);

/** A point in time in any zone. A plain text with a check: the schema of a date would cost each client 300 characters. */
export const instant = z
  .string()
  .max(40)
  .refine(
    (text) => parseInstant(text) !== undefined,
    'expected an ISO-8601 date or time, such as 2026-01-31T12:00:00Z',
  )
  .optional()
  .describe('ISO-8601 date or time');

export const actorName = line(LIMITS.nameCharsMax);

/** Several fields of one kind. */
export function each<S extends z.ZodType, const K extends string>(schema: S, ...names: readonly K[]) {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<K, S>;
}

/** Fields of an answer that are plain texts. */
export const texts = <const K extends string>(...names: readonly K[]) => each(z.string(), ...names);
