import { resolve } from 'node:path';
import { buildCertificate } from '../export/certificate.ts';
import { createFile, isThere, readText, replaceFile } from '../private-files.ts';
import { carriedSource } from '../verify/sources/carried.ts';
import { formatCertificate, openCertificate } from '../verify/sources/certificate.ts';
import { LOG, members, STATE } from '../verify/sources/forms.ts';
import { normalRecordId } from './brought.ts';
import { command, EXIT, UsageError } from './command.ts';
import { check, ownKey } from './evidence.ts';
import { withLog } from './open.ts';

/** Writes one file that proves one record to anybody who has the key or a checkpoint of the log. */
export const prove = command({
  name: 'prove',
  usage: 'ID [-o FILE] [--force]',
  summary: 'write one file that proves one record; for a task, its completion certificate',
  details: `ID is a task (T-0001), a thought (Θ-0001), a session (A-0001) or an audit row ('#12', in quotes, because a shell takes # for a comment). The file contains the record, the calls behind it, the seals, a proof of each audit row under a signed checkpoint, and the anchors of that checkpoint. It may contain secrets that were in calls. A certificate proves that its contents are in the log, but not that nothing was left out; a bundle proves both.`,
  options: {
    output: { short: 'o', value: 'FILE', help: 'where to write it; "-" prints it' },
    force: { help: 'overwrite an older certificate at that path' },
  },
  positionals: [1, 1],
  async run({ values: { output, force }, positionals: [given = ''], out, config }) {
    const id = normalRecordId(given);
    if (!/^(?:[TAΘ]-\d{4,15}|#\d{1,15})$/u.test(id))
      throw new UsageError(`"${id}" is not an id. Give T-0001, Θ-0001, A-0001, or '#12' for an audit row.`);
    const certificate = await withLog(config, out, (storage) => buildCertificate(storage, config, id));
    const text = formatCertificate(certificate);
    // What was changed in the database is in the certificate as it is now. Whoever gets it would find out, and so do we.
    const source = await carriedSource(() => openCertificate(text));
    const { findings } = await check(source, ownKey(config, certificate.origin));
    const [first, ...others] = findings;
    const rest = others.length === 0 ? '' : ` That is one of ${findings.length} findings.`;
    const trouble =
      first && `Something is wrong with ${id}: ${first.message}${rest} "colibri verify" shows everything.`;
    if (trouble !== undefined) out.error(trouble);
    if (output === '-') {
      out.verbatim(text.trimEnd());
      return trouble === undefined ? EXIT.fine : EXIT.found;
    }
    // Plain on every shell and file system: Θ-0001 becomes thought-0001.
    const path = resolve(output ?? `${id.replace('#', 'row-').replace('Θ', 'thought')}.proof.json`);
    if (isThere(path) && force !== true)
      throw new UsageError(
        `${path} exists and was not overwritten. Add --force, or name another file with -o.`,
      );
    // Only a certificate is overwritten: any other file is the user's.
    if (isThere(path) && members(readText(path)).kind !== members(text).kind)
      throw new UsageError(
        `${path} exists and is not a certificate, so it was not overwritten. Name another file with -o.`,
      );
    if (isThere(path)) replaceFile(path, text);
    else createFile(path, text);
    const { files } = certificate;
    const [rows, records] = [files[LOG]?.length ?? 0, files[STATE]?.length ?? 0];
    const filesIn = (folder: string) => Object.keys(files).filter((name) => name.startsWith(folder)).length;
    const [seals, anchors] = [filesIn('seals/'), filesIn('anchors/')];
    const data = { path, subject: id, rows, records, seals, anchors, ...(trouble && { trouble }) };
    const print = () => out.line(`${path}: ${id}, ${rows} audit rows, each with its proof`);
    return out.data(data, print, trouble === undefined);
  },
});
