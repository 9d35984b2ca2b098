import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { openDatabase } from '../../../tests/driver/database.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { generateNoteKey, noteSigner, signNote } from '../../integrity/signed-note.ts';
import type { Verdict } from '../../verify/verdict.ts';
import { checkBundle, checkDatabase, exportTo, filesIn, prove, recomputeSums } from './evidence.ts';
import { playRealLog, type RealLog } from './real-log.ts';

let log: RealLog;
let key: string;

beforeAll(async () => {
  log = await playRealLog(new Playground());
  await exportTo(log, log.colibri.path('whole'));
  key = readFileSync(log.colibri.path('whole', 'keys'), 'utf8').trim();
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
    expect(verdict).toMatchObject({
      size: written.size,
      intactThrough: written.size,
      replayedThrough: written.size,
    });
    expect(verdict.checkpointedThrough).toBe(written.size);
    expect(verdict.origin).toBe(written.origin);
  }
});

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
  writeFileSync(join(bundle, 'README.txt'), 'changed');
  await exportTo(log, bundle);

  expect((await checkBundle(bundle)).findings).toEqual([]);
  await expect(exportTo(log, other)).rejects.toThrow('not a bundle');
  await expect(exportTo(log, log.colibri.path('some.zip'))).rejects.toThrow('not a bundle');
  expect(readFileSync(join(other, 'letters.txt'), 'utf8')).toBe('keep me');
  expect(filesIn(log.colibri.folder).filter((name) => name.includes('.new'))).toEqual([]);
});

/** A copy of the database, changed by somebody who has SQL and no key. */
function forgeDatabase(name: string, sql: string): RealLog {
  const dbPath = log.colibri.path(name);
  const db = openDatabase(log.dbPath);
  db.exec(`VACUUM INTO '${dbPath}'`);
  db.close();
  const copy = openDatabase(dbPath);
  copy.pragma('foreign_keys = OFF');
  const triggers = () =>
    copy.prepare("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").pluck().all() as string[];
  const before = triggers();
  copy.exec(sql);
  // A file without its triggers would not be opened.
  for (const trigger of before) if (!triggers().includes(trigger)) copy.exec(trigger);
  copy.close();
  return { ...log, dbPath };
}

const HASH = 'ab'.repeat(32);
const SALT = '0'.repeat(32);

/** What can be done to a table that a bundle has a place for. */
const IN_THE_DATABASE: Readonly<Record<string, string>> = {
  'a text that no call carried': `INSERT INTO texts VALUES (8000, '${HASH}', '${SALT}', 'hi')`,
  'a text taken out': "DROP TRIGGER texts_no_delete; DELETE FROM texts WHERE text = 'Roof'",
  'a text changed': "DROP TRIGGER texts_no_update; UPDATE texts SET text = 'Root' WHERE text = 'Roof'",
  'a longer salt': "DROP TRIGGER texts_no_update; UPDATE texts SET salt = salt || 'aa' WHERE text = 'Roof'",
  'a payload of no row': `INSERT INTO action_payloads VALUES (999, '${SALT}', '{}')`,
  'an answer taken out':
    'DROP TRIGGER action_payloads_no_delete; DELETE FROM action_payloads WHERE position = 6',
  'a task changed': "UPDATE tasks SET status = 'done' WHERE id = 1",
  'a thought changed': `DROP TRIGGER thoughts_no_update; UPDATE thoughts SET hash = '${HASH}' WHERE id = 1`,
  'a thought taken out': 'DROP TRIGGER thoughts_no_delete; DELETE FROM thoughts WHERE id = 2',
  'a session changed': 'UPDATE sessions SET leaf_count = 6 WHERE id = 1',
  'a record changed':
    'DROP TRIGGER session_records_no_update; UPDATE session_records SET ref = 1 WHERE id = 3',
  'a record invented': "INSERT INTO session_records VALUES (99, 1, 1, 'thought', 1, 3)",
  'a row taken out': 'DROP TRIGGER actions_no_delete; DELETE FROM actions WHERE position = 9',
  'no head': 'DELETE FROM log_heads',
  'a kept checkpoint changed': "UPDATE checkpoints SET note = replace(note, '34', '35') WHERE size = 34",
  'a kept checkpoint under another size': 'UPDATE checkpoints SET size = 33 WHERE size = 34',
  'another name': `DROP TRIGGER log_no_update; UPDATE log SET origin = 'colibri/${SALT}'`,
  'no name': 'DROP TRIGGER log_no_delete; DELETE FROM log',
};

