import type * as z from 'zod';
import { ColibriError, didYouMean } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { Tool } from '../tool.ts';
import { firstObjection, type Objection } from './hostile.ts';
import { redact } from './redact.ts';
import { isPlainObject, repair } from './repair.ts';

/** What was repaired, and the secrets that were taken out, by path. */
type Noted = { readonly [N in 'repaired' | 'redacted']: readonly string[] };

/** Only a valid call carries arguments a handler may see. */
export type Valid = Noted & {
  readonly valid: true;
  readonly tool: Tool;
  readonly args: Record<string, unknown>;
};

/** Stage 2's verdict. */
export type Judged =
  | Valid
  | (Noted & {
      readonly valid: false;
      readonly tool: Pick<Tool, 'name' | 'effect'>;
      readonly raw: unknown;
      readonly error: Error;
    });

/** Stage 2: hostile input enters here and leaves typed, or not at all. */
export function validate(tool: Tool, raw: unknown): Judged {
  const repaired: string[] = [];
  const redacted: string[] = [];
  const refuse = (sent: unknown, issues: Parameters<typeof refusal>[1], args?: unknown): Judged => {
    return { valid: false, tool, raw: sent, repaired, redacted, error: refusal(tool, issues, args) };
  };
  const objection = firstObjection(raw);
  if (objection !== undefined) return refuse(raw, [objection]);

  // Most calls are right as they are: what a schema takes, nothing would repair.
  const asSent = isPlainObject(raw) ? tool.input.safeParse(redact(raw, redacted)) : undefined;
  if (asSent?.success === true)
    return { valid: true, tool, args: asSent.data as Record<string, unknown>, repaired, redacted };
  redacted.length = 0;

  const sent = raw === undefined || raw === null ? {} : repair(tool.input, raw, repaired);
  if (raw === null) repaired.push('arguments: null taken as absent');
  // What was inside a text has not been looked at yet.
  const hidden = repaired.length === 0 ? undefined : firstObjection(sent);
  if (hidden !== undefined) return refuse(raw, [hidden]);

  // Before anything is judged, hashed or stored: from here on nobody has seen a known secret.
  const candidate = redact(sent, redacted);
  const parsed = tool.input.safeParse(candidate);
  if (!parsed.success) return refuse(redact(raw, []), parsed.error.issues, candidate);
  return { valid: true, tool, args: parsed.data as Record<string, unknown>, repaired, redacted };
}

/** Of a hundred thousand unknown fields these many are named. */
const UNKNOWN_SHOWN_MAX = 5;

/** One sentence an issue, each with what to do, so that the next try can be right. */
function refusal(tool: Tool, issues: readonly (z.core.$ZodIssue | Objection)[], args: unknown): ColibriError {
  const shown = issues.slice(0, LIMITS.issuesMax);
  const sentences = shown.flatMap((issue) => explain(tool, issue, args)).join(' ');
  const listed = shown.map((issue) => ('code' in issue ? withoutInput(issue) : { code: 'custom', ...issue }));
  const sentence = `${tool.name}: ${sentences} Correct this and call again.`;
  return new ColibriError('INVALID_PARAMS', sentence, { issues: listed });
}

function explain(tool: Tool, issue: z.core.$ZodIssue | Objection, args: unknown): string[] {
  if ('code' in issue && issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, UNKNOWN_SHOWN_MAX).map((key) => unknownField(tool, key));
  const path = issue.path
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i === 0 ? '' : '.'}${String(part)}`))
    .join('');
  const isMissing = issue.path.length === 1 && isPlainObject(args) && args[path] === undefined;
  if ('code' in issue && issue.code === 'invalid_type' && isMissing)
    return [`${path} is required (${issue.expected}).`];
  return [`${path === '' ? 'arguments' : path}: ${issue.message}.`];
}

function unknownField(tool: Tool, key: string): string {
  const known = Object.keys(tool.input.shape);
  const allowed = known.length === 0 ? 'It takes no fields.' : `Allowed: ${known.join(', ')}.`;
  const shown = JSON.stringify(key.slice(0, LIMITS.toolNameCharsMax));
  return `Unknown field ${shown}.${didYouMean(key, known)} ${allowed}`;
}

/** The client knows what it sent; repeating it would only put it into one more log. */
function withoutInput(issue: z.core.$ZodIssue): object {
  const { input: _, ...rest } = issue;
  return rest.code === 'unrecognized_keys'
    ? { ...rest, keys: rest.keys.slice(0, UNKNOWN_SHOWN_MAX), message: 'Unrecognized keys' }
    : rest;
}
