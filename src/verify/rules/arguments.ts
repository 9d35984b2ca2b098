import { canonicalJson } from '../../integrity/canonical-json.ts';
import { isHash } from '../../integrity/digest.ts';
import { LIMITS } from '../../limits.ts';
import type { AuditRow } from '../../log/row.ts';
import { auditRow, type Report } from '../finding.ts';
import type { SourceText } from '../source.ts';
import { isObject, type JsonObject } from './payloads.ts';

// What the arguments of a writing call can be. The schemas that the server checks them with say the same, and a test
// holds the two against each other; here it is said without the library, because this runs in the page too.

type Form = (value: unknown) => boolean;

/** The arguments of one tool as they are kept. Of a text, the form is that of the text, not of its digest. */
interface Forms {
  readonly required: readonly string[];
  readonly fields: Readonly<Record<string, Form>>;
  readonly texts: Readonly<Record<string, Form>>;
  /** What must hold between them; answers the argument that is wrong. */
  readonly together?: (args: JsonObject) => string | undefined;
}

const text =
  (max: number): Form =>
  (value) =>
    typeof value === 'string' && value.length <= max && !value.includes('\0');
const line =
  (max: number): Form =>
  (value) =>
    text(max)(value) && String(value).trim() !== '';
const oneOf =
  (...values: readonly string[]): Form =>
  (value) =>
    values.some((one) => one === value);
const between =
  (min: number, max: number): Form =>
  (value) =>
    typeof value === 'number' && value >= min && value <= max;
const list =
  (item: Form, max: number): Form =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(item);
const recordId: Form = (value) => text(32)(value) && value !== '';
const isBoolean: Form = (value) => typeof value === 'boolean';

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

const priority = oneOf('low', 'normal', 'high', 'critical');
const status = oneOf(
  ...['backlog', 'todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled'],
  ...['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'],
);
const labels = list(line(LIMITS.labelCharsMax), LIMITS.labelsMax);
const actor = line(LIMITS.nameCharsMax);
const hours = between(0, LIMITS.estimateHoursMax);
const dependsOn = list(recordId, LIMITS.dependenciesMax);
const title = line(LIMITS.titleCharsMax);
const description = text(LIMITS.descriptionCharsMax);
const reason = line(LIMITS.reasonCharsMax);
const evidence = line(LIMITS.evidenceCharsMax);
const evidenceList = written(list(evidence, LIMITS.evidenceItemsMax));
const metadata: Form = (value) =>
  Buffer.byteLength(String(value)) <= LIMITS.metadataBytesMax && written(isObject)(value);
const lost: Form = (value) =>
  isObject(value) &&
  Object.keys(value).length === 3 &&
  Number.isSafeInteger(value.size) &&
  Number(value.size) >= 0 &&
  typeof value.root === 'string' &&
  isHash(value.root) &&
  text(512)(value.key);

const VERSION_1: Readonly<Record<string, Forms>> = {
  task_create: {
    required: ['title', 'project', 'workflow'],
    fields: {
      ...{
        project: (value) => typeof value === 'string' && /^[a-z0-9-]{1,64}$/.test(value),
        parent_id: recordId,
      },
      ...{
        priority,
        labels,
        assignee: actor,
        estimate_hours: hours,
        proof_grade: isBoolean,
        depends_on: dependsOn,
      },
      type: oneOf('implementation', 'refactor', 'doc', 'investigation', 'spike'),
      workflow: oneOf('kanban', 'pipeline'),
    },
    texts: { title, description },
  },
  task_update: {
    required: ['task_id'],
    fields: {
      ...{ task_id: recordId, status, progress: between(0, 100), priority, assignee: actor, labels },
      ...{ estimate_hours: hours, depends_on: dependsOn },
    },
    texts: { title, description, blocked_reason: reason },
    together: (args) =>
      Object.keys(args).length === 1
        ? 'body'
        : args.status === 'blocked' && args.blocked_reason === undefined
          ? 'blocked_reason'
          : undefined,
  },
  thought_record: {
    required: ['task_id', 'type', 'content'],
    fields: {
      ...{ task_id: recordId, branch: evidence, commit_sha: evidence, session_id: recordId },
      type: oneOf('reflection', 'decision', 'discovery', 'risk', 'blockers', 'plan', 'analysis'),
    },
    texts: {
      content: line(LIMITS.thoughtCharsMax),
      tests_run: evidenceList,
      blockers: evidenceList,
      metadata,
    },
  },
  audit_session_start: {
    required: ['task_id', 'auditor_id'],
    fields: { task_id: recordId, auditor_id: actor, scope: oneOf('shallow', 'deep') },
    texts: { reason },
  },
  merkle_finalize: {
    required: ['session_id'],
    fields: { session_id: recordId, task_id: recordId },
    texts: {},
  },
  owner_adopt: { required: ['reason', 'key'], fields: { lost, key: text(512) }, texts: { reason } },
};

/** The forms of each version of the rules. */
export const FORMS: Readonly<Record<number, Readonly<Record<string, Forms>>>> = { 1: VERSION_1 };

/**
 * Whether the server would have taken these arguments. Reports what it would not: a rule is not made for them. The form
 * of a text is looked at where the text is there and is what was said.
 */
export function checkArguments(
  row: AuditRow,
  args: JsonObject,
  texts: ReadonlyMap<string, SourceText>,
  badTexts: ReadonlySet<string>,
  report: Report,
): boolean {
  const { position, tool } = row;
  const forms = FORMS[row.rules]?.[tool];
  const wrong = forms === undefined ? undefined : wrongArgument(forms, args, texts, badTexts);
  if (wrong === undefined) return mayCall(row, report);
  const message = `Nobody can have called ${tool} with what lies beside audit row ${position}: ${JSON.stringify(wrong)} is missing or is not what it takes.`;
  report({
    kind: 'malformed',
    table: 'action_payloads',
    record: auditRow(position),
    position,
    columns: [wrong],
    message,
  });
  return false;
}

/** What only the owner does, no client can: it is on the command line and nowhere else. */
function mayCall({ position, tool, source }: AuditRow, report: Report): boolean {
  if (!tool.startsWith('owner_') || source === 'cli') return true;
  const message = `Audit row ${position} says that a client called ${tool}, which only the command line can.`;
  report({
    kind: 'forbidden',
    table: 'actions',
    record: auditRow(position),
    position,
    columns: ['source'],
    message,
  });
  return false;
}

function wrongArgument(
  { required, fields, texts: textForms, together }: Forms,
  args: JsonObject,
  texts: ReadonlyMap<string, SourceText>,
  badTexts: ReadonlySet<string>,
): string | undefined {
  const missing = required.find((name) => !Object.hasOwn(args, name));
  if (missing !== undefined) return missing;
  for (const [name, value] of Object.entries(args)) {
    if (Object.hasOwn(textForms, name)) {
      // What is no digest, or not what the digest says, was reported with the texts.
      const kept = typeof value === 'string' && !badTexts.has(value) ? texts.get(value) : undefined;
      if (kept !== undefined && textForms[name]?.(kept.text) === false) return name;
    } else if (!Object.hasOwn(fields, name) || fields[name]?.(value) !== true) return name;
  }
  return together?.(args);
}
