import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../../src/integrity/digest.ts';
import { generateNoteKey } from '../../../src/integrity/note-key.ts';
import type { Found } from '../sources.ts';

// What only the files of a bundle or a certificate can have wrong. The log they were made from is untouched.

/** One way to lie with the files of a bundle. */
export interface Spoiling {
  readonly id: string;
  /** `log`, or a session whose bundle it is about. */
  readonly scope: 'log' | 'A-0001';
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
  return Number(/"position":(\d+)/.exec(bundle.read('seals/A-0001.json'))?.[1]);
}

export const SPOILINGS: readonly Spoiling[] = [
  {
    id: 'V6 a bundle of A-0001 is called one of A-0042',
    scope: 'A-0001',
    spoil(bundle) {
      bundle.mark({ scope: 'A-0042' });
      return file('missing', 'A-0042');
    },
  },
  {
    id: 'V6 a marker with a verdict of its own',
    scope: 'log',
    spoil(bundle) {
      bundle.mark({ scope: 'the COMPLETE log\u001b[2J' });
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'V6 a marker with a field too many',
    scope: 'log',
    spoil(bundle) {
      bundle.mark({ zeal: 'x' });
      return file('damaged', 'bundle');
    },
  },
  {
    id: 'V6 a file too many that the sums name',
    scope: 'log',
    spoil(bundle) {
      bundle.write('verdict.txt', 'Nothing is wrong.\n');
      return file('stray', 'verdict.txt');
    },
  },
  {
    id: 'V6 a file too many that the sums do not name',
    scope: 'log',
    spoil(bundle) {
      bundle.sums = false;
      bundle.write('verdict.txt', 'Nothing is wrong.\n');
      return file('stray', 'verdict.txt');
    },
  },
  {
    id: 'sums: a file that is changed',
    scope: 'log',
    spoil(bundle) {
      bundle.sums = false;
      bundle.write('README.txt', 'Trust me.\n');
      return file('altered', 'README.txt');
    },
  },
  {
    id: 'files: the sums are missing',
    scope: 'log',
    spoil(bundle) {
      bundle.sums = false;
      bundle.remove('SHA256SUMS');
      return file('missing', 'SHA256SUMS');
    },
  },
  {
    id: 'files: the readme is missing',
    scope: 'log',
    spoil(bundle) {
      bundle.remove('README.txt');
      return file('missing', 'README.txt');
    },
  },
  {
    id: 'marker: another number of rows',
    scope: 'log',
    spoil(bundle) {
      bundle.mark({ rows: 3 });
      return file('altered', 'bundle.json');
    },
  },
  {
    id: 'marker: another root',
    scope: 'log',
    spoil(bundle) {
      bundle.mark({ root: 'a'.repeat(64) });
      return file('altered', 'bundle.json');
    },
  },
  {
    id: 'marker: another chain hash',
    scope: 'log',
    spoil(bundle) {
      bundle.mark({ chain_hash: 'a'.repeat(64) });
      return file('altered', 'bundle.json');
    },
  },
  {
    id: 'rows: the last is cut off',
    scope: 'log',
    spoil(bundle) {
      const rows = bundle.lines('log.jsonl', (lines) => lines.slice(0, -1));
      const key = bundle.read('keys').split('+')[1];
      const cut: Found = { kind: 'cut-tail', record: `the head of key ${key}`, position: rows + 1 };
      return [cut, file('altered', 'bundle.json')];
    },
  },
  {
    id: 'rows: the last line has no end',
    scope: 'log',
    spoil(bundle) {
      bundle.write('log.jsonl', bundle.read('log.jsonl').slice(0, -1));
      return { ...file('damaged', 'bundle'), position: 1 };
    },
  },
  {
    id: 'rows: one is taken out',
    scope: 'log',
    spoil(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.filter((_, i) => i !== 199));
      return { kind: 'missing', record: '#200', position: 200 };
    },
  },
  {
    id: 'rows: one is there twice',
    scope: 'log',
    spoil(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.flatMap((line, i) => (i === 199 ? [line, line] : [line])));
      return { kind: 'stray', record: '#201', columns: ['position'], position: 201 };
    },
  },
  {
    id: 'rows: an empty line',
    scope: 'log',
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
    scope: 'log',
    spoil(bundle) {
      bundle.lines('state.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('stray', 'T-0001');
    },
  },
  {
    id: 'state: a line of no table',
    scope: 'log',
    spoil(bundle) {
      bundle.lines('state.jsonl', (lines) => [...lines, '{"id":1,"table":"verdicts"}']);
      return file('malformed', 'state.jsonl');
    },
  },
  {
    id: 'payloads: one is there twice',
    scope: 'log',
    spoil(bundle) {
      bundle.lines('payloads.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('malformed', 'payloads.jsonl');
    },
  },
  {
    id: 'payloads: one of a row that is not there',
    scope: 'log',
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
    scope: 'log',
    spoil(bundle) {
      bundle.lines('texts.jsonl', (lines) => [lines[0] ?? '', ...lines]);
      return file('stray', 'rows');
    },
  },
  {
    id: 'seals: a leaf is another',
    scope: 'log',
    spoil(bundle) {
      bundle.write(
        'seals/A-0001.json',
        bundle.read('seals/A-0001.json').replace(/"hash":"[0-9a-f]{4}/, '"hash":"0000'),
      );
      return file('altered', 'seals/A-0001.json');
    },
  },
  {
    id: 'seals: one is missing',
    scope: 'log',
    spoil(bundle) {
      bundle.remove('seals/A-0001.json');
      return file('altered', 'seals/A-0001.json');
    },
  },
  {
    id: 'proofs: a hash is another',
    scope: 'log',
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
    scope: 'log',
    spoil(bundle) {
      const origin = bundle.read('keys').split('+')[0] ?? '';
      bundle.write('keys', `${bundle.read('keys')}${generateNoteKey(origin).verifierKey}\n`);
      return file('stray', 'keys');
    },
  },
  {
    id: 'heads: a kept checkpoint is filed under another size',
    scope: 'log',
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
    scope: 'log',
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

interface Lists {
  readonly rows: { position: number; previous: string; proof: string[]; text: string }[];
  readonly payloads: { position: number; salt: string; body: string }[];
  readonly texts: { digest: string; salt: string; text: string }[];
  readonly state: string[];
  readonly seals: Record<string, string[]>;
  readonly heads: { checkpoint: string; key: string }[];
}

function listsOf(certificate: Record<string, unknown>): Lists {
  return certificate as unknown as Lists;
}

/** T-0011 as its second call left it, which is not what the last row that is here left. */
function unexplainedMove(rows: readonly { readonly position: number }[]): Found {
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
  return { kind: 'altered', record: 'T-0011', columns, position: rows.at(-1)?.position ?? 0 };
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
    id: 'certificate: a row by another actor',
    subject: 'T-0001',
    spoil(certificate) {
      const { rows } = listsOf(certificate);
      for (const row of rows.slice(0, 2)) row.text = row.text.replace('"actor":"alice"', '"actor":"mallory"');
      const positions = rows.slice(0, 2).map(({ position }) => position);
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
      const [payload] = listsOf(certificate).payloads;
      if (payload === undefined) throw new Error('no payload');
      payload.salt += Buffer.from(payload.body).toString('hex');
      payload.body = '';
      return {
        kind: 'altered',
        record: `#${payload.position}`,
        columns: ['salt'],
        position: payload.position,
      };
    },
  },
  {
    id: 'certificate: another text',
    subject: 'Θ-0001',
    spoil(certificate) {
      const { texts, rows } = listsOf(certificate);
      for (const text of texts) text.text = `${text.text}!`;
      const { position = 0 } = rows.find(({ text }) => text.includes('"tool":"thought_record"')) ?? {};
      return { kind: 'altered', record: `#${position}`, columns: ['salt', 'text'], position };
    },
  },
  {
    id: 'certificate: another state',
    subject: 'T-0001',
    spoil(certificate) {
      const { state } = listsOf(certificate);
      state[0] = (state[0] ?? '').replace('"progress":100', '"progress":99');
      return {
        kind: 'altered',
        record: 'T-0001',
        columns: ['progress'],
        position: Number(/"position":(\d+)/.exec(state[0] ?? '')?.[1]),
      };
    },
  },
  {
    id: 'certificate: a leaf of a seal is another',
    subject: 'A-0001',
    spoil(certificate) {
      const leaves = listsOf(certificate).seals['A-0001'];
      if (leaves === undefined) throw new Error('no seal');
      leaves[0] = 'a'.repeat(64);
      return file('altered', 'A-0001');
    },
  },
  {
    id: 'certificate: an exit row is missing',
    subject: 'T-0011',
    spoil(certificate) {
      const { rows, payloads } = listsOf(certificate);
      const [{ position } = { position: 0 }] = rows.splice(-1);
      payloads.splice(0, payloads.length, ...payloads.filter((payload) => payload.position !== position));
      return unexplainedMove(rows.filter(({ text }) => text.includes('"stage":"exit"')));
    },
  },
  {
    id: 'certificate: a call is missing',
    subject: 'T-0011',
    spoil(certificate) {
      const { rows, payloads } = listsOf(certificate);
      rows.splice(-2);
      payloads.splice(
        0,
        payloads.length,
        ...payloads.filter(({ position }) => rows.some((row) => row.position === position)),
      );
      return unexplainedMove(rows);
    },
  },
  {
    id: 'certificate: a hash of a proof is another',
    subject: 'T-0001',
    spoil(certificate) {
      const [row] = listsOf(certificate).rows;
      if (row === undefined) throw new Error('no row');
      row.proof[0] = 'a'.repeat(64);
      return { kind: 'unlinked', record: `#${row.position}`, position: row.position };
    },
  },
];
