import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { recomputeSums } from '../../../src/__tests__/export/evidence.ts';
import { canonical } from '../../driver/audit-file.ts';
import { proves } from '../log-desk.ts';

// What is moved from a text to its salt leaves the digest as it was, if a salt may be of any length.

proves(
  ['verdict.forms', 'bundle.forged', 'certificate.damage'],
  'V5: a body or a text that was moved into its salt is found in a bundle and in a certificate, the key being pinned',
  async (desk) => {
    await desk.work();
    const [bundle, proof] = [desk.colibri.path('bundle'), desk.colibri.path('proof.json')];
    await desk.run('prove', 'T-0001', '-o', proof);
    const key = join(desk.logFolder, 'key.pub');
    const codes: Record<string, number | null> = {};

    for (const [file, member] of [
      ['payloads.jsonl', 'body'],
      ['texts.jsonl', 'text'],
    ] as const) {
      await desk.run('export', '-o', bundle);
      const lines = readFileSync(join(bundle, file), 'utf8').split('\n').filter(Boolean);
      writeFileSync(
        join(bundle, file),
        lines.map((line) => `${canonical(emptied(JSON.parse(line), member))}\n`).join(''),
      );
      recomputeSums(bundle);
      codes[file] = (await desk.run('verify', bundle, '--key', key)).code;
      await desk.run('export', '-o', bundle);
    }
    const certificate = readFileSync(proof, 'utf8');
    writeFileSync(proof, emptiedLines(certificate));
    codes.certificate = (await desk.run('verify', proof, '--key', key)).code;

    expect(certificate).toContain('\\"salt\\"');
    expect(codes).toEqual({ 'payloads.jsonl': 1, 'texts.jsonl': 1, certificate: 1 });
  },
);

function emptied(line: Record<string, unknown>, member: string): Record<string, unknown> {
  const moved = Buffer.from(String(line[member])).toString('hex');
  return { ...line, salt: `${line.salt}${moved}`, [member]: '' };
}

/** The same for every line of a certificate that has a salt. */
function emptiedLines(text: string): string {
  const certificate = JSON.parse(text) as { files: Record<string, string[]> };
  for (const [name, member] of [
    ['payloads.jsonl', 'body'],
    ['texts.jsonl', 'text'],
  ] as const)
    certificate.files[name] = (certificate.files[name] ?? []).map((line) =>
      JSON.stringify(emptied(JSON.parse(line), member)),
    );
  return `${JSON.stringify(certificate, null, 2)}\n`;
}
