import { resolve } from 'node:path';
import { defaultBundleName, type WrittenBundle, writeBundle } from '../export/bundle.ts';
import { reportPage } from '../report/report.ts';
import { type Command, EXIT } from './command.ts';
import { withDatabase } from './open.ts';

/** Writes everything that others need to check the log, as one folder or one zip. */
export const exportBundle: Command = {
  name: 'export',
  usage: '[-o DIR|FILE.zip]',
  summary: 'write a bundle that anyone can check without Colibri',
  details:
    'The bundle holds every audit row with its arguments and result, all tasks, thoughts and sessions, the signed checkpoints, the keys to check them with, and their anchors in git and at time-stamping authorities. It may hold secrets that calls were given, and names of committers. The database is not changed. The same log gives the same bytes.',
  options: {
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
    const bar = out.progress('exporting');
    return await withDatabase(config(), async (storage) => {
      const path = resolve(text(values.output) ?? (await defaultBundleName(storage)));
      const request = { dbPath, configDir, workspace, page: pageIfBuilt(), onProgress: bar.update };
      const written = await writeBundle(storage, request, path).finally(() => bar.end());
      const { origin, size, checkpointedThrough, anchors } = written;
      const data = { path, origin, rows: size, size, checkpointed_through: checkpointedThrough, anchors };
      out.data(data, () => {
        out.line(`${path}: ${size} audit rows${withAnchors(anchors)}`);
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

function uncovered({ size, checkpointedThrough }: WrittenBundle): string | undefined {
  if (checkpointedThrough >= size) return undefined;
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
