import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isThere, target } from '../private-files.ts';
import { copyFile, whyNotCopied } from '../storage/open.ts';
import { readView } from '../trust/own-log.ts';
import { command, UsageError } from './command.ts';
import { checkDatabase, collectEvidence, ownKey } from './evidence.ts';
import { withDatabase } from './open.ts';
import { troubleOf } from './trouble.ts';

/** Copies the database while servers write, and verifies the copy. */
export const backup = command({
  name: 'backup',
  usage: 'FILE',
  summary: 'copy the database while servers write, and verify the copy',
  details:
    'Writes one complete file as of one moment, readable only by you, and never overwrites a file. A team’s database is backed up on its server instead. The copy does not contain the keys: copy the key folder first, because the database may be newer than the last signature, but never older. Exit 1 if something is wrong with the copy; it is kept so that you can look at it.',
  positionals: [1, 1],
  async run({ positionals: [given = ''], out, config }) {
    const whyNot = whyNotCopied(config);
    if (whyNot !== undefined) throw new UsageError(whyNot);
    const path = resolve(given);
    if (isThere(path))
      throw new UsageError(
        target(path)?.isDirectory() === true
          ? `${path} is a folder. Name a file in it, for example ${resolve(path, 'colibri.db')}.`
          : `${path} exists and was not overwritten. Name another file.`,
      );
    if (target(dirname(path))?.isDirectory() !== true)
      throw new UsageError(`There is no folder ${dirname(path)}.`);
    const { origin } = await withDatabase(config, (storage) => storage.read(readView));
    // Before the copy is made: what others sign meanwhile is not in it.
    const { evidence } = collectEvidence(config, config.dbPath, origin);
    await copyFile(config.dbPath, path);
    const { verdict, findings } = await withDatabase({ ...config, dbPath: path }, (copy) =>
      checkDatabase(copy, ownKey(config, origin), evidence, out),
    );
    const trouble = troubleOf(verdict, findings);
    const bytes = statSync(path).size;
    const { size: rows, checkpointedThrough: checkpointed_through } = verdict;
    const data = { path, origin, rows, bytes, checkpointed_through, keys: config.configDir };
    if (trouble !== undefined) out.error(trouble);
    return out.data(
      { ...data, verified: trouble === undefined, findings },
      () => {
        const found = trouble === undefined ? 'nothing is wrong' : 'something is wrong';
        out.line(`${path}: ${rows} audit rows, signed through ${checkpointed_through}; ${found}.`);
        out.line(`It does not contain the keys. Back up ${config.configDir} too.`);
        out.line(
          out.paint(
            'dim',
            'If you restore it after the log has grown, Colibri will not sign until you accept the loss: colibri checkpoint --adopt.',
          ),
        );
      },
      trouble === undefined,
    );
  },
});
