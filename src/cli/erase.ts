import { type CarriedText, carriedTexts, erasableTexts } from '../domains/carried-texts.ts';
import { isTextIn } from '../domains/lookup.ts';
import { asError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { formatId, TASKS, THOUGHTS } from '../log/tables.ts';
import { readTexts } from '../log/texts.ts';
import type { Reader } from '../storage/engine.ts';
import { callOfText } from '../storage/text-ids.ts';
import { listIn } from '../untrusted.ts';
import { members } from '../verify/sources/forms.ts';
import { effectsOf } from '../verify/sources/rows.ts';
import { parseRecordId } from './brought.ts';
import { command, UsageError } from './command.ts';
import { withDatabase, withOwner } from './open.ts';
import type { Output } from './output.ts';
import { personOf } from './person.ts';
import { describeMissing } from './show.ts';
import { plural } from './text.ts';

/** Removes the texts of records, on the record and from the bytes of the database. */
export const erase = command({
  name: 'erase',
  usage: 'ID… --reason TEXT [--yes]',
  summary: 'remove the texts of a task (T-…), thought (Θ-…), session (A-…) or refused call (#12) for good',
  details:
    'Erases the texts and their salts, including copies in calls and refused calls, the words in the search index, and what is left of them in the file and its write-ahead log. The log keeps who erased what, when and why, and everything still verifies. Ids, statuses, times, names and labels stay. If it is interrupted, run it again. Exit 1 if something could not be done.',
  options: {
    reason: { value: 'TEXT', help: 'why; this stays in the log, so do not repeat the text in it' },
    yes: { help: 'do not ask for confirmation' },
  },
  positionals: [1, 100],
  async run({ values, positionals, out, config }) {
    const reason = reasonFrom(values.reason);
    const plans = await withDatabase(config, (storage) =>
      storage.read(async (tx) => {
        const found = new Map<string, Plan>();
        for (const id of positionals) {
          const plan = await planFor(tx, id, config.dbPath);
          found.set(plan.record, plan);
        }
        return [...found.values()];
      }),
    );
    refuseRepeating(reason, plans);
    const due = plans.filter(({ texts }) => texts.length > 0);
    if (!out.json) for (const plan of plans) for (const line of describePlan(plan)) out.line(line);
    if (due.length > 0 && values.yes !== true && !(await out.confirm('Erase for good?')))
      throw new UsageError('Nothing was erased. On a terminal, answer "yes"; elsewhere, add --yes.');
    const { erased, problem, remedy } = await withOwner(config, out, async ({ call, storage, signer }) => {
      const { refused } = signer.state();
      if (refused !== undefined) throw new Error(`Nothing was erased: the log cannot be signed. ${refused}`);
      // A role of a server may lack the right: that is found out before anything is recorded. This deletes nothing.
      await storage
        .write((tx) => tx.run('DELETE FROM texts WHERE FALSE'))
        .catch((thrown: unknown) => {
          throw new Error(`Nothing was erased. ${asError(thrown).message}`);
        });
      const done: { record: string; texts: number }[] = [];
      for (const { record, task_id } of due) {
        const args = { record, reason, ...(task_id !== undefined && { task_id }) };
        const answer = await call('owner_erase', args, personOf(config));
        // Its texts have just gone with another record.
        if (!answer.ok && done.length > 0 && answer.error.message.startsWith('ERR_NOT_FOUND')) continue;
        if (!answer.ok) throw new Error(answer.error.message);
        done.push({ record, texts: (answer.data as { digests: string[] }).digests.length });
      }
      const inTheWay = `Another process still reads an older state of ${config.dbPath}, so ${config.server === undefined ? 'the file and its write-ahead log' : 'its tables'} still contain what was erased.`;
      const isGone = await storage.purge().catch((thrown: unknown) => asError(thrown).message);
      return {
        erased: done,
        problem: isGone === true ? undefined : isGone === false ? inTheWay : isGone,
        remedy: isGone === false ? WAIT : undefined,
      };
    });
    const told = {
      erased,
      already: plans.flatMap(({ record, before }) => (before === undefined ? [] : [{ record, ...before }])),
      purged: problem === undefined,
      ...(problem !== undefined && { problem }),
      ...(remedy !== undefined && { remedy }),
      also_in: [...new Set(plans.flatMap(({ copies }) => copies))],
      limits: [...limitsOf(plans), ...(config.server === undefined ? [] : [ON_SERVER])],
    };
    const rebuilt =
      config.server === undefined
        ? 'the index and the file were rebuilt, and the write-ahead log was truncated'
        : 'the tables and their indexes were rebuilt';
    const print = () => printTold(told, `Nothing of it is left in ${config.dbPath}: ${rebuilt}.`, out);
    return out.data(told, print, problem === undefined);
  },
});

const WAIT =
  'Wait until verifications, exports and other programs have closed it, then run the same command again to finish.';

const ON_SERVER =
  'The database server still has it where Colibri cannot reach: in its write-ahead log and the archive of that log, on standbys until they catch up, and in base backups and dumps. Ask its administrator to let these expire.';

/** What the command cannot do. */
function limitsOf(plans: readonly Plan[]): string[] {
  const thoughts = plans.filter(({ record }) => record.startsWith(THOUGHTS.prefix));
  return [
    'Earlier copies keep the text: backups, exported bundles, certificates and reports, git history, file system snapshots, disk blocks that were not overwritten, and what agents have read. Anchors contain only hashes.',
    'Calls that searched for words from it keep those words in their arguments.',
    'Obsidian notes keep it until you run "colibri obsidian --vault DIR", which rewrites the notes that nobody edited.',
    ...(thoughts.length === 0
      ? []
      : [
          `The hash of a thought covers its content: anyone who guesses the text of ${thoughts.map(({ record }) => record).join(', ')} can confirm it, and a short text can be guessed.`,
        ]),
  ];
}

/** What one record has to be erased. */
interface Plan {
  readonly record: string;
  readonly task_id: string | undefined;
  /** Those that are there. */
  readonly texts: readonly (CarriedText & { readonly text: string })[];
  /** Where some were erased before. */
  readonly before: Awaited<ReturnType<typeof erasedBefore>>;
  /** Thoughts of a task, which keep theirs. */
  readonly thoughts: readonly string[];
  /** Others that hold the same text. */
  readonly copies: readonly string[];
}

async function planFor(tx: Reader, id: string, dbPath: string): Promise<Plan> {
  const erasable = await erasableFrom(tx, id, dbPath);
  const { record, task_id } = erasable;
  const present = await erasableTexts(tx, erasable);
  const kept = await readTexts(tx, present);
  const texts = present.map((one) => ({ ...one, text: kept.get(one.digest) ?? '' }));
  const before = await erasedBefore(tx, await carriedTexts(tx, erasable));
  if (texts.length === 0 && before === undefined) throw new UsageError(`${record} has no text to erase.`);
  const thoughts = record === task_id ? await thoughtsOf(tx, record) : [];
  return { record, task_id, texts, before, thoughts, copies: await copiesOf(tx, texts) };
}

/** What an id names. A call that wrote a record is erased with the record. */
async function erasableFrom(tx: Reader, id: string, dbPath: string) {
  const row = /^#([1-9]\d{0,14})$/.exec(id)?.[1];
  if (row === undefined) {
    const [table, number] = parseRecordId(id);
    const record = formatId(table, number);
    const column = table === TASKS ? 'id' : 'task_id';
    const sql = `SELECT ${column} AS task FROM ${table.name} WHERE id = ?`;
    const found = await tx.get<{ task: number }>(sql, number);
    if (found === undefined) throw new UsageError(await describeMissing(tx, dbPath, table, record));
    return { record, task_id: formatId(TASKS, found.task) };
  }
  const sql = 'SELECT sequence_no AS enter FROM audit_rows WHERE position = ?';
  const call = await tx.get<{ enter: number }>(sql, Number(row));
  if (call === undefined) throw new UsageError(`There is no audit row ${row}.`);
  const wrote = await recordOf(tx, call.enter);
  if (!wrote.startsWith('#'))
    throw new UsageError(
      `The call of audit row ${row} wrote ${wrote}. Erase that record instead: colibri erase ${wrote}`,
    );
  return { record: wrote, task_id: undefined };
}

/** The record that a call wrote first, or the call itself. */
async function recordOf(tx: Reader, enter: number): Promise<string> {
  const sql = `SELECT effects FROM audit_rows
    WHERE position > ? AND sequence_no = ? AND stage = 'exit' AND outcome = 'ok' LIMIT 1`;
  const exit = await tx.get<{ effects: string | null }>(sql, enter, enter);
  const [first] = effectsOf({ effects: listIn(exit?.effects ?? '[]') });
  return String(first?.id ?? `#${enter}`);
}

/** The last erasure of one of these texts. */
async function erasedBefore(tx: Reader, texts: readonly CarriedText[]) {
  let position = 0;
  for (const { digest } of texts) {
    const sql = 'SELECT position FROM erased_texts WHERE digest = ?';
    const row = await tx.get<{ position: number }>(sql, digest);
    position = Math.max(position, row?.position ?? 0);
  }
  const sql = `SELECT x.actor, x.at, x.sequence_no AS call, p.body FROM audit_rows x
    JOIN action_payloads p ON p.position = x.sequence_no WHERE x.position = ?`;
  const act = await tx.get<{ actor: string; at: string; call: number; body: string }>(sql, position);
  if (act === undefined) return undefined;
  const digest = String(members(act.body).reason);
  const because = (await readTexts(tx, [{ call: act.call, digest }])).get(digest) ?? '';
  return { by: act.actor, at: act.at, because };
}

async function thoughtsOf(tx: Reader, task: string): Promise<string[]> {
  const sql = `SELECT id FROM thoughts WHERE task_id = ?
    AND EXISTS (SELECT 1 FROM texts WHERE ${isTextIn(THOUGHTS, 'content')}) ORDER BY id`;
  const rows = await tx.all<{ id: number }>(sql, parseRecordId(task)[1]);
  return rows.map(({ id }) => formatId(THOUGHTS, id));
}

/** Shorter texts, such as "done", are in others by chance. */
const COPIED_CHARS_MIN = 12;
const COPIES_MAX = 20;

async function copiesOf(tx: Reader, texts: Plan['texts']): Promise<string[]> {
  const own = new Set(texts.map(({ digest }) => digest));
  const calls = new Set<number>();
  for (const { text } of texts.filter((one) => one.text.length >= COPIED_CHARS_MIN)) {
    const sql = `SELECT id, digest FROM texts WHERE ${tx.dialect.contains('text')} ORDER BY id LIMIT ${COPIES_MAX + own.size}`;
    for (const { id, digest } of await tx.all<{ id: number; digest: string }>(sql, text))
      if (!own.has(digest)) calls.add(callOfText(id));
  }
  const records = new Set<string>();
  for (const call of [...calls].slice(0, COPIES_MAX)) records.add(await recordOf(tx, call));
  return [...records];
}

function reasonFrom(given: string | undefined): string {
  const reason = given?.trim() ?? '';
  if (reason === '') throw new UsageError('Give the reason with --reason TEXT. It stays in the log.');
  if (reason.length <= LIMITS.reasonCharsMax) return reason;
  throw new UsageError(`--reason takes at most ${LIMITS.reasonCharsMax} characters.`);
}

/** The reason stays: what is to go must not be in it. */
function refuseRepeating(reason: string, plans: readonly Plan[]): void {
  const texts = plans.flatMap(({ texts }) => texts.map(({ text }) => text));
  if (texts.some((text) => text.length >= COPIED_CHARS_MIN && reason.includes(text)))
    throw new UsageError('The reason contains the text to be erased, and the reason stays in the log.');
}

function describePlan({ record, texts, before, thoughts, copies }: Plan): string[] {
  const fields = [...new Set(texts.filter(({ isWritten }) => isWritten).map(({ field }) => field))];
  const refused = new Set(texts.filter(({ isWritten }) => !isWritten).map(({ call }) => call)).size;
  const parts = [
    ...(fields.length === 0 ? [] : [fields.join(', ')]),
    ...(refused === 0 ? [] : [plural(refused, 'refused call')]),
  ];
  const count = plural(texts.length, 'text');
  return [
    ...(before === undefined
      ? []
      : [`${record} was erased by ${before.by} at ${before.at} because: ${before.because}`]),
    ...(texts.length === 0 ? [] : [`${record}: ${count} to erase (${parts.join('; ')})`]),
    ...(thoughts.length === 0 ? [] : [`The thoughts on ${record} keep their texts: ${thoughts.join(', ')}`]),
    ...(copies.length === 0 ? [] : [`The same text is also in ${copies.join(', ')}, which keep it.`]),
  ];
}

interface Told {
  readonly erased: readonly { readonly record: string; readonly texts: number }[];
  readonly problem?: string;
  readonly remedy?: string;
  readonly limits: readonly string[];
}

function printTold({ erased, problem, remedy, limits }: Told, done: string, out: Output): void {
  out.line();
  for (const { record, texts } of erased)
    out.line(`${record} is erased: ${plural(texts, 'text')}, recorded as owner_erase.`);
  if (problem === undefined) out.line(out.paint('green', done));
  else {
    out.error(problem);
    out.error(['The erasure is recorded.', remedy ?? []].flat().join(' '));
  }
  out.line();
  for (const limit of limits) out.line(limit);
}
