import { STATUSES, WORKFLOWS } from '../../domains/tasks/workflows.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { isHash } from '../../integrity/digest.ts';
import { LIMITS } from '../../limits.ts';
import type { AuditRow } from '../../log/row.ts';
import { type Report, rowFinding } from '../finding.ts';
import { isObject, type JsonObject } from './payloads.ts';
import type { Said } from './texts.ts';

// What the arguments of a writing call can be. The schemas that the server checks them with say the same, and a test
// compares the two; here it is said without the library, because this runs in the page too.

type Form = (value: unknown) => boolean;

/** The arguments of one tool as they are kept. Of a text, the form is that of the text, not of its digest. */
export interface Forms {
  readonly required: readonly string[];
  readonly fields: Readonly<Record<string, Form>>;
  readonly texts: Readonly<Record<string, Form>>;
  /** What must hold between them; answers the argument that is wrong. */
  readonly together?: (args: JsonObject) => string | undefined;
  /** What the tool can have been told from outside, where it is told anything. A rule is run on it, so nothing else may be in it. */
  readonly outside?: Form;
}

const text =
  (max: number, min = 0): Form =>
  (value) =>
    typeof value === 'string' && hasAtMost(max, value) && value.length >= min && !value.includes('\0');

/** Characters count as the writer's schema counts them, and JSON Schema: a character outside the basic plane is one. */
function hasAtMost(max: number, value: string): boolean {
  return value.length <= max || (value.length <= 2 * max && [...value].length <= max);
}

const line = (max: number): Form => {
  const isText = text(max);
  return (value) => isText(value) && String(value).trim() !== '';
};
const oneOf =
  (...values: readonly string[]): Form =>
  (value) =>
    values.some((one) => one === value);
const between =
  (min: number, max: number): Form =>
  (value) =>
    typeof value === 'number' && value >= min && value <= max;
const list =
  (item: Form, max = Number.POSITIVE_INFINITY): Form =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(item);
/** An object with no other members than these, each of its form. */
const only =
  (forms: Readonly<Record<string, Form>>): Form =>
  (value) =>
    isObject(value) &&
    Object.keys(value).every((name) => Object.hasOwn(forms, name) && forms[name]?.(value[name]));
/** The same with every one of them. */
const exactly = (forms: Readonly<Record<string, Form>>): Form => {
  const [isOnly, count] = [only(forms), Object.keys(forms).length];
  return (value) => isOnly(value) && Object.keys(Object(value)).length === count;
};

/** A list or an object as the text of its canonical JSON. */
const written =
  (form: Form): Form =>
  (value) => {
    try {
      const parsed: unknown = JSON.parse(String(value));
      return form(parsed) && canonicalJson(parsed) === value;
    } catch {
      return false;
    }
  };

const isBoolean: Form = (value) => typeof value === 'boolean';
const anyText: Form = (value) => typeof value === 'string';
const id = text(32, 1);
const key = text(512);
const signed = text(128);
const count: Form = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const lostHead = exactly({
  size: count,
  root: (value) => typeof value === 'string' && isHash(value),
  key,
});
const place = line(LIMITS.placeCharsMax);
const actor = line(LIMITS.nameCharsMax);
const reason = line(LIMITS.reasonCharsMax);
const evidence = line(LIMITS.evidenceCharsMax);
const evidenceList = written(list(evidence, LIMITS.evidenceItemsMax));
const title = line(LIMITS.titleCharsMax);
const description = text(LIMITS.descriptionCharsMax);
/** Fields that a task is made with and that can be changed later. */
const taskFields = {
  priority: oneOf('low', 'normal', 'high', 'critical'),
  labels: list(line(LIMITS.labelCharsMax), LIMITS.labelsMax),
  assignee: actor,
  estimate_hours: between(0, LIMITS.estimateHoursMax),
  depends_on: list(id, LIMITS.dependenciesMax),
};

