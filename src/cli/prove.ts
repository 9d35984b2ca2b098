import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildCertificate, formatCertificate } from '../export/certificate.ts';
import { buildConsistency } from '../export/proofs.ts';
import { LOG, STATE } from '../verify/sources/forms.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { withDatabase } from './open.ts';
import { normalRecordId } from './record-id.ts';

/** Writes one file that proves one record to whoever has the key or a checkpoint of the log. */
export const prove: Command = {
  name: 'prove',
  usage: 'ID | --old SIZE [-o FILE]',
  summary: 'write one file that proves one record; for a task, its completion certificate',
  details:
    'ID is a task (T-0001), a thought (Θ-0001), a session (A-0001) or an audit row (#12). The file holds the record, the calls behind it, the seals, a proof of each audit row under a signed checkpoint, and the anchors of that checkpoint. It may hold secrets that calls were given. A certificate shows that its contents are in the log, not that nothing was left out; a bundle shows both. --old writes a consistency proof instead (C2SP tlog-witness): that the newest checkpoint extends the log as it was at SIZE audit rows. "colibri verify FILE --against CHECKPOINT" checks it with the checkpoint of that size that you kept.',
  options: {
    old: { type: 'string', value: 'SIZE', help: 'prove that the log extends its first SIZE audit rows' },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'where to write; "-" prints it' },
  },
  positionals: [0, 1],
  async run(invocation) {
    const { values, positionals, out, config } = invocation;
    const id = normalRecordId(positionals[0] ?? '');
    if ((values.old === undefined) === (id === ''))
      throw new UsageError('Name one record, such as T-0001, or an older size with --old.');
    if (values.old !== undefined) return await proveConsistency(String(values.old), invocation);
    if (!/^(?:[TAΘ]-\d{4,15}|#\d{1,15})$/u.test(id))
      throw new UsageError(`"${id}" is not an id. Give T-0001, Θ-0001, A-0001, or #12 for an audit row.`);
    const { dbPath, configDir, workspace } = config();
    const certificate = await withDatabase(config(), (storage) =>
      buildCertificate(storage, { dbPath, configDir, workspace }, id),
    );
    const path = write(formatCertificate(certificate), values.output, fileNameOf(id));
    if (path === undefined) return EXIT.fine;
    const { files } = certificate;
    const filesIn = (folder: string) => Object.keys(files).filter((name) => name.startsWith(folder)).length;
    const [rows, records] = [files[LOG]?.length ?? 0, files[STATE]?.length ?? 0];
    const data = { rows, records, seals: filesIn('seals/'), anchors: filesIn('anchors/') };
    out.data({ path, subject: id, ...data }, () =>
      out.line(`${path}: ${id}, ${rows} audit rows, each with its proof`),
    );
    return EXIT.fine;
  },
};

async function proveConsistency(given: string, { values, out, config }: Invocation): Promise<number> {
  const old = Number(given);
  if (!Number.isSafeInteger(old) || old < 1)
    throw new UsageError(`--old takes a number of audit rows from 1, not "${given}".`);
  const { text, size } = await withDatabase(config(), (storage) => buildConsistency(storage, old));
  const path = write(text, values.output, `rows-${old}-to-${size}.proof`);
  if (path !== undefined)
    out.data({ path, old, size }, () =>
      out.line(`${path}: the checkpoint of ${size} audit rows extends the first ${old}`),
    );
  return EXIT.fine;
}

/** Writes a new file and answers its path, or prints the text. */
function write(text: string, output: unknown, name: string): string | undefined {
  if (output === '-') {
    process.stdout.write(text);
    return undefined;
  }
  const path = resolve(typeof output === 'string' ? output : name);
  writeNew(path, text);
  return path;
}

/** A name that is plain on every shell and file system: Θ-0001 becomes thought-0001. */
function fileNameOf(id: string): string {
  return `${id.replace('#', 'row-').replace('Θ', 'thought')}.proof.json`;
}

function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw new UsageError(`${path} exists and was not overwritten. Name another file with -o.`);
    throw error;
  }
}
