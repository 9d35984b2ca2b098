import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { type LogProof, renderNotes, writeNotes } from '../integrations/obsidian.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import { command, UsageError } from './command.ts';
import { check, ownKey } from './evidence.ts';
import { withDatabase } from './open.ts';

const FOLDER = 'Colibri';

/** Writes tasks and sessions as notes. One-way: nothing is read back. */
export const obsidian = command({
  name: 'obsidian',
  usage: '--vault DIR',
  summary: 'write a note per task and session into an Obsidian vault',
  details: `Notes go to the folder "${FOLDER}" in the vault. Only notes that are still as Colibri wrote them are changed or deleted; edited ones are kept and listed.`,
  options: { vault: { value: 'DIR', help: 'the vault, an existing folder' } },
  async run({ values, out, config }) {
    if (values.vault === undefined) throw new UsageError('Name the folder of your vault with --vault DIR.');
    const vault = resolve(values.vault);
    if (statSync(vault, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new UsageError(`${vault} is not a folder. Name an existing vault.`);
    const notes = await withDatabase(config, (storage) =>
      storage.read(async (tx) => renderNotes(tx, await proveLog(config, storage, tx))),
    );
    const report = writeNotes(join(vault, FOLDER), notes);
    const { written, unchanged, deleted, kept } = report;
    return out.data(report, () => {
      out.line(`${written.length} written, ${unchanged} unchanged, ${deleted.length} deleted`);
      for (const path of kept)
        out.line(`${out.paint('yellow', 'kept')} ${path}: it was edited, or Colibri did not write it`);
    });
  },
});

/** What the verifier says of the log, by record. */
async function proveLog(config: Config, storage: StorageEngine, tx: Reader): Promise<LogProof> {
  const source = new DatabaseSource(storage, tx);
  const { verdict, findings } = await check(source, ownKey(config, await source.origin()));
  const byRecord = new Map<string, string[]>();
  for (const { record, message } of findings)
    byRecord.set(record, [...(byRecord.get(record) ?? []), message]);
  return { findings: byRecord, checkpointedThrough: verdict.checkpointedThrough };
}
