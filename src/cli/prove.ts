import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildCertificate, formatCertificate } from '../export/certificate.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { withDatabase } from './open.ts';
import { normalRecordId } from './record-id.ts';

/** One file that proves one record to whoever has the key, or a checkpoint of the log. */
export const prove: Command = {
  name: 'prove',
  usage: 'ID [-o FILE]',
  summary: 'write one file that proves one record; of a task, its completion certificate',
  details:
    'ID is a task (T-0001), a thought (Θ-0001), a session (A-0001) or an audit row (#12). The file holds the record, the calls behind it, the seals and for each audit row a proof against the oldest checkpoint that covers it and is anchored, or else the newest; and the anchors of that checkpoint. It may hold secrets that calls were given. A certificate shows that what is in it is in the log, not that nothing was left out; a bundle shows both.',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'where to write; "-" prints it' },
  },
  positionals: [1, 1],
  async run({ values, positionals, out, config }) {
    const id = normalRecordId(positionals[0] ?? '');
    if (!/^(?:[TAΘ]-\d{4,15}|#\d{1,15})$/u.test(id))
      throw new UsageError(`"${id}" is no id. Give T-0001, Θ-0001, A-0001, or #12 for an audit row.`);
    const { dbPath, configDir, workspace } = config();
    const certificate = await withDatabase(config(), undefined, (storage) =>
      buildCertificate(storage, { dbPath, configDir, workspace }, id),
    );
    const text = formatCertificate(certificate);
    if (values.output === '-') {
      process.stdout.write(text);
      return EXIT.fine;
    }
    const path = resolve(typeof values.output === 'string' ? values.output : fileNameOf(id));
    writeNew(path, text);
    const { log, state } = certificate;
    const anchors = Object.keys(certificate.anchors).length;
    const seals = Object.keys(certificate.seals).length;
    out.data({ path, subject: id, rows: log.length, records: state.length, seals, anchors }, () =>
      out.line(`${path}: ${id}, ${log.length} audit rows, each with its proof`),
    );
    return EXIT.fine;
  },
};

/** A plain name for every shell and file system: Θ-0001 becomes thought-0001. */
function fileNameOf(id: string): string {
  return `${id.replace('#', 'row-').replace('Θ', 'thought')}.proof.json`;
}

function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw new UsageError(`${path} exists and is not overwritten. Name another file with -o.`);
    throw error;
  }
}
