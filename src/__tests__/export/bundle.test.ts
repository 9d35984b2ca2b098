import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { generateNoteKey, noteSigner } from '../../integrity/note-key.ts';
import { signNote } from '../../integrity/signed-note.ts';
import { checkBundle, checkWithPython, exportTo, filesIn, prove, recomputeSums } from './evidence.ts';
import { playRealLog, type RealLog } from './real-log.ts';

let log: RealLog;
let key: string;

beforeAll(async () => {
  log = await playRealLog(new Playground());
  await exportTo(log, log.colibri.path('whole'));
  key = readFileSync(log.colibri.path('whole', 'key.pub'), 'utf8').trim();
});

afterAll(async () => {
  await log.colibri.dispose();
});

test(proving('bundle.forms', 'a bundle of a real log verifies, as a folder and as a zip'), async () => {
  for (const name of ['folder', 'file.zip']) {
    const path = log.colibri.path(name);

    const written = await exportTo(log, path);
    const { verdict, findings } = await checkBundle(path, { trustedKey: key });

    expect(findings).toEqual([]);
    expect(written.checkpointedThrough).toBe(written.size);
    expect(verdict).toMatchObject({ size: written.size, intactThrough: written.size, scope: 'log' });
    expect(verdict.checkpointedThrough).toBe(written.size);
    expect(verdict.origin).toBe(written.origin);
  }
});

test(
  proving(
    ['bundle.forms', 'log-tree.inclusion'],
    'a bundle of one session verifies, as a folder and as a zip',
  ),
  async () => {
    for (const name of ['session', 'session.zip']) {
      const path = log.colibri.path(name);

      await exportTo(log, path, log.session);
      const { verdict, findings } = await checkBundle(path, { trustedKey: key });

      expect(findings).toEqual([]);
      expect(verdict.scope).toBe(log.session);
    }
  },
);

test(
  proving('bundle.files', 'the same log makes the same bytes, and exporting changes nothing in the database'),
  async () => {
    const before = readFileSync(log.dbPath);

    await exportTo(log, log.colibri.path('once.zip'));
    await exportTo(log, log.colibri.path('twice.zip'));

    expect(readFileSync(log.colibri.path('once.zip'))).toEqual(readFileSync(log.colibri.path('twice.zip')));
    expect(readFileSync(log.dbPath)).toEqual(before);
  },
);

test('files are private', async () => {
  const folder = log.colibri.path('private');

  await exportTo(log, folder);

  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, 'seals')).mode & 0o777).toBe(0o700);
  for (const name of filesIn(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
});

test('a bundle replaces a bundle, and nothing else', async () => {
  const bundle = log.colibri.path('replaced');
  const other = log.colibri.path('other');
  mkdirSync(other);
  writeFileSync(join(other, 'letters.txt'), 'keep me');
  writeFileSync(log.colibri.path('some.zip'), 'PK not a bundle');

  await exportTo(log, bundle);
  await exportTo(log, bundle, log.session);

  expect((await checkBundle(bundle)).verdict.scope).toBe(log.session);
  await expect(exportTo(log, other)).rejects.toThrow('no bundle');
  await expect(exportTo(log, log.colibri.path('some.zip'))).rejects.toThrow('no bundle');
  expect(readFileSync(join(other, 'letters.txt'), 'utf8')).toBe('keep me');
  expect(filesIn(log.colibri.folder).filter((name) => name.includes('.new'))).toEqual([]);
});

test(proving('verdict.ranges', 'rows that no checkpoint covers are exported and named'), async () => {
  const server = await log.colibri.start();
  await server.call('task_create', { title: 'later', project: 'house' });
  await server.killHard();
  const path = log.colibri.path('uncovered');

  const written = await exportTo(log, path);
  const { verdict, findings } = await checkBundle(path);

  expect(written.size - written.checkpointedThrough).toBe(2);
  expect(findings).toEqual([]);
  expect(verdict.checkpointedThrough).toBe(written.checkpointedThrough);
  expect(verdict.size).toBe(written.size);
  await expect(prove(log, 'T-0004')).rejects.toThrow('Run "colibri checkpoint" first');
});

