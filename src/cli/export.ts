import { resolve } from 'node:path';
import { defaultBundleName, type WrittenBundle, writeBundle } from '../export/bundle.ts';
import { bundleScripts, reportPage } from '../report/report.ts';
import { shellQuote } from '../untrusted.ts';
import { command } from './command.ts';
import { withLog } from './open.ts';
import type { Output } from './output.ts';
import { lookForTrouble, tellWithTrouble } from './trouble.ts';

/** Writes everything that others need to check the log, as one folder or one zip. */
export const exportBundle = command({
  name: 'export',
  usage: '[-o DIR|FILE.zip]',
  summary: 'write a bundle that anyone can check without Colibri',
  details:
    'The bundle contains every audit row with its arguments and result, all tasks, thoughts and sessions, the signed checkpoints, the keys to check them, and their anchors in git and from time-stamping authorities. It may contain secrets that were in calls, and names of committers. The database is not changed. The same log always gives the same bytes. The log is verified first. If something is wrong, the bundle is still written, so that someone can examine it, and the exit code is 1.',
  options: {
    output: { short: 'o', value: 'PATH', help: 'a folder, or a zip if the name ends in .zip' },
  },
  async run({ values: { output }, out, config }) {
    return await withLog(config, out, async (storage) => {
      const path = resolve(output ?? (await defaultBundleName(storage)));
      const { trouble } = await lookForTrouble(config, storage, out);
      // The page only shows a bundle, which is complete without it.
      const written = await out.progress('exporting', (onProgress) =>
        writeBundle(storage, { ...config, page: reportPage(), scripts: bundleScripts(), onProgress }, path),
      );
      const { origin, size, checkpointedThrough: checkpointed_through, anchors } = written;
      const print = () => {
        const held = anchors === 0 ? '' : `, with ${anchors === 1 ? 'an anchor' : `${anchors} anchors`}`;
        out.line(`${path}: ${size} audit rows${held}`);
        warnUnsigned(written, out);
        out.line(out.paint('dim', `Check it with: colibri verify ${shellQuote(path)}`));
        out.line(out.paint('dim', 'or with sha256sum and openssl: see README.txt inside.'));
      };
      const data = { path, origin, rows: size, size, checkpointed_through, anchors };
      return tellWithTrouble(trouble, data, print, out);
    });
  },
});

/** Says which rows no signature covers. */
export function warnUnsigned({ size, checkpointedThrough }: WrittenBundle, out: Output): void {
  if (checkpointedThrough >= size) return;
  const rows = `Audit rows ${checkpointedThrough + 1} to ${size}`;
  out.line(out.paint('yellow', `${rows} are not signed. "colibri doctor" shows why.`));
}
