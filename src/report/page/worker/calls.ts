import { ERASED } from '../../../log/texts.ts';
import { type JsonObject, objectIn } from '../../../verify/rules/payloads.ts';
import type { Source, SourceRow } from '../../../verify/source.ts';
import { isText, members } from '../../../verify/sources/forms.ts';
import { tellCall, textFields } from '../../telling.ts';

/** The two rows of a call with their attached data. Every field is a stranger's. */
export interface Told {
  readonly position: number;
  /** Its position, or 0 where the call never ended. */
  readonly exit: number;
  readonly enter: JsonObject;
  /** The last one that is here. */
  readonly row: JsonObject;
  readonly args: JsonObject;
  readonly result: JsonObject;
}

/** Pairs the two rows of each call, in the order in which the calls began. */
export function pairRows(rows: Iterable<SourceRow>): Told[] {
  const calls = new Map<number, Told>();
  for (const { position, text, payload } of rows) {
    const row = members(text);
    const body = members(payload?.body);
    if (row.stage === 'exit') {
      const begun = calls.get(Number(row.sequence_no));
      const alone = { position, exit: 0, enter: row, args: {} };
      const call = begun?.exit === 0 ? begun : alone;
      calls.set(call.position, { ...call, exit: position, row, result: objectIn(body.result) ?? {} });
    } else {
      calls.set(position, { position, exit: 0, enter: row, row, args: body, result: {} });
    }
  }
  return [...calls.values()];
}

/** One call told in a line. Every text in it is a stranger's. */
export type Call = ReturnType<typeof tellCalls>[number];

/** Tells each call in one line. */
export function tellCalls(calls: readonly Told[], shown: ShowText, wrongAt: ReadonlySet<number | undefined>) {
  const taskOfSession = new Map<string, string>();
  return calls.map(({ position, exit, enter, row, args: given, result }) => {
    const texts = textFields(enter, given).map((field) => [field, shown(given[field])]);
    const args = { ...given, ...Object.fromEntries(texts) };
    const { session, ...told } = tellCall({ row: { ...row, at: enter.at }, args, result });
    const task = told.task || (taskOfSession.get(session) ?? '');
    if (session !== '' && task !== '') taskOfSession.set(session, task);
    /** Whether a finding names one of its rows. */
    const isWrong = wrongAt.has(position) || wrongAt.has(exit);
    return { ...told, position, exit, task, isWrong };
  });
}

const MISSING = '[missing]';

/** The text behind a digest, or why there is none; nothing for a field that was never given. */
export type ShowText = (digest: unknown) => string;

/** Fetches the texts that will be shown. `missing` are digests whose text is gone without having been erased. */
export async function loadTexts(
  source: Pick<Source, 'texts'>,
  digests: readonly unknown[],
  missing: ReadonlySet<string | undefined>,
): Promise<ShowText> {
  const found = await source.texts(digests.filter(isText));
  return (digest) =>
    isText(digest) ? (found.get(digest)?.text ?? (missing.has(digest) ? MISSING : ERASED)) : '';
}