test('a cut log is not exported as if nothing were missing', async () => {
  const cut = { ...log, dbPath: log.colibri.path('cut.db') };
  const db = new Sqlite(log.dbPath);
  db.exec(`VACUUM INTO '${cut.dbPath}'`);
  db.close();
  for (const suffix of ['.checkpoint'])
    writeFileSync(`${cut.dbPath}${suffix}`, readFileSync(`${log.dbPath}${suffix}`));
  const copy = new Sqlite(cut.dbPath);
  copy.exec('DROP TRIGGER actions_no_delete; DELETE FROM actions WHERE position > 20');
  copy.close();

  await expect(exportTo(cut, log.colibri.path('cut'))).rejects.toThrow('its newest rows are gone');
});

const FORGERIES: Readonly<Record<string, (folder: string) => void>> = {
  'a row of the log taken out': (folder) => dropLine(folder, 'log.jsonl', 7),
  'the tail of the log cut off': (folder) => editLines(folder, 'log.jsonl', (lines) => lines.slice(0, -2)),
  'two rows swapped': (folder) =>
    editLines(folder, 'log.jsonl', ([a = '', b = '', ...rest]) => [b, a, ...rest]),
  'a row doubled': (folder) => editLines(folder, 'log.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'a row of state taken out': (folder) => dropLine(folder, 'state.jsonl', 1),
  'the last row of state taken out': (folder) =>
    editLines(folder, 'state.jsonl', (lines) => lines.slice(0, -1)),
  'a row of state doubled': (folder) =>
    editLines(folder, 'state.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'a row of state invented': (folder) =>
    editLines(folder, 'state.jsonl', (lines) => [
      ...lines,
      (lines.at(-1) ?? '').replace(/"id":\d+/, '"id":999'),
    ]),
  'a payload taken out': (folder) => dropLine(folder, 'payloads.jsonl', 3),
  'a payload doubled': (folder) =>
    editLines(folder, 'payloads.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'a payload said twice in one line': (folder) =>
    editLines(folder, 'payloads.jsonl', ([a = '', ...rest]) => [a.replace('{', '{"body":"{}",'), ...rest]),
  'a sealed record left out': (folder) =>
    editLines(folder, 'seals/A-0001.json', ([seal = '']) => [seal.replace(/\[\{.*?\},/, '[')]),
  'another root': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [marker.replace(/"root":"../, '"root":"zz')]),
  'another chain': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [
      marker.replace(/"chain_hash":"../, '"chain_hash":"zz'),
    ]),
  'an anchor of nothing here': (folder) => addAnchor(folder, `${sha256Hex('')}.tsr`, ''),
  'an anchor of another log': (folder) => addAnchor(folder, `${sha256Hex(COMMIT)}.commit`, COMMIT),
  'a file that is no anchor': (folder) => addAnchor(folder, 'letter.txt', 'Trust me.\n'),
  'no checkpoint': (folder) => rmSync(join(folder, 'checkpoint')),
  'no key': (folder) => rmSync(join(folder, 'key.pub')),
  'no seal': (folder) => rmSync(join(folder, 'seals', 'A-0001.json')),
  'no proof': (folder) => rmSync(join(folder, 'proofs', 'A-0001.tlog-proof')),
  'no state': (folder) => rmSync(join(folder, 'state.jsonl')),
  'an empty log': (folder) => writeFileSync(join(folder, 'log.jsonl'), ''),
  'bytes that are no text': (folder) => writeFileSync(join(folder, 'log.jsonl'), Buffer.alloc(5_000, 0xff)),
  'a file too many': (folder) => writeFileSync(join(folder, 'seals', 'A-0099.json'), '{}'),
  'a link to another file': (folder) => symlinkSync('/etc/hostname', join(folder, 'extra')),
  'an old checkpoint under another size': (folder) =>
    writeFileSync(join(folder, 'checkpoints', '3'), readFileSync(join(folder, 'checkpoint'))),
  'a checkpoint by another key of the same name': (folder) => {
    const name = key.split('+')[0] ?? '';
    const signer = noteSigner(name, generateNoteKey(name).privateKeyPem);
    const text = readFileSync(join(folder, 'checkpoint'), 'utf8').split('\n\n')[0];
    writeFileSync(join(folder, 'checkpoint'), signNote(`${text}\n`, signer));
  },
};

/** Of a whole log the script needs no proofs, and takes the size of a checkpoint from its text and not from its name. */
const BESIDE_THE_LOG = new Set(['no proof', 'an old checkpoint under another size']);

test.each(Object.entries(FORGERIES))(
  proving('bundle.forged', '%s is found here and by Python, with the sums recomputed'),
  async (what, forge) => {
    const folder = log.colibri.path(`forged ${what}`.replaceAll(' ', '-'));
    await exportTo({ ...log }, folder);
    forge(folder);
    recomputeSums(folder);

    const { findings } = await checkBundle(folder);
    const python = await checkWithPython(folder);

    expect(findings.length).toBeGreaterThan(0);
    expect(python.code, python.output).toBe(BESIDE_THE_LOG.has(what) ? 0 : 1);
    for (const { message } of findings) expect(message).toMatch(/^[^\n]+\.$/);
  },
);

test(
  proving(
    ['verdict.key', 'verdict.against'],
    'a history rewritten and signed anew is found by whoever knows the key or kept a checkpoint',
  ),
  async () => {
    const folder = log.colibri.path('resigned');
    await exportTo(log, folder);
    const note = readFileSync(join(folder, 'checkpoint'), 'utf8');
    const name = key.split('+')[0] ?? '';
    const { privateKeyPem, verifierKey } = generateNoteKey(name);
    const other = noteSigner(name, privateKeyPem);
    for (const file of filesIn(folder).filter((path) => path.startsWith('checkpoint')))
      writeFileSync(
        join(folder, file),
        signNote(`${readFileSync(join(folder, file), 'utf8').split('\n\n')[0]}\n`, other),
      );
    const proof = readFileSync(join(folder, 'proofs', 'A-0001.tlog-proof'), 'utf8').split('\n\n')[0];
    const resigned = readFileSync(join(folder, 'checkpoint'), 'utf8');
    writeFileSync(join(folder, 'proofs', 'A-0001.tlog-proof'), `${proof}\n\n${resigned}`);
    writeFileSync(join(folder, 'key.pub'), `${verifierKey}\n`);
    recomputeSums(folder);

    expect((await checkBundle(folder)).findings).toEqual([]);
    expect((await checkBundle(folder, { trustedKey: key })).findings).not.toEqual([]);
    expect((await checkBundle(folder, { against: note })).findings).not.toEqual([]);
  },
);

test('a checkpoint kept elsewhere is compared with the log', async () => {
  const older = readFileSync(log.colibri.path('whole', 'checkpoints', '34'), 'utf8');

  const { findings } = await checkBundle(log.colibri.path('whole'), { against: older, trustedKey: key });

  expect(findings).toEqual([]);
});

const COMMIT = `tree ${'0'.repeat(40)}\ncommitter ada <ada@localhost> 1 +0000\n\ncolibri checkpoint at 3 audit rows\n\ncolibri/0123456789abcdef\n3\n`;

function addAnchor(folder: string, name: string, text: string): void {
  mkdirSync(join(folder, 'anchors'), { recursive: true });
  writeFileSync(join(folder, 'anchors', name), text);
}

function editLines(folder: string, name: string, edit: (lines: string[]) => string[]): void {
  const lines = readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
  const edited = edit(lines);
  writeFileSync(join(folder, name), edited.map((line) => `${line}\n`).join(''));
}

function dropLine(folder: string, name: string, index: number): void {
  editLines(folder, name, (lines) => lines.toSpliced(index, 1));
}
