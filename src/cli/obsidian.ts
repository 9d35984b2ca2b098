import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renderNotes } from '../integrations/obsidian/export.ts';
import { type VaultReport, writeNotes } from '../integrations/obsidian/vault.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { newestPosition } from './history.ts';
import { withDatabase } from './open.ts';
import { ProofDesk } from './proof-status.ts';
import { readSignedHeads } from './signed-heads.ts';
import { untilStopped } from './stopping.ts';

const FOLDER = 'Colibri';
const WATCH_MS = 1_000;

/** Tasks, sessions and projects as notes. One way: nothing is read back. */
export const obsidian: Command = {
  name: 'obsidian',
  usage: '--vault DIR [--watch]',
  summary: 'write a note per task, session and project into an Obsidian vault',
  details: `Notes go to the folder "${FOLDER}" of the vault. Only notes that are still as Colibri wrote them are changed or deleted; edited ones are kept and named.`,
  options: {
    vault: { type: 'string', value: 'DIR', help: 'the vault; must exist' },
    watch: { type: 'boolean', help: 'stay and write again whenever something was recorded' },
  },
  positionals: [0, 0],
  async run(invocation) {
    const { values, config } = invocation;
    if (typeof values.vault !== 'string')
      throw new UsageError('--vault DIR is required: the folder of your vault.');
    const vault = resolve(values.vault);
    if (!existsSync(vault) || !statSync(vault).isDirectory())
      throw new UsageError(`${vault} is not a folder. Name an existing vault.`);
    const settings = config();
    return await withDatabase(settings, undefined, async (storage) => {
      const write = async () => {
        const heads = await readSignedHeads(settings, storage);
        const notes = await storage.read(async (tx) =>
          renderNotes(tx, await (await ProofDesk.open(tx, heads)).signedThrough()),
        );
        print(writeNotes(join(vault, FOLDER), notes), invocation);
      };
      // Before the notes are written: what is recorded meanwhile is a reason to write again.
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

function print(report: VaultReport, { out }: Invocation): void {
  out.data(report, () => {
    out.line(
      `${report.written.length} written, ${report.unchanged} unchanged, ${report.deleted.length} deleted`,
    );
    for (const path of report.kept)
      out.line(`${out.paint('yellow', 'kept')} ${path}: it was edited or is not Colibri’s`);
  });
}
