import { resolve } from 'node:path';
import { buildCertificate } from '../export/certificate.ts';
import { createFile, isThere } from '../private-files.ts';
import { formatCertificate } from '../verify/sources/certificate.ts';
import { LOG, STATE } from '../verify/sources/forms.ts';
import { normalRecordId } from './brought.ts';
import { command, EXIT, UsageError } from './command.ts';
import { withDatabase } from './open.ts';

/** Writes one file that proves one record to anybody who has the key or a checkpoint of the log. */
export const prove = command({
  name: 'prove',
  usage: 'ID [-o FILE]',
  summary: 'write one file that proves one record; for a task, its completion certificate',
  details: `ID is a task (T-0001), a thought (Θ-0001), a session (A-0001) or an audit row ('#12', in quotes, because a shell takes # for a comment). The file holds the record, the calls behind it, the seals, a proof of each audit row under a signed checkpoint, and the anchors of that checkpoint. It may hold secrets that calls were given. A certificate shows that its contents are in the log, not that nothing was left out; a bundle shows both.`,
  options: {
    output: { short: 'o', value: 'FILE', help: 'where to write; "-" prints it' },
  },
  positionals: [1, 1],
  async run({ values: { output }, positionals: [given = ''], out, config }) {
    const id = normalRecordId(given);
    if (!/^(?:[TAΘ]-\d{4,15}|#\d{1,15})$/u.test(id))
      throw new UsageError(`"${id}" is not an id. Give T-0001, Θ-0001, A-0001, or '#12' for an audit row.`);
    const certificate = await withDatabase(config, (storage) => buildCertificate(storage, config, id));
    const text = formatCertificate(certificate);
    if (output === '-') {
      out.verbatim(text.trimEnd());
      return EXIT.fine;
    }
    // Plain on every shell and file system: Θ-0001 becomes thought-0001.
    const path = resolve(output ?? `${id.replace('#', 'row-').replace('Θ', 'thought')}.proof.json`);
    if (isThere(path))
      throw new UsageError(`${path} exists and was not overwritten. Name another file with -o.`);
    createFile(path, text);
    const { files } = certificate;
    const [rows, records] = [files[LOG]?.length ?? 0, files[STATE]?.length ?? 0];
    const filesIn = (folder: string) => Object.keys(files).filter((name) => name.startsWith(folder)).length;
    const [seals, anchors] = [filesIn('seals/'), filesIn('anchors/')];
    return out.data({ path, subject: id, rows, records, seals, anchors }, () =>
      out.line(`${path}: ${id}, ${rows} audit rows, each with its proof`),
    );
  },
});
