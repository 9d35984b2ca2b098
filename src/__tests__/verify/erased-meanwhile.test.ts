import { expect, test } from 'vitest';
import { saltedDigest } from '../../integrity/digest.ts';
import { textId } from '../../storage/text-ids.ts';
import type { Finding } from '../../verify/finding.ts';
import type { ReadRow } from '../../verify/rules/row-form.ts';
import { Texts } from '../../verify/rules/texts.ts';
import type { SourceText } from '../../verify/source.ts';

const salt = 'a'.repeat(32);
const title: SourceText = { digest: saltedDigest(salt, 'secret'), salt, text: 'secret' };
const there = new Map([[textId(1, 0), title]]);

/** A title is read while it is there; a later row says that it was erased. At the end the source has what is given. */
async function readMeanwhile(atTheEnd: ReadonlyMap<number, SourceText>) {
  const findings: Finding[] = [];
  const texts = new Texts((finding) => void findings.push(finding));
  const row = (fields: Partial<ReadRow>) => ({ outcome: 'ok', effects: [], ...fields }) as unknown as ReadRow;
  texts.check(1, { title: title.digest }, ['title'], there);
  texts.end(row({ position: 2, sequence_no: 1, tool: 'task_create' }), { title: title.digest });
  const exit = row({ position: 4, sequence_no: 3, tool: 'owner_erase', at: '', actor: 'olga' });
  const args = { record: 'T-0001', task_id: 'T-0001' };
  texts.erase({ exit, args, digests: [title.digest], because: undefined }, true);
  await texts.lookAgain({ texts: async () => atTheEnd });
  texts.finish(true);
  return { findings, present: texts.present };
}

test('a text that the owner erases while the log is being read is not called still there', async () => {
  expect(await readMeanwhile(new Map())).toEqual({ findings: [], present: 0 });
});

test('one that is there at the end is', async () => {
  const { findings, present } = await readMeanwhile(there);

  expect(findings).toMatchObject([{ kind: 'stray', table: 'texts', record: title.digest, position: 4 }]);
  expect(present).toBe(1);
});