/** The forms of each version of the rules. */
export const FORMS: Readonly<Record<number, Readonly<Record<string, Forms>>>> = {
  1: {
    task_create: {
      required: ['title', 'project', 'workflow'],
      fields: {
        ...taskFields,
        project: (value) => typeof value === 'string' && /^[a-z0-9-]{1,64}$/.test(value),
        parent_id: id,
        proof_grade: isBoolean,
        type: oneOf('implementation', 'refactor', 'doc', 'investigation', 'spike'),
        workflow: oneOf(...WORKFLOWS),
      },
      texts: { title, description },
      outside: only({ projects: list(anyText) }),
    },
    task_update: {
      required: ['task_id'],
      fields: {
        ...{ ...taskFields, task_id: id, status: oneOf(...STATUSES), progress: between(0, 100) },
        takeover: isBoolean,
      },
      texts: { title, description, blocked_reason: reason },
      outside: only({ holder: exactly({ present: isBoolean }) }),
      together: (args) => {
        if (Object.keys(args).length === 1) return 'body';
        return args.status === 'blocked' && args.blocked_reason === undefined ? 'blocked_reason' : undefined;
      },
    },
    thought_record: {
      required: ['task_id', 'type', 'content'],
      fields: {
        ...{ task_id: id, branch: evidence, commit_sha: evidence, session_id: id },
        type: oneOf('reflection', 'decision', 'discovery', 'risk', 'blockers', 'plan', 'analysis'),
      },
      texts: {
        content: line(LIMITS.thoughtCharsMax),
        tests_run: evidenceList,
        blockers: evidenceList,
        metadata: (value) =>
          Buffer.byteLength(String(value)) <= LIMITS.metadataBytesMax && written(isObject)(value),
      },
      outside: only({ git: only({ branch: anyText, commit_sha: anyText }) }),
    },
    audit_session_start: {
      required: ['task_id', 'auditor_id'],
      fields: { task_id: id, auditor_id: actor, scope: oneOf('shallow', 'deep') },
      texts: { reason },
      outside: only({ skills: list(exactly({ name: anyText, digest: anyText })) }),
    },
    merkle_finalize: { required: ['session_id'], fields: { session_id: id, task_id: id }, texts: {} },
    owner_adopt: {
      required: ['reason', 'key', 'rows', 'signed'],
      fields: { lost: lostHead, key, rows: count, signed },
      texts: { reason },
    },
    owner_erase: {
      required: ['record', 'reason'],
      fields: { record: line(32), task_id: line(32) },
      texts: { reason },
    },
    owner_trust: { required: ['key', 'signed'], fields: { key, signed }, texts: {} },
    owner_transfer: { required: ['to'], fields: { to: place }, texts: {} },
    owner_receive: { required: ['from'], fields: { from: place }, texts: {} },
    key_join: { required: ['key'], fields: { key }, texts: {} },
  },
};

/** What a table by version of the rules has for a tool. In a forged row a tool may be called `constructor`. */
export function ofTool<T>(
  table: Readonly<Record<number, Readonly<Record<string, T>>>>,
  rules: number,
  tool: string,
): T | undefined {
  const tools = table[rules];
  return tools !== undefined && Object.hasOwn(tools, tool) ? tools[tool] : undefined;
}

/**
 * Whether the server would have taken these arguments. Reports what it would not: a rule is not made for them. The form
 * of a text is looked at where the text is there and is what was said.
 */
export function checkArguments(
  { position, tool, source }: AuditRow,
  forms: Forms | undefined,
  args: JsonObject,
  said: Said,
  report: Report,
): boolean {
  const wrong = forms === undefined ? undefined : wrongArgument(forms, args, said);
  if (wrong !== undefined) {
    const message = `Nobody can have called ${tool} with the arguments of audit row ${position}: ${JSON.stringify(wrong)} is missing or not valid.`;
    report(rowFinding('malformed', position, message, { table: 'action_payloads', columns: [wrong] }));
    return false;
  }
  // What only the owner does, no client can: it is on the command line and nowhere else.
  if (!tool.startsWith('owner_') || source === 'cli') return true;
  const message = `Audit row ${position} says that a client called ${tool}, which only the command line can.`;
  report(rowFinding('forbidden', position, message, { columns: ['source'] }));
  return false;
}

function wrongArgument(
  { required, fields, texts: textForms, together }: Forms,
  args: JsonObject,
  said: Said,
): string | undefined {
  for (const name of required) if (!Object.hasOwn(args, name)) return name;
  for (const name in args) {
    if (Object.hasOwn(textForms, name)) {
      // What is no digest, or not what the digest says, was reported with the texts.
      if (said[name] !== undefined && textForms[name]?.(said[name]) === false) return name;
    } else if (!Object.hasOwn(fields, name) || fields[name]?.(args[name]) !== true) return name;
  }
  return together?.(args);
}
