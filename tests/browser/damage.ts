import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson } from '../../src/integrity/canonical-json.ts';
import { formatCheckpoint } from '../../src/integrity/checkpoint.ts';
import { sha256Hex } from '../../src/integrity/digest.ts';
import { generateNoteKey, type NoteSigner, noteSigner, signNote } from '../../src/integrity/signed-note.ts';
import { treeRoot } from '../../src/integrity/tree.ts';
import { originOfKey } from '../../src/trust/opening.ts';

/** A bundle as a folder, in the hands of somebody who knows how it is made. */
export class DamagedBundle {
  readonly folder: string;

  constructor(good: string, folder: string) {
    rmSync(folder, { recursive: true, force: true });
    cpSync(good, folder, { recursive: true });
    this.folder = folder;
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  lines(name: string, change: (lines: string[]) => string[]): void {
    const lines = change(this.read(name).split('\n').slice(0, -1));
    this.write(name, lines.map((line) => `${line}\n`).join(''));
  }

  /** Replaces text in the first line that has it. */
  edit(name: string, from: string | RegExp, to: (...found: string[]) => string): void {
    const text = this.read(name);
    const edited = text.replace(from, to);
    if (edited === text) throw new Error(`${name} does not hold ${from}`);
    this.write(name, edited);
  }

  /** The one head, by its file. */
  get head(): string {
    const [name = ''] = this.names('heads');
    return name;
  }

  /** Makes bundle.json and SHA256SUMS fit what is there: whoever can change a file can change those too. */
  coverUp(change: { readonly origin?: string } = {}): void {
    const hashes = this.read('log.jsonl').split('\n').slice(0, -1).map(sha256Hex);
    const marker = {
      ...JSON.parse(this.read('bundle.json')),
      size: hashes.length,
      root: treeRoot(hashes),
      ...change,
    };
    this.write('bundle.json', `${canonicalJson(marker)}\n`);
    this.sum();
  }

  sum(): void {
    const names = readdirSync(this.folder, { recursive: true })
      .map(String)
      .filter((name) => name !== 'SHA256SUMS' && statSync(join(this.folder, name)).isFile())
      .sort();
    const sums = names.map((name) => `${sha256Hex(readFileSync(join(this.folder, name)))}  ${name}\n`);
    this.write('SHA256SUMS', sums.join(''));
  }

  /** Signs the whole as a log of one's own: another key, another name, and everything that speaks of the old ones is gone. */
  makeAnew(): void {
    const signer = freshSigner();
    const { size, root } = JSON.parse(this.read('bundle.json'));
    const signed = (of: { size: number; root: string }) =>
      signNote(formatCheckpoint({ origin: signer.name, ...of }), signer);
    const note = signed({ size, root });
    const hashes = this.read('log.jsonl').split('\n').slice(0, -1).map(sha256Hex);
    const kept = this.names('checkpoints').map((name) => Number(/\d+/.exec(name)?.[0]));
    for (const name of [...this.names('checkpoints'), ...this.names('anchors'), this.head])
      rmSync(join(this.folder, name));
    for (const old of kept)
      this.write(
        `checkpoints/${old}-${signer.id}`,
        signed({ size: old, root: treeRoot(hashes.slice(0, old)) }),
      );
    this.write('keys', `${signer.verifierKey}\n`);
    this.write('checkpoint', note);
    this.write(`heads/${signer.id}`, note);
    for (const name of this.names('proofs')) this.edit(name, /\n\n[\s\S]*$/, () => `\n\n${note}`);
    this.coverUp({ origin: signer.name });
  }

  /** Puts a head by a key of one's own in the place of the newest. */
  signWithAnotherKey(): void {
    const { origin, size, root } = JSON.parse(this.read('bundle.json'));
    const { privateKeyPem, verifierKey } = generateNoteKey(origin);
    const signer = noteSigner(origin, privateKeyPem);
    const note = signNote(formatCheckpoint({ origin, size, root }), signer);
    this.write('keys', `${this.read('keys')}${verifierKey}\n`);
    this.write(`heads/${signer.id}`, note);
    this.sum();
  }

  names(folder: string): string[] {
    try {
      return readdirSync(join(this.folder, folder)).map((name) => `${folder}/${name}`);
    } catch {
      return [];
    }
  }
}

/** A key under the name that a log it creates has. */
function freshSigner(): NoteSigner {
  const { privateKeyPem, verifierKey } = generateNoteKey('a');
  return noteSigner(originOfKey(verifierKey) ?? '', privateKeyPem);
}

export interface Damage {
  readonly what: string;
  /** The check under which the page must show it. */
  readonly check: string;
  /** Rows that must not be called intact: none at or beyond this one. */
  readonly from?: number;
  do(bundle: DamagedBundle): void;
}

const swap = (lines: string[], a: number, b: number) =>
  lines
    .map((line, i) => (i === a ? lines[b] : i === b ? lines[a] : line))
    .filter((line) => line !== undefined);

/** Ways to change a bundle, each covered up as well as can be. */
export const DAMAGES: readonly Damage[] = [
  {
    what: 'an actor renamed in an old row',
    check: 'heads',
    from: 5,
    do(bundle) {
      bundle.lines('log.jsonl', (lines) =>
        lines.map((line, i) =>
          i === 4 || i === 5 ? line.replace('"actor":"builder"', '"actor":"nobody"') : line,
        ),
      );
      bundle.coverUp();
    },
  },
  {
    what: 'a row deleted',
    check: 'rows',
    from: 8,
    do(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.filter((_, i) => i !== 7));
      bundle.coverUp();
    },
  },
  {
    what: 'two rows swapped',
    check: 'rows',
    from: 3,
    do(bundle) {
      bundle.lines('log.jsonl', (lines) => swap(lines, 2, 4));
      bundle.coverUp();
    },
  },
  {
    what: 'a row doubled',
    check: 'files',
    do(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.flatMap((line, i) => (i === 9 ? [line, line] : [line])));
      bundle.coverUp();
    },
  },
  {
    what: 'the tail cut off',
    check: 'heads',
    do(bundle) {
      bundle.lines('log.jsonl', (lines) => lines.slice(0, -2));
      bundle.lines('payloads.jsonl', (lines) => lines.slice(0, -2));
      bundle.coverUp();
    },
  },
  {
    what: 'a project changed in the state',
    check: 'state',
    do(bundle) {
      bundle.edit('state.jsonl', '"project":"odd"', () => '"project":"eve"');
      bundle.sum();
    },
  },
  {
    what: 'a title changed beside its digest',
    check: 'texts',
    do(bundle) {
      bundle.edit('texts.jsonl', '"text":"Foundations"', () => '"text":"Foundation"');
      bundle.sum();
    },
  },
  {
    what: 'a text taken away that nobody erased',
    check: 'texts',
    do(bundle) {
      bundle.lines('texts.jsonl', (lines) => lines.filter((line) => !line.includes('Slate, not tiles.')));
      bundle.sum();
    },
  },
  {
    what: 'a thought taken away',
    check: 'state',
    do(bundle) {
      bundle.lines('state.jsonl', (lines) =>
        lines.filter((line) => !/"chain_position":2.*"id":2,/.test(line)),
      );
      bundle.sum();
    },
  },
  {
    what: 'a task added that no call made',
    check: 'state',
    do(bundle) {
      bundle.lines('state.jsonl', (lines) => {
        const last = lines.findLastIndex((line) => line.includes('"workflow":'));
        const extra = (lines[last] ?? '').replace(/"id":\d+/, '"id":99');
        return [...lines.slice(0, last + 1), extra, ...lines.slice(last + 1)];
      });
      bundle.sum();
    },
  },
  {
    what: 'an argument changed beside its row',
    check: 'payloads',
    do(bundle) {
      bundle.edit('payloads.jsonl', 'carpenter', () => 'carpentet');
      bundle.sum();
    },
  },
  {
    what: 'an argument taken away',
    check: 'payloads',
    from: 3,
    do(bundle) {
      bundle.lines('payloads.jsonl', (lines) => lines.filter((line) => !line.includes('"position":3,')));
      bundle.sum();
    },
  },
  {
    what: 'a record exchanged under a seal',
    check: 'files',
    do(bundle) {
      bundle.edit('seals/A-0001', /^[0-9a-f]{4}/, () => '0000');
      bundle.sum();
    },
  },
  {
    what: 'a signature with one letter changed',
    check: 'heads',
    do(bundle) {
      const flip = (_: string, letter: string, rest: string) => (letter === 'A' ? 'B' : 'A') + rest;
      for (const name of ['checkpoint', bundle.head]) bundle.edit(name, /(\w)(\w{6}\S*\n)$/, flip);
      bundle.sum();
    },
  },
  {
    what: 'a head by another key',
    check: 'heads',
    do(bundle) {
      bundle.signWithAnotherKey();
    },
  },
  {
    what: 'another date in an anchor',
    check: 'anchors',
    do(bundle) {
      bundle.edit(
        bundle.names('anchors').find((name) => name.endsWith('.commit')) ?? '',
        /> 1/g,
        () => '> 2',
      );
      bundle.sum();
    },
  },
  {
    what: 'an anchor of another log',
    check: 'anchors',
    do(bundle) {
      const text = 'committed\n\ncolibri/0123456789abcdef\n3\n';
      bundle.write(`anchors/${sha256Hex(text)}.commit`, text);
      bundle.sum();
    },
  },
  {
    what: 'a file that the sums do not know',
    check: 'files',
    do(bundle) {
      bundle.write('README.txt', 'Trust me.\n');
    },
  },
  {
    what: 'a last line without an end',
    check: 'files',
    do(bundle) {
      bundle.write('log.jsonl', bundle.read('log.jsonl').slice(0, -1));
      bundle.sum();
    },
  },
];