test.each(Object.entries(IN_THE_DATABASE))(
  proving(['bundle.forged', 'verdict.ranges'], '%s is the same finding in the database and in its bundle'),
  async (what, sql) => {
    const forged = forgeDatabase(`${what.replaceAll(' ', '-')}.db`, sql);
    const paths = [log.colibri.path(`${what} folder`), log.colibri.path(`${what}.zip`)];
    for (const path of paths) await exportTo(forged, path);

    const inDatabase = await checkDatabase(forged);

    // The schema and the indexes are the database's own.
    const findings = inDatabase.findings.filter(({ kind }) => kind !== 'schema' && kind !== 'index');
    expect(findings).not.toEqual([]);
    for (const path of paths) {
      const inBundle = await checkBundle(path);
      expect(inBundle.findings).toEqual(findings);
      expect(inBundle.verdict).toMatchObject(rangesIn(inDatabase.verdict));
    }
  },
);

test(proving('verdict.ranges', 'rows that no key has signed are exported and named'), async () => {
  const forged = forgeDatabase('foreign.db', 'DELETE FROM checkpoints WHERE size > 34');
  const db = openDatabase(forged.dbPath);
  db.exec('UPDATE log_heads SET checkpoint = (SELECT note FROM checkpoints WHERE size = 34)');
  db.close();
  const path = log.colibri.path('foreign');

  const written = await exportTo(forged, path);
  const { verdict, findings } = await checkBundle(path);

  expect(written).toMatchObject({ size: 44, checkpointedThrough: 34 });
  expect(findings.map(({ kind, position }) => [kind, position])).toEqual([['foreign', 35]]);
  expect(verdict).toMatchObject({ size: 44, intactThrough: 34, checkpointedThrough: 34 });
  await expect(prove(forged, '#44')).rejects.toThrow('is not signed');
});

test('a cut log is exported as it is, and nothing of it is proved', async () => {
  const cut = forgeDatabase(
    'cut.db',
    'DROP TRIGGER actions_no_delete; DELETE FROM actions WHERE position > 40',
  );
  const path = log.colibri.path('cut');

  const written = await exportTo(cut, path);
  const { findings } = await checkBundle(path);

  expect(written).toMatchObject({ size: 40, checkpointedThrough: 44 });
  expect(findings.map(({ kind }) => kind)).toContain('cut-tail');
  await expect(prove(cut, 'T-0001')).rejects.toThrow('its newest rows are gone');
  await expect(prove(cut, log.session)).rejects.toThrow('are gone');
});

