import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildCertificate, formatCertificate } from '../export/certificate.ts';
import { buildConsistency } from '../export/proofs.ts';
import { LOG, STATE } from '../verify/sources/forms.ts';
import { command, EXIT, UsageError } from './command.ts';
import { withDatabase } from './open.ts';
import { normalRecordId } from './record-id.ts';

/** Writes one file that proves one record to anybody who has the key or a checkpoint of the log. */
export const prove = command({
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
  async run({ values: { old, output }, positionals: [given = ''], out, config: readConfig }) {
    const id = normalRecordId(given);
    if ((old === undefined) === (id === ''))
      throw new UsageError('Name one record, such as T-0001, or an older size with --old.');
    if (old !== undefined && !/^[1-9]\d{0,14}$/.test(old))
      throw new UsageError(`--old takes a number of audit rows from 1, not "${old}".`);
    if (old === undefined && !/^(?:[TAΘ]-\d{4,15}|#\d{1,15})$/u.test(id))
      throw new UsageError(`"${id}" is not an id. Give T-0001, Θ-0001, A-0001, or #12 for an audit row.`);
    const config = readConfig();
    const { text, name, data, line } = await withDatabase(config, async (storage) =>
      old === undefined
        ? describeCertificate(id, await buildCertificate(storage, config, id))
        : describeConsistency(Number(old), await buildConsistency(storage, Number(old))),
    );
    if (output === '-') {
      process.stdout.write(text);
      return EXIT.fine;
    }
    const path = resolve(output ?? name);
    writeNew(path, text);
    return out.data({ path, ...data }, () => out.line(`${path}: ${line}`));
  },
});

function describeCertificate(id: string, certificate: Awaited<ReturnType<typeof buildCertificate>>) {
  const { files } = certificate;
  const filesIn = (folder: string) => Object.keys(files).filter((name) => name.startsWith(folder)).length;
  const [rows, records] = [files[LOG]?.length ?? 0, files[STATE]?.length ?? 0];
  return {
    text: formatCertificate(certificate),
    // Plain on every shell and file system: Θ-0001 becomes thought-0001.
    name: `${id.replace('#', 'row-').replace('Θ', 'thought')}.proof.json`,
    data: { subject: id, rows, records, seals: filesIn('seals/'), anchors: filesIn('anchors/') },
    line: `${id}, ${rows} audit rows, each with its proof`,
  };
}

function describeConsistency(old: number, { text, size }: Awaited<ReturnType<typeof buildConsistency>>) {
  const line = `the checkpoint of ${size} audit rows extends the first ${old}`;
  return { text, name: `rows-${old}-to-${size}.proof`, data: { old, size }, line };
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
