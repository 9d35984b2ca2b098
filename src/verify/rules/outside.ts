import { isHash } from '../../integrity/digest.ts';

type Form = (value: unknown) => boolean;

const isText: Form = (value) => typeof value === 'string';
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object with no other members than these, each of its form. */
const only =
  (forms: Readonly<Record<string, Form>>): Form =>
  (value) =>
    isRecord(value) &&
    Object.entries(value).every(([name, member]) => Object.hasOwn(forms, name) && forms[name]?.(member));

const list =
  (item: Form): Form =>
  (value) =>
    Array.isArray(value) && value.every(item);

const isSkill: Form = (value) =>
  isRecord(value) && isText(value.name) && isText(value.digest) && Object.keys(value).length === 2;

/** What each tool can have been told from outside, by the version of its rules. */
const FORMS: Readonly<Record<number, Readonly<Record<string, Form>>>> = {
  1: {
    task_create: only({ projects: list(isText) }),
    task_update: only({}),
    thought_record: only({ git: only({ branch: isText, commit_sha: isText }) }),
    audit_session_start: only({ skills: list(isSkill) }),
    merkle_finalize: only({}),
    owner_adopt: only({}),
    owner_erase: only({ digests: list((value) => typeof value === 'string' && isHash(value)) }),
  },
};

/** Whether a call of this tool can have been told this from outside. A rule is run on it, so nothing else may be in it. */
export function isOutside(rules: number, tool: string, outside: unknown): boolean {
  const form = ofTool(FORMS, rules, tool);
  return form === undefined ? isRecord(outside) : form(outside);
}

/** What a table by version of the rules has for a tool. In a forged row a tool may be called `constructor`. */
export function ofTool<T>(
  table: Readonly<Record<number, Readonly<Record<string, T>>>>,
  rules: number,
  tool: string,
): T | undefined {
  const tools = table[rules];
  return tools !== undefined && Object.hasOwn(tools, tool) ? tools[tool] : undefined;
}