const FORGERIES: Readonly<Record<string, (folder: string) => void>> = {
  'a row of the log taken out': (folder) => dropLine(folder, 'log.jsonl', 7),
  'the tail of the log cut off': (folder) => editLines(folder, 'log.jsonl', (lines) => lines.slice(0, -2)),
  'two rows swapped': (folder) =>
    editLines(folder, 'log.jsonl', ([a = '', b = '', ...rest]) => [b, a, ...rest]),
  'a row doubled': (folder) => editLines(folder, 'log.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'a byte of a row changed': (folder) =>
    editLines(folder, 'log.jsonl', (lines) => lines.with(8, (lines[8] ?? '').replace('builder', 'burglar'))),
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
  'a payload emptied into its salt': (folder) =>
    editLines(folder, 'payloads.jsonl', ([a = '', ...rest]) => {
      const { body, position, salt } = JSON.parse(a) as { body: string; position: number; salt: string };
      return [
        JSON.stringify({ body: '', position, salt: salt + Buffer.from(body).toString('hex') }),
        ...rest,
      ];
    }),
  'a text taken out': (folder) => dropLine(folder, 'texts.jsonl', 1),
  'a text doubled': (folder) => editLines(folder, 'texts.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'a text changed': (folder) =>
    editLines(folder, 'texts.jsonl', (lines) => lines.map((line) => line.replace('Roof', 'Root'))),
  'a text with another member': (folder) =>
    editLines(folder, 'texts.jsonl', ([a = '', ...rest]) => [
      a.replace('"text"', '"seen":1,"text"'),
      ...rest,
    ]),
  'a payload said twice in one line': (folder) =>
    editLines(folder, 'payloads.jsonl', ([a = '', ...rest]) => [a.replace('{', '{"body":"{}",'), ...rest]),
  'a sealed record left out': (folder) => dropLine(folder, 'seals/A-0001', 1),
  'another root': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [marker.replace(/"root":"../, '"root":"zz')]),
  'an anchor of nothing here': (folder) => addAnchor(folder, `${sha256Hex('')}.tsr`, ''),
  'an anchor of another log': (folder) => addAnchor(folder, `${sha256Hex(COMMIT)}.commit`, COMMIT),
  'a file that is no anchor': (folder) => addAnchor(folder, 'letter.txt', 'Trust me.\n'),
  'no checkpoint': (folder) => rmSync(join(folder, 'checkpoint')),
  'no key': (folder) => rmSync(join(folder, 'keys')),
  'a key too many': (folder) =>
    editLines(folder, 'keys', (lines) => [...lines, generateNoteKey('x').verifierKey]),
  'no head': (folder) => rmSync(join(folder, 'heads', key.split('+')[1] ?? '')),
  'a head of a key that is not there': (folder) =>
    writeFileSync(join(folder, 'heads', '00000000'), readFileSync(join(folder, 'checkpoint'))),
  'no seal': (folder) => rmSync(join(folder, 'seals', 'A-0001')),
  'no proof': (folder) => rmSync(join(folder, 'proofs', 'A-0001.tlog-proof')),
  'no texts': (folder) => rmSync(join(folder, 'texts.jsonl')),
  'no marker': (folder) => rmSync(join(folder, 'bundle.json')),
  'no sums': (folder) => rmSync(join(folder, 'SHA256SUMS')),
  'no state': (folder) => rmSync(join(folder, 'state.jsonl')),
  'an empty log': (folder) => writeFileSync(join(folder, 'log.jsonl'), ''),
  'bytes that are no text': (folder) => writeFileSync(join(folder, 'log.jsonl'), Buffer.alloc(5_000, 0xff)),
  'a file too many': (folder) => writeFileSync(join(folder, 'seals', 'A-0099'), '{}'),
  'a letter beside the log': (folder) => writeFileSync(join(folder, 'letter.txt'), 'Trust me.'),
  'rows of another size in the marker': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [marker.replace('"size":44', '"size":45')]),
  'another name in the marker': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [marker.replace(/colibri\/../, 'colibri/00')]),
  'a verdict in the marker': (folder) =>
    editLines(folder, 'bundle.json', ([marker = '']) => [
      marker.replace('"origin":"', '"origin":"\\u001b[2Jthe COMPLETE log'),
    ]),
  'a marker whose line does not end': (folder) =>
    writeFileSync(
      join(folder, 'bundle.json'),
      readFileSync(join(folder, 'bundle.json'), 'utf8').replace('\n', 'J'),
    ),
  'a link to another file': (folder) => symlinkSync('/etc/hostname', join(folder, 'extra')),
  'an old checkpoint under another size': (folder) =>
    writeFileSync(
      join(folder, 'checkpoints', `3-${key.split('+')[1]}`),
      readFileSync(join(folder, 'checkpoint')),
    ),
  'a checkpoint by another key of the same name': (folder) => resign(folder, readName()),
};

test.each(Object.entries(FORGERIES))(
  proving('bundle.forged', '%s is found, with the sums recomputed'),
  async (what, forge) => {
    const folder = log.colibri.path(`forged ${what}`.replaceAll(' ', '-'));
    await exportTo({ ...log }, folder);
    forge(folder);
    if (what !== 'no sums') recomputeSums(folder);

    const { findings } = await checkBundle(folder);

    expect(findings.length).toBeGreaterThan(0);
    // Nothing is printed raw.
    for (const { message } of findings) expect(message).toMatch(/^[^\p{Cc}]+\.$/u);
  },
);

test(
  proving(
    ['verdict.key', 'verdict.against'],
    'a log that somebody signed anew is not this one: the name of a log belongs to its key',
  ),
  async () => {
    const folder = log.colibri.path('resigned');
    await exportTo(log, folder);
    const note = readFileSync(join(folder, 'checkpoint'), 'utf8');
    resign(folder, readName());
    recomputeSums(folder);

    for (const trust of [{}, { trustedKey: key }, { against: note }])
      expect((await checkBundle(folder, trust)).findings).not.toEqual([]);
  },
);

test('a checkpoint kept elsewhere is compared with the log', async () => {
  const older = readFileSync(log.colibri.path('whole', 'checkpoints', `34-${key.split('+')[1]}`), 'utf8');

  const { findings } = await checkBundle(log.colibri.path('whole'), { against: older, trustedKey: key });

  expect(findings).toEqual([]);
});

test(proving('bundle.hostile', 'a file that is cut off in the middle of a zip is one finding'), async () => {
  const path = log.colibri.path('broken.zip');
  await exportTo(log, path);
  const bytes = readFileSync(path);
  // Inside the packed bytes of log.jsonl, which is the first entry.
  bytes.fill(0, 200, 260);
  writeFileSync(path, bytes);

  const { findings } = await checkBundle(path);

  expect(findings.map(({ kind }) => kind)).toEqual(['damaged']);
});

test(proving('bundle.hostile', 'what is no bundle is one finding'), async () => {
  const path = log.colibri.path('nothing');
  mkdirSync(path);

  for (const place of [path, log.colibri.path('not there'), '/dev/null'])
    expect((await checkBundle(place)).findings.map(({ kind }) => kind)).toEqual(['damaged']);
});

const COMMIT = `tree ${'0'.repeat(40)}\ncommitter ada <ada@localhost> 1 +0000\n\ncolibri checkpoint at 3 audit rows\n\ncolibri/0123456789abcdef\n3\n`;

function readName(): string {
  return key.split('+')[0] ?? '';
}

/** Signs every head anew with another key of the same name. */
function resign(folder: string, name: string): void {
  const { privateKeyPem, verifierKey } = generateNoteKey(name);
  const [signer, id] = [noteSigner(name, privateKeyPem), verifierKey.split('+')[1] ?? ''];
  const anew = (file: string) =>
    signNote(`${readFileSync(join(folder, file), 'utf8').split('\n\n')[0]}\n`, signer);
  for (const file of filesIn(folder).filter((path) => /^(?:heads|checkpoints)\//.test(path))) {
    const note = anew(file);
    rmSync(join(folder, file));
    writeFileSync(join(folder, file.replace(/[0-9a-f]{8}$/, id)), note);
  }
  writeFileSync(join(folder, 'checkpoint'), anew('checkpoint'));
  const proof = readFileSync(join(folder, 'proofs', 'A-0001.tlog-proof'), 'utf8').split('\n\n')[0];
  writeFileSync(
    join(folder, 'proofs', 'A-0001.tlog-proof'),
    `${proof}\n\n${readFileSync(join(folder, 'checkpoint'), 'utf8')}`,
  );
  writeFileSync(join(folder, 'keys'), `${verifierKey}\n`);
}

/** The ranges of a verdict, to be compared with those of another. */
function rangesIn({
  size,
  root,
  intactThrough,
  replayedThrough,
  checkpointedThrough,
}: Verdict): Partial<Verdict> {
  return { size, root, intactThrough, replayedThrough, checkpointedThrough };
}

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
