import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { type LogProof, renderNotes } from '../integrations/obsidian/export.ts';
import { type VaultReport, writeNotes } from '../integrations/obsidian/vault.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import { verify } from '../verify/verify.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { ownKey } from './evidence.ts';
import { newestPosition } from './history.ts';
import { withDatabase } from './open.ts';
import { untilStopped } from './stopping.ts';

const FOLDER = 'Colibri';
const WATCH_MS = 1_000;

/** Writes tasks, sessions and projects as notes. One-way: nothing is read back. */
export const obsidian: Command = {
  name: 'obsidian',
  usage: '--vault DIR [--watch]',
  summary: 'write a note per task, session and project into an Obsidian vault',
  details: `Notes go to the folder "${FOLDER}" in the vault. Only notes that are still as Colibri wrote them are changed or deleted; edited ones are kept and listed.`,
  options: {
    vault: { type: 'string', value: 'DIR', help: 'the vault, an existing folder' },
    watch: { type: 'boolean', help: 'stay and write again whenever something is recorded' },
  },
  positionals: [0, 0],
  async run(invocation) {
    const { values, config } = invocation;
    if (typeof values.vault !== 'string')
      throw new UsageError('Name the folder of your vault with --vault DIR.');
    const vault = resolve(values.vault);
    if (!existsSync(vault) || !statSync(vault).isDirectory())
      throw new UsageError(`${vault} is not a folder. Name an existing vault.`);
    const settings = config();
    return await withDatabase(settings, async (storage) => {
      const write = async () => {
        const notes = await storage.read(async (tx) =>
          renderNotes(tx, await proveLog(settings, storage, tx)),
        );
        print(writeNotes(join(vault, FOLDER), notes), invocation);
      };
      // Read before the notes are written: what is recorded meanwhile is a reason to write again.
      let seen = await storage.read(newestPosition);
      await write();
      const stopping = values.watch === true ? untilStopped() : undefined;
      while (stopping?.stopped === false) {
        await stopping.pause(WATCH_MS);
        const now = await storage.read(newestPosition);
        if (now === seen || stopping.stopped) continue;
        seen = now;
        await write();
      }
      return EXIT.fine;
    });
  },
};

/** What the verifier says of the log, by record. */
async function proveLog(config: Config, storage: StorageEngine, tx: Reader): Promise<LogProof> {
  const source = new DatabaseSource(storage, tx);
  const key = ownKey(config, await source.origin());
  const findings = new Map<string, string[]>();
  const { checkpointedThrough } = await verify(source, {
    report: ({ record, message }) => void findings.set(record, [...(findings.get(record) ?? []), message]),
    now: systemClock.now(),
    keys: { trusted: key === undefined ? [] : [key] },
  });
  return { findings, checkpointedThrough };
}

function print(report: VaultReport, { out }: Invocation): void {
  out.data(report, () => {
    out.line(
      `${report.written.length} written, ${report.unchanged} unchanged, ${report.deleted.length} deleted`,
    );
    for (const path of report.kept)
      out.line(`${out.paint('yellow', 'kept')} ${path}: it was edited, or Colibri did not write it`);
  });
}
