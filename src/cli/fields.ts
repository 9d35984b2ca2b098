import * as z from 'zod';
import type { OptionSpec, Options } from './command.ts';

// The fields of a tool as options of a command: `--estimate 3` for `estimate_hours`. What a field takes is said
// once, in the tool's schema.

/** How the value of one field is written in the schema of its tool. */
interface FieldForm {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
}

/** An option for each field of the tool's input, except for those that the command has arguments for. */
export function fieldOptions(input: z.ZodObject, without: readonly string[]): Options {
  const options = formsOf(input)
    .filter(([field]) => !without.includes(field))
    .map(([field, form]) => [optionNamed(field), optionFor(field, form)] as const);
  return Object.fromEntries(options);
}

/** Fields with a shorter word for people; a list takes one entry at a time. */
const NAMES: Readonly<Record<string, string>> = {
  labels: 'label',
  estimate_hours: 'estimate',
  parent_id: 'parent',
  blocked_reason: 'reason',
  commit_sha: 'commit',
  tests_run: 'test',
  blockers: 'blocker',
  session_id: 'session',
};

function optionNamed(field: string): string {
  return NAMES[field] ?? field.replaceAll('_', '-');
}

function optionFor(field: string, { type, enum: choices, description }: FieldForm): OptionSpec {
  // Written for a person at a shell, where the description is for a model.
  const help = HELP[field] ?? description ?? field.replaceAll('_', ' ');
  if (type === 'boolean') return { help };
  const value = choices === undefined ? (VALUES[type ?? ''] ?? 'TEXT') : 'WORD';
  return {
    value,
    help: choices === undefined ? help : `${help}: ${choices.join(', ')}`,
    ...(choices !== undefined && { choices }),
    ...(type === 'array' && { multiple: true }),
  };
}

const VALUES: Readonly<Record<string, string>> = { number: 'N', integer: 'N', object: 'JSON', array: 'TEXT' };

const HELP: Readonly<Record<string, string>> = {
  project: 'its project',
  labels: 'a label; may be repeated',
  depends_on: 'a task it waits for; may be repeated',
  estimate_hours: 'hours it will take',
  parent_id: 'the parent task',
  proof_grade: 'finishing it also needs a sealed session',
  blocked_reason: 'what the blocked task waits for',
  commit_sha: 'the commit it is about',
  tests_run: 'a test that was run; may be repeated',
  blockers: 'an obstacle; may be repeated',
  metadata: 'a JSON object',
  session_id: 'the open session it belongs to (default: the task’s own)',
  branch: 'the branch it is about (default: read from git)',
  workflow: 'the workflow it follows',
  takeover: 'take it over from its holder',
};

/** What was given, as the tool takes it. What is not a number or not JSON is left as it is, and the tool says so. */
export function fieldsGiven(
  input: z.ZodObject,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const given = formsOf(input).flatMap(([field, { type }]) => {
    const value = values[optionNamed(field)];
    return value === undefined ? [] : [[field, READ[type ?? '']?.(value) ?? value] as const];
  });
  return Object.fromEntries(given);
}

const READ: Readonly<Record<string, (value: unknown) => unknown>> = {
  number: toNumber,
  integer: toNumber,
  object(value) {
    try {
      return JSON.parse(String(value));
    } catch {
      return value;
    }
  },
};

function toNumber(value: unknown): unknown {
  const number = Number(value);
  return String(value).trim() === '' || Number.isNaN(number) ? value : number;
}

function formsOf(input: z.ZodObject): [field: string, form: FieldForm][] {
  const { properties = {} } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return Object.entries(properties).map(([field, form]) => [field, form as FieldForm]);
}
