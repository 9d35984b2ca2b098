import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../../src/integrity/digest.ts';
import { generateNoteKey } from '../../../src/integrity/signed-note.ts';
import type { Found } from '../sources.ts';

// What only the files of a bundle or a certificate can have wrong. The log they were made from is untouched.

/** One way to lie with the files of a bundle. */
export interface Spoiling {
  readonly id: string;
  readonly spoil: (bundle: BundleFolder) => Found | readonly Found[];
}

/** A bundle in a folder, in the hands of somebody who can change every file of it. */
export class BundleFolder {
  readonly folder: string;
  /** Whether the sums are made to agree at the end. */
  sums = true;

  constructor(folder: string) {
    this.folder = folder;
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  remove(name: string): void {
    rmSync(join(this.folder, name));
  }

  rename(from: string, to: string): void {
    renameSync(join(this.folder, from), join(this.folder, to));
  }

  /** Changes the lines of a file and answers how many there are then. */
  lines(name: string, change: (lines: string[]) => string[]): number {
    const lines = change(this.read(name).split('\n').slice(0, -1));
    this.write(name, lines.map((line) => `${line}\n`).join(''));
    return lines.length;
  }

  mark(change: Readonly<Record<string, unknown>>): void {
    const marker = { ...(JSON.parse(this.read('bundle.json')) as object), ...change };
    this.write('bundle.json', `${JSON.stringify(marker)}\n`);
  }

  names(): string[] {
    return readdirSync(this.folder, { recursive: true })
      .map(String)
      .filter((name) => statSync(join(this.folder, name)).isFile())
      .sort();
  }

  finish(): void {
    if (!this.sums) return;
    const names = this.names().filter((name) => name !== 'SHA256SUMS');
    this.write(
      'SHA256SUMS',
      names.map((name) => `${sha256Hex(readFileSync(join(this.folder, name)))}  ${name}\n`).join(''),
    );
  }
}

function file(kind: Found['kind'], record: string): Found {
  return { kind, record };
}

/** The row that sealed A-0001. */
function sealPosition(bundle: BundleFolder): number {
  return Number(/^index (\d+)$/m.exec(bundle.read('proofs/A-0001.tlog-proof'))?.[1]) + 1;
}

export const SPOILINGS: readonly Spoiling[] = [
  {
    id: 'V6 a marker with a verdict of its own',
    spoil(bundle) {
      bundle.mark({ origin: 'the COMPLETE log\u001b[2J' });
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'V6 a marker with a field too many',
    spoil(bundle) {
      bundle.mark({ zeal: 'x' });
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'V6 a file too many that the sums name',
    spoil(bundle) {
      bundle.write('verdict.txt', 'Nothing is wrong.\n');
      return file('stray', 'verdict.txt');
    },
  },
  {
    id: 'V6 a file too many that the sums do not name',
    spoil(bundle) {
      bundle.sums = false;
      bundle.write('verdict.txt', 'Nothing is wrong.\n');
      return file('stray', 'verdict.txt');
    },
  },
  {
    id: 'sums: a file that is changed',
    spoil(bundle) {
      bundle.sums = false;
      bundle.write('README.txt', 'Trust me.\n');
      return file('altered', 'README.txt');
    },
  },
  {
    id: 'files: the sums are missing',
    spoil(bundle) {
      bundle.sums = false;
      bundle.remove('SHA256SUMS');
      return file('missing', 'SHA256SUMS');
    },
  },
  {
    id: 'files: the readme is missing',
    spoil(bundle) {
      bundle.remove('README.txt');
      return file('missing', 'README.txt');
    },
  },
  {
    id: 'marker: another number of rows',
    spoil(bundle) {
      bundle.mark({ size: 3 });
      return file('altered', 'bundle.json');
    },
  },
  {
    id: 'marker: its line does not end',
    spoil(bundle) {
      bundle.write('bundle.json', bundle.read('bundle.json').replace('\n', 'J'));
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'marker: another root',
    spoil(bundle) {
      bundle.mark({ root: 'a'.repeat(64) });
      return file('altered', 'bundle.json');
    },
  },
  {
    id: 'rows: the last is cut off',
    spoil(bundle) {
      const rows = bundle.lines('log.jsonl', (lines) => lines.slice(0, -1));
      const key = bundle.read('keys').split('+')[1];
      const cut: Found = { kind: 'cut-tail', record: `the head of key ${key}`, position: rows + 1 };
      return [cut, file('altered', 'bundle.json')];
    },
  },
  {
    id: 'rows: the last line has no end',
    spoil(bundle) {
      bundle.write('log.jsonl', bundle.read('log.jsonl').slice(0, -1));
      return { ...file('damaged', 'bundle'), position: 1 };
    },
  },
  {
    id: 'rows: one is taken out',
    spoil(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.filter((_, i) => i !== 199));
      return { kind: 'missing', record: '#200', position: 200 };
    },
  },
  {
    id: 'rows: one is there twice',
    spoil(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.flatMap((line, i) => (i === 199 ? [line, line] : [line])));
      return { kind: 'stray', record: '#201', columns: ['position'], position: 201 };
    },
  },
  {
    id: 'rows: an empty line',
    spoil(bundle) {
      const position = bundle.lines('log.jsonl', (lines) => [...lines, '']);
      const record = `#${position}`;
      return [
        { kind: 'malformed', record, columns: ['text'], position },
        { kind: 'foreign', record, position },
      ];
    },
  },
  {
    id: 'state: a line is there twice',
    spoil(bundle) {
      bundle.lines('state.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('stray', 'T-0001');
    },
  },
  {
    id: 'state: a line of no table',
    spoil(bundle) {
      bundle.lines('state.jsonl', (lines) => [...lines, '{"id":1,"table":"verdicts"}']);
      return file('malformed', 'state.jsonl');
    },
  },
  {
    id: 'payloads: one is there twice',
    spoil(bundle) {
      bundle.lines('payloads.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('malformed', 'payloads.jsonl');
    },
  },
  {
    id: 'payloads: one of a row that is not there',
    spoil(bundle) {
      bundle.lines('payloads.jsonl', (lines) => [
        ...lines,
        (lines[0] ?? '').replace(/"position":\d+/, '"position":99999'),
      ]);
      return file('stray', '#99999');
    },
  },
  {
    id: 'texts: one is there twice',
    spoil(bundle) {
      bundle.lines('texts.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('malformed', 'texts.jsonl');
    },
  },
  {
    id: 'payloads: two lines change places',
    spoil(bundle) {
      bundle.lines('payloads.jsonl', ([first = '', second = '', ...rest]) => [second, first, ...rest]);
      return [file('malformed', 'payloads.jsonl'), { kind: 'missing', record: '#1', position: 1 }];
    },
  },
  {
    id: 'seals: a leaf is another',
    spoil(bundle) {
      bundle.write('seals/A-0001', bundle.read('seals/A-0001').replace(/^[0-9a-f]{4}/, '0000'));
      return file('altered', 'seals/A-0001');
    },
  },
  {
    id: 'seals: one is missing',
    spoil(bundle) {
      bundle.remove('seals/A-0001');
      return file('altered', 'seals/A-0001');
    },
  },
  {
    id: 'proofs: a hash is another',
    spoil(bundle) {
      bundle.write(
        'proofs/A-0001.tlog-proof',
        bundle.read('proofs/A-0001.tlog-proof').replace(/^(index \d+\n)(....)/m, '$1AAAA'),
      );
      return { ...file('altered', 'proofs/A-0001.tlog-proof'), position: sealPosition(bundle) };
    },
  },
  {
    id: 'keys: one that signed nothing',
    spoil(bundle) {
      const origin = bundle.read('keys').split('+')[0] ?? '';
      bundle.write('keys', `${bundle.read('keys')}${generateNoteKey(origin).verifierKey}\n`);
      return file('stray', 'keys');
    },
  },
  {
    id: 'heads: a kept checkpoint is filed under another size',
    spoil(bundle) {
      const name = bundle.names().find((one) => one.startsWith('checkpoints/')) ?? '';
      const [size = '', id = ''] = name.slice(12).split('-');
      bundle.rename(name, `checkpoints/${Number(size) - 1}-${id}`);
      return {
        kind: 'bad-checkpoint',
        record: `the kept checkpoint ${Number(size) - 1} of key ${id}`,
        columns: ['size'],
      };
    },
  },
  {
    id: 'heads: the newest checkpoint is an older one',
    spoil(bundle) {
      const name = bundle.names().find((one) => one.startsWith('checkpoints/')) ?? '';
      bundle.write('checkpoint', bundle.read(name));
      return file('altered', 'checkpoint');
    },
  },
];

/** One way to lie with a certificate. */
export interface CertificateSpoiling {
  readonly id: string;
  readonly subject: string;
  readonly spoil: (certificate: Record<string, unknown>) => Found | readonly Found[];
}

/** A certificate in the hands of somebody who can change every line of it. */
class CertificateFiles {
  readonly #files: Record<string, string[]>;

  constructor(certificate: Record<string, unknown>) {
    this.#files = certificate.files as Record<string, string[]>;
  }

  lines(name: string): string[] {
    return this.#files[name] ?? [];
  }

  edit(name: string, at: number, from: string | RegExp, to: string): void {
    const lines = this.lines(name);
    lines[at] = (lines[at] ?? '').replace(from, to);
  }

  positions(): number[] {
    return this.lines('proofs.jsonl').map((line) => (JSON.parse(line) as { position: number }).position);
  }

  /** Takes rows away from the end, with all that belongs to them. */
  cut(count: number): void {
    for (const name of ['log.jsonl', 'proofs.jsonl']) this.lines(name).splice(-count);
    const left = new Set(this.positions());
    const payloads = this.lines('payloads.jsonl');
    const kept = payloads.filter((line) => left.has((JSON.parse(line) as { position: number }).position));
    payloads.splice(0, payloads.length, ...kept);
  }

  /** Positions of rows with this in them. */
  having(text: string): number[] {
    return this.positions().filter((_, i) => this.lines('log.jsonl')[i]?.includes(text));
  }
}

/** T-0011 as its second call left it, which is not what the last row that is here left. */
function unexplainedMove(files: CertificateFiles): Found {
  const columns = [
    'held_by',
    'held_process',
    'held_since',
    'labels',
    'position',
    'status',
    'status_since',
    'updated_at',
  ];
  return {
    ...{ kind: 'altered', record: 'T-0011', columns },
    position: files.having('"stage":"exit"').at(-1) ?? 0,
  };
}

export const CERTIFICATE_SPOILINGS: readonly CertificateSpoiling[] = [
  {
    id: 'certificate: of T-0001, called one of T-0004',
    subject: 'T-0001',
    spoil(certificate) {
      certificate.subject = 'T-0004';
      return file('missing', 'T-0004');
    },
  },
  {
    id: 'certificate: a field too many',
    subject: 'T-0001',
    spoil(certificate) {
      certificate.verdict = 'Nothing is wrong.';
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'certificate: a file too many',
    subject: 'T-0001',
    spoil(certificate) {
      (certificate.files as Record<string, unknown>)['verdict.txt'] = ['Nothing is wrong.'];
      return file('stray', 'verdict.txt');
    },
  },
  {
    id: 'certificate: V6 of A-0001, called one of A-0042',
    subject: 'A-0001',
    spoil(certificate) {
      certificate.subject = 'A-0042';
      return file('missing', 'A-0042');
    },
  },
  {
    id: 'certificate: a row by another actor',
    subject: 'T-0001',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      for (const at of [0, 1]) files.edit('log.jsonl', at, '"actor":"alice"', '"actor":"mallory"');
      const positions = files.positions().slice(0, 2);
      const unlinked = positions.map(
        (position): Found => ({ kind: 'unlinked', record: `#${position}`, position }),
      );
      // A task by another actor than the one who made it is a second lie.
      return [
        ...unlinked,
        { kind: 'forbidden', record: 'T-0001', columns: ['effects'], position: positions[1] ?? 0 },
      ];
    },
  },
  {
    id: 'certificate: V5 the salt takes over the body',
    subject: 'T-0001',
    spoil(certificate) {
      const payloads = new CertificateFiles(certificate).lines('payloads.jsonl');
      const { body, position, salt } = JSON.parse(payloads[0] ?? '') as {
        body: string;
        position: number;
        salt: string;
      };
      payloads[0] = JSON.stringify({ body: '', position, salt: salt + Buffer.from(body).toString('hex') });
      return { kind: 'altered', record: `#${position}`, columns: ['salt'], position };
    },
  },
  {
    id: 'certificate: another text',
    subject: 'Θ-0001',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      for (const at of files.lines('texts.jsonl').keys()) files.edit('texts.jsonl', at, /"\}$/, '!"}');
      const [position = 0] = files.having('"tool":"thought_record"');
      return { kind: 'altered', record: `#${position}`, columns: ['salt', 'text'], position };
    },
  },
  {
    id: 'certificate: another state',
    subject: 'T-0001',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      files.edit('state.jsonl', 0, '"progress":100', '"progress":99');
      const position = Number(/"position":(\d+)/.exec(files.lines('state.jsonl')[0] ?? '')?.[1]);
      return { kind: 'altered', record: 'T-0001', columns: ['progress'], position };
    },
  },
  {
    id: 'certificate: a leaf of a seal is another',
    subject: 'A-0001',
    spoil(certificate) {
      new CertificateFiles(certificate).lines('seals/A-0001')[0] = 'a'.repeat(64);
      return file('altered', 'seals/A-0001');
    },
  },
  {
    id: 'certificate: an exit row is missing',
    subject: 'T-0011',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      files.cut(1);
      return unexplainedMove(files);
    },
  },
  {
    id: 'certificate: a call is missing',
    subject: 'T-0011',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      files.cut(2);
      return unexplainedMove(files);
    },
  },
  {
    id: 'certificate: a hash of a proof is another',
    subject: 'T-0001',
    spoil(certificate) {
      const files = new CertificateFiles(certificate);
      files.edit('proofs.jsonl', 0, /"[0-9a-f]{64}"/, `"${'a'.repeat(64)}"`);
      const [position = 0] = files.positions();
      return { kind: 'unlinked', record: `#${position}`, position };
    },
  },
];
