import { resolve } from 'node:path';
import { writeReport } from '../report/report.ts';
import { command } from './command.ts';
import { PERIOD_OPTIONS, readPeriod } from './dates.ts';
import { warnUnsigned } from './export.ts';
import { withLog } from './open.ts';
import { lookForTrouble, tellWithTrouble } from './trouble.ts';

const NAME_DEFAULT = 'colibri-report.html';

/** Writes the whole log as one page that checks itself in any browser. */
export const report = command({
  name: 'report',
  usage: '[-o FILE.html] [--since TIME] [--until TIME]',
  summary: 'write one HTML file that shows the log and checks it in the browser',
  details:
    'The file contains a whole bundle and the verifier. It shows a summary, the board, the trail, session trees and every check, and needs no network and no installation. Like any bundle, it may contain secrets that were in calls. The page also checks other bundles that you drop on it. With --since or --until, its summary also shows that period, with the numbers of "colibri stats". The file always contains the whole log, because only the whole log can be checked.',
  options: {
    ...PERIOD_OPTIONS,
    output: { short: 'o', value: 'FILE', help: `where to write it (${NAME_DEFAULT})` },
  },
  async run({ values, out, config }) {
    const path = resolve(values.output ?? NAME_DEFAULT);
    const period = (values.since ?? values.until) === undefined ? undefined : readPeriod(values);
    return await withLog(config, out, async (storage) => {
      const { trouble } = await lookForTrouble(config, storage, out);
      const written = await out.progress('writing', (onProgress) =>
        writeReport(storage, { ...config, onProgress }, path, period),
      );
      const { origin, size: rows, bytes, checkpointedThrough: checkpointed_through } = written;
      const print = () => {
        out.line(`${path}: ${rows} audit rows, ${Math.ceil(bytes / 1024)} KB`);
        warnUnsigned(written, out);
        out.line(out.paint('dim', 'Open it in a browser: the page checks the log.'));
      };
      const data = { path, origin, rows, bytes, checkpointed_through };
      return tellWithTrouble(trouble, data, print, out);
    });
  },
});
