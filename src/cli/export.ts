import { resolve } from 'node:path';
import { defaultBundleName, type WrittenBundle, writeBundle } from '../export/bundle.ts';
import { reportPage } from '../report/report.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { withDatabase } from './open.ts';

/** Everything a stranger needs to check the log, in one folder or one zip. */
export const exportBundle: Command = {
  name: 'export',
  usage: '[--session A-0001] [-o DIR|FILE.zip]',
  summary: 'write a bundle that anyone can check without Colibri',
  details:
    'The bundle holds every audit row, what lies beside them, all tasks, thoughts and sessions, the signed checkpoints, the key to check them with, and what git and time-stamping authorities hold of them; it may hold secrets that calls were given, and the names of who committed. --session writes one session, each row with a proof of its own. The database is not changed. The same log makes the same bytes.',
  options: {
    session: { type: 'string', value: 'ID', help: 'only this session' },
    output: { type: 'string', short: 'o', value: 'PATH', help: 'folder, or zip where the name ends in .zip' },
  },
  positionals: [0, 0],
  async run({ values, out, config }) {
    const { dbPath, configDir, workspace } = config();
    const session = text(values.session);
    if (session !== undefined && !/^A-\d{4,15}$/.test(session))
      throw new UsageError(`--session is "${session}"; it takes an id such as A-0001.`);
    const bar = out.progress('exporting');
    return await withDatabase(config(), undefined, async (storage) => {
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
    // The page only shows a bundle. One without it is complete, as from a source tree that was never built.
    return undefined;
  }
}

function uncovered({ scope, size, checkpointedThrough }: WrittenBundle): string | undefined {
  if (scope !== 'log' || checkpointedThrough >= size) return undefined;
  const from = checkpointedThrough + 1;
  return `Rows ${from} to ${size} are not signed yet: run "colibri checkpoint" and export again to cover them.`;
}

function withAnchors(count: number): string {
  if (count === 0) return '';
  return count === 1 ? ', with an anchor' : `, with ${count} anchors`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
