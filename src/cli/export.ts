import { resolve } from 'node:path';
import { defaultBundleName, type WrittenBundle, writeBundle } from '../export/bundle.ts';
import { reportPage } from '../report/report.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { withDatabase } from './open.ts';

/** Writes everything that others need to check the log, as one folder or one zip. */
export const exportBundle: Command = {
  name: 'export',
  usage: '[--session A-0001] [-o DIR|FILE.zip]',
  summary: 'write a bundle that anyone can check without Colibri',
  details:
    'The bundle holds every audit row with its arguments and result, all tasks, thoughts and sessions, the signed checkpoints, the keys to check them with, and their anchors in git and at time-stamping authorities. It may hold secrets that calls were given, and names of committers. --session writes one session, each row with its own proof. The database is not changed. The same log gives the same bytes.',
  options: {
    session: { type: 'string', value: 'ID', help: 'only this session' },
    output: {
      type: 'string',
      short: 'o',
      value: 'PATH',
      help: 'a folder, or a zip if the name ends in .zip',
    },
  },
  positionals: [0, 0],
  async run({ values, out, config }) {
    const { dbPath, configDir, workspace } = config();
    const session = text(values.session);
    if (session !== undefined && !/^A-\d{4,15}$/.test(session))
      throw new UsageError(`--session takes an id such as A-0001, not "${session}".`);
    const bar = out.progress('exporting');
    return await withDatabase(config(), async (storage) => {
      const path = resolve(text(values.output) ?? (await defaultBundleName(storage, session)));
      const request = { dbPath, configDir, workspace, session, page: pageIfBuilt(), onProgress: bar.update };
      const written = await writeBundle(storage, request, path).finally(() => bar.end());
      const { origin, scope, rows, size, checkpointedThrough, anchors } = written;
      const data = { path, origin, scope, rows, size, checkpointed_through: checkpointedThrough, anchors };
      out.data(data, () => {
        out.line(
          `${path}: ${rows} audit rows${scope === 'log' ? '' : ` of ${scope}`}${withAnchors(anchors)}`,
        );
        const warning = uncovered(written);
        if (warning !== undefined) out.line(out.paint('yellow', warning));
        out.line(
          out.paint(
            'dim',
            'Check it with "colibri verify", or with sha256sum and openssl: see README.txt inside.',
          ),
        );
      });
      return EXIT.fine;
    });
  },
};

function pageIfBuilt(): string | undefined {
  try {
    return reportPage();
  } catch {
    // The page only shows a bundle: without it, as from a source tree that was never built, a bundle is still complete.
    return undefined;
  }
}

function uncovered({ scope, size, checkpointedThrough }: WrittenBundle): string | undefined {
  if (scope !== 'log' || checkpointedThrough >= size) return undefined;
  const from = checkpointedThrough + 1;
  return `Audit rows ${from} to ${size} are not signed. "colibri doctor" shows why.`;
}

function withAnchors(count: number): string {
  if (count === 0) return '';
  return count === 1 ? ', with an anchor' : `, with ${count} anchors`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
