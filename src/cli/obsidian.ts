import { join, resolve } from 'node:path';
import { type LogProof, renderNotes, writeNotes } from '../integrations/obsidian.ts';
import type { VerifierKey } from '../integrity/signed-note.ts';
import { target } from '../private-files.ts';
import type { Source } from '../verify/source.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import { command, UsageError } from './command.ts';
import { check, collectEvidence, type Outside, ownKey } from './evidence.ts';
import { withLog } from './open.ts';
import { troubleOf } from './trouble.ts';

const FOLDER = 'Colibri';

/** Writes tasks and sessions as notes. One-way: nothing is read back. */
export const obsidian = command({
  name: 'obsidian',
  usage: '--vault DIR',
  summary: 'write a note per task and session into an Obsidian vault',
  details: `Notes go to the folder "${FOLDER}" in the vault. Only notes that nobody edited are changed or deleted; edited notes are kept and listed. Exit 1 if something is wrong with the log; then no note says that its record is intact.`,
  options: { vault: { value: 'DIR', help: 'the vault (an existing folder)' } },
  async run({ values, out, config }) {
    if (values.vault === undefined) throw new UsageError('Name the folder of your vault with --vault DIR.');
    const vault = resolve(values.vault);
    if (target(vault)?.isDirectory() !== true)
      throw new UsageError(`${vault} is not a folder. Name an existing vault.`);
    const { notes, trouble } = await withLog(config, out, async (storage) => {
      const origin = await storage.read((tx) => new DatabaseSource(storage, tx).origin());
      const outside = collectEvidence(config, config.dbPath, origin);
      return await storage.read(async (tx) => {
        const proof = await proveLog(new DatabaseSource(storage, tx), ownKey(config, origin), outside);
        return { notes: await renderNotes(tx, proof), trouble: proof.trouble };
      });
    });
    const report = writeNotes(join(vault, FOLDER), notes);
    const { written, unchanged, deleted, kept } = report;
    if (trouble !== undefined) out.error(`No note says that it is intact. ${trouble}`);
    const print = () => {
      out.line(`${written.length} written, ${unchanged} unchanged, ${deleted.length} deleted`);
      for (const path of kept)
        out.line(`${out.paint('yellow', 'kept')} ${path}: it was edited, or Colibri did not write it`);
    };
    return out.data(report, print, trouble === undefined);
  },
});

/** What the verifier says of the log, by record, and of all of it: a record is as good as the calls behind it. */
async function proveLog(source: Source, key: VerifierKey | undefined, outside: Outside): Promise<LogProof> {
  const { verdict, findings } = await check(source, key, outside);
  const { checkpointedThrough } = verdict;
  const all = [...findings, ...outside.findings];
  const byRecord = new Map<string, string[]>();
  for (const { record, message } of all) byRecord.set(record, [...(byRecord.get(record) ?? []), message]);
  const trouble = troubleOf(verdict, all);
  return { findings: byRecord, checkpointedThrough, ...(trouble && { trouble }) };
}
