import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../../tests/driver/database.ts';
import { formatCheckpoint } from '../../integrity/checkpoint.ts';
import { generateNoteKey, noteSigner, parseVerifierKey, signNote } from '../../integrity/signed-note.ts';
import { treeRoot } from '../../integrity/tree.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { KeyFolder } from '../../trust/key-folder.ts';
import { openCheckpoint, originOfKey } from '../../trust/opening.ts';
import {
  aDesk,
  aPlace,
  appendRows,
  appendUnsigned,
  type Desk,
  headsIn,
  type Place,
  rowsIn,
  tamper,
} from './desk.ts';

/** The signed head is that of the last row, under the key of the folder, with the root of all rows. */
async function expectSigned(desk: Desk): Promise<void> {
  const rows = await rowsIn(desk.storage);
  const [head] = await headsIn(desk.storage);
  const opened = openCheckpoint(head!.checkpoint, [parseVerifierKey(head!.key)]);
  expect(opened).toMatchObject({
    size: rows.length,
    root: treeRoot(rows),
    origin: desk.signer.state().origin,
  });
  expect(desk.signer.state().keys[0]).toBe(head!.key);
  expect(desk.signer.state().refused).toBeUndefined();
}

/** Rows go on, nothing is signed, and the reason says what happened. */
async function expectRefused(desk: Desk, reason: RegExp): Promise<void> {
  const before = await headsIn(desk.storage);
  const rows = (await rowsIn(desk.storage)).length;
  await desk.append();

  expect(desk.signer.state().refused).toMatch(reason);
  expect(await headsIn(desk.storage)).toEqual(before);
  expect(await rowsIn(desk.storage)).toHaveLength(rows + 1);
}

const folderOf = (place: Place, desk: Desk) => new KeyFolder(place.configDir, desk.signer.state().origin!);

const noteOfOther = (size: number) => {
  const origin = `colibri/${'0'.repeat(32)}`;
  const signer = noteSigner(origin, generateNoteKey(origin).privateKeyPem);
  return {
    key: signer.verifierKey,
    note: signNote(formatCheckpoint({ origin, size, root: '0'.repeat(64) }), signer),
  };
};

describe('every commit is signed', () => {
  test('the first commit names the log after the key that it makes', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await desk.append(2);

    const { origin } = (await desk.storage.read((tx) =>
      tx.get<{ origin: string }>('SELECT origin FROM log'),
    ))!;
    await expectSigned(desk);
    expect(origin).toBe(originOfKey(desk.signer.state().keys[0]!));
    expect(origin).toMatch(/^colibri\/[0-9a-f]{32}$/);
  });

  test('each later commit renews the one head', async () => {
    const desk = await aDesk(aPlace());
    for (const rows of [1, 2, 1, 5, 1]) {
      await desk.append(rows);
      await expectSigned(desk);
    }

    expect(await headsIn(desk.storage)).toHaveLength(1);
  });

  test('a start and a stop without calls leave no key and no name', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await desk.signer.stop();

    expect(existsSync(join(place.configDir, 'logs'))).toBe(false);
    expect(await desk.storage.read((tx) => tx.all('SELECT * FROM log'))).toEqual([]);
  });

  test('the key is readable for its owner only, whatever the umask', async () => {
    const place = aPlace();
    const umask = process.umask(0);
    try {
      const desk = await aDesk(place);
      await desk.append();
      const { path, signedPath } = folderOf(place, desk);

      const modes = [
        path,
        signedPath,
        join(path, 'key.pem'),
        ...readdirSync(signedPath).map((name) => join(signedPath, name)),
      ].map((file) => statSync(file).mode & 0o777);
      expect(modes).toEqual([0o700, 0o700, ...modes.slice(2).map(() => 0o600)]);
    } finally {
      process.umask(umask);
    }
  });

  test('a transaction that is rolled back confuses nobody, not even the one that made the key', async () => {
    const desk = await aDesk(aPlace());
    await desk.fail();
    await desk.append();
    await desk.fail();
    await desk.fail();
    await desk.append();
    await desk.appendOnly();
    await desk.fail();
    await desk.append();

    await expectSigned(desk);
    expect(desk.errors).toEqual([]);
  });

  test('two processes sign one file in turn', async () => {
    const place = aPlace();
    const [one, two] = [await aDesk(place), await aDesk(place)];
    for (const desk of [one, two, two, one, one, two, one]) {
      await desk.append();
      await expectSigned(desk);
    }

    expect([...one.errors, ...two.errors]).toEqual([]);
  });

  test('the next start goes on, and creates nothing anew', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(3);
    await one.signer.stop();
    await one.close();

    const two = await aDesk(place);
    await two.append();

    await expectSigned(two);
    expect(readdirSync(join(place.configDir, 'logs'))).toHaveLength(1);
  });

  test('a checkpoint leaves the process only when it is durable', async () => {
    const desk = await aDesk(aPlace());
    await desk.appendOnly();
    expect(desk.signer.newest()).toBeUndefined();
    await desk.append();
    const durable = desk.signer.newest();
    await desk.appendOnly();

    expect(desk.signer.newest()).toBe(durable);
    expect(durable).toContain('\n2\n');
  });

  test('a commit that fails after the signature leaves nothing behind that could be called durable', async () => {
    const desk = await aDesk(aPlace());
    await desk.append();
    await desk.fail();
    await desk.storage.sync();
    desk.signer.durable(desk.signer.committed());

    expect(desk.signer.newest()).toContain('\n1\n');
    expect(desk.signer.state().signedThrough).toBe(1);
  });

  test('a transaction may be opened twice, and its own head is not taken for a committed one', async () => {
    const desk = await aDesk(aPlace());
    await desk.append();
    const seen: (number | undefined)[] = [];
    const twice = (fail: boolean) =>
      desk.signer.storage.write(async (tx) => {
        for (let i = 0; i < 2; i += 1) await appendRows(tx, desk.signer, 1);
        seen.push(desk.signer.committed()?.row.size);
        if (fail) throw new Error('rolled back');
      });
    await twice(true).catch(() => undefined);
    await twice(false);
    seen.push(desk.signer.committed()?.row.size);

    expect(seen).toEqual([1, 1, 3]);
    await expectSigned(desk);
  });

  test('a head that was rolled back is never called durable', async () => {
    const desk = await aDesk(aPlace());
    await desk.append();
    await desk.fail();
    await appendUnsigned(desk.storage);
    await desk.appendOnly();
    desk.signer.durable(desk.signer.committed());

    expect(desk.signer.newest()).toContain('\n1\n');
  });

  test('what is kept is filed once for each size', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(1, { keep: true });
    await desk.append(2);
    const note = await desk.signer.keep();
    await desk.signer.stop();

    const kept = await desk.storage.read((tx) =>
      tx.all<{ size: number; note: string }>('SELECT size, note FROM checkpoints ORDER BY size'),
    );
    expect(kept.map(({ size }) => size)).toEqual([1, 3]);
    expect(kept[1]?.note).toBe(note);
    expect(note).toBe(desk.signer.newest());
  });
});

describe('what was not signed is never signed over', () => {
  const attacks: [name: string, reason: RegExp, attack: (storage: StorageEngine) => Promise<void>][] = [
    ['a row that somebody else appended', /after row 3/, (storage) => appendUnsigned(storage)],
    [
      'a row far beyond the others',
      /after row 3/,
      (storage) =>
        tamper(storage, [
          "INSERT INTO actions (position, text, content, chain) VALUES (1000000000, '{}', ?, ?)",
          Buffer.alloc(32, 0xaa),
          Buffer.alloc(32, 0xbb),
        ]),
    ],
    [
      'a row whose text is no row',
      /after row 3/,
      (storage) =>
        tamper(storage, [
          "INSERT INTO actions (position, text, content, chain) VALUES (4, '[]', ?, ?)",
          Buffer.alloc(32, 0xaa),
          Buffer.alloc(32, 0xbb),
        ]),
    ],
    [
      'the last row removed',
      /has 2 audit rows, but 3 were signed|first 3 audit rows .* rewritten/,
      (storage) => tamper(storage, 'DELETE FROM actions WHERE position = 3'),
    ],
    [
      'the head removed',
      /its signed head was removed/,
      (storage) => tamper(storage, 'DELETE FROM log_heads'),
    ],
    [
      'head and rows removed',
      /cut off|head was removed/,
      (storage) => tamper(storage, 'DELETE FROM log_heads', 'DELETE FROM actions'),
    ],
    [
      'name, head and rows removed',
      /is now an (empty|unsigned) one/,
      (storage) => tamper(storage, 'DELETE FROM log_heads', 'DELETE FROM actions', 'DELETE FROM log'),
    ],
    ['the name removed', /is now an unsigned one/, (storage) => tamper(storage, 'DELETE FROM log')],
    [
      'another name',
      /is now colibri\/0{32}/,
      (storage) => tamper(storage, ['UPDATE log SET origin = ?', `colibri/${'0'.repeat(32)}`]),
    ],
    [
      'a chain hash that is not the row’s',
      /history was rewritten/,
      (storage) => tamper(storage, ['UPDATE log_heads SET chain_hash = ?', 'c'.repeat(64)]),
    ],
    [
      'a time that is not the row’s',
      /history was rewritten/,
      (storage) => tamper(storage, "UPDATE log_heads SET at = '2020-01-01T00:00:00.000Z'"),
    ],
    [
      'another last row',
      /history was rewritten/,
      (storage) =>
        tamper(storage, ['UPDATE actions SET chain = ? WHERE position = 3', Buffer.alloc(32, 0xcc)]),
    ],
    [
      'a frontier that is not the tree’s',
      /head in .* is not valid/,
      (storage) => tamper(storage, ['UPDATE log_heads SET frontier = ?', 'd'.repeat(128)]),
    ],
    [
      'a frontier of the wrong length',
      /head in .* is not valid/,
      (storage) => tamper(storage, "UPDATE log_heads SET frontier = ''"),
    ],
    [
      'a checkpoint of another key',
      /head in .* is not valid/,
      (storage) => tamper(storage, ['UPDATE log_heads SET checkpoint = ?', noteOfOther(3).note]),
    ],
    [
      'the head of another key',
      /by a key that this user does not know/,
      (storage) =>
        tamper(storage, [
          'UPDATE log_heads SET key = ?, checkpoint = ?',
          noteOfOther(3).key,
          noteOfOther(3).note,
        ]),
    ],
    [
      'a second head of another key',
      /by a key that this user does not know/,
      (storage) =>
        tamper(storage, [
          'INSERT INTO log_heads (key, size, chain_hash, at, frontier, checkpoint) SELECT ?, 1, chain_hash, at, frontier, ? FROM log_heads',
          noteOfOther(1).key,
          noteOfOther(1).note,
        ]),
    ],
  ];

  test.each(attacks)('%s: not by a running process', async (_name, reason, attack) => {
    const desk = await aDesk(aPlace());
    await desk.append(3);

    await attack(desk.storage);

    await expectRefused(desk, reason);
    await expectRefused(desk, reason);
    expect(desk.errors).toHaveLength(1);
  });

  test.each(attacks)('%s: not by the next start', async (_name, reason, attack) => {
    const place = aPlace();
    const desk = await aDesk(place);
    await desk.append(3);
    await desk.signer.stop();
    await attack(desk.storage);

    const next = await aDesk(place);

    expect(next.signer.state().refused).toMatch(reason);
    await expectRefused(next, reason);
  });

  test('an older head with its rows put back under a running process', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(2);
    const [old] = await headsIn(desk.storage);
    await desk.appendOnly(2);
    // Seen by nobody but this process: it was never synced.
    await desk.storage.write(async (tx) => void (await desk.signer.open(tx)));

    await tamper(desk.storage, 'DELETE FROM actions WHERE position > 2', [
      'UPDATE log_heads SET size = ?, chain_hash = ?, at = ?, frontier = ?, checkpoint = ?',
      old!.size,
      old!.chain_hash,
      old!.at,
      old!.frontier,
      old!.checkpoint,
    ]);

    await expectRefused(desk, /has 2 audit rows, but 4 were signed/);
  });

  test('an older copy of the file, at the next start', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(2);
    await one.close();
    copyFileSync(place.dbPath, `${place.dbPath}.old`);
    const two = await aDesk(place);
    await two.append(2);
    await two.close();
    renameSync(`${place.dbPath}.old`, place.dbPath);

    const three = await aDesk(place);

    await expectRefused(three, /has 2 audit rows, but 4 were signed/);
  });

  test('a new history of the same length that the key signed elsewhere', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(2);
    await one.close();
    copyFileSync(place.dbPath, `${place.dbPath}.old`);
    const two = await aDesk(place);
    await two.append(2);
    await two.close();
    renameSync(`${place.dbPath}.old`, place.dbPath);
    rmSync(join(place.configDir, 'paths'), { recursive: true });
    // Whoever runs as this user can sign: with the memory hidden meanwhile, the key signs a second history.
    const [name] = readdirSync(join(place.configDir, 'logs'));
    const signed = join(place.configDir, 'logs', name!, 'signed');
    renameSync(signed, `${signed}.hidden`);
    mkdirSync(signed);
    copyFileSync(join(`${signed}.hidden`, 'initial'), join(signed, 'initial'));
    const forger = await aDesk(place);
    await forger.append(2);
    await forger.close();
    rmSync(signed, { recursive: true });
    renameSync(`${signed}.hidden`, signed);

    const three = await aDesk(place);

    await expectRefused(three, /history was rewritten/);
  });

  test('a link in the place of the folder: no new database is made behind it (V11, H5)', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append();
    await one.close();
    const folder = dirname(place.dbPath);
    renameSync(folder, `${folder}.old`);
    mkdirSync(`${folder}.new`);
    symlinkSync(`${folder}.new`, folder);

    await expect(aDesk(place)).rejects.toThrow('is a symbolic link');

    expect(readdirSync(`${folder}.new`)).toEqual([]);
  });

  test('a link to another log of the same user is a replaced database', async () => {
    const [place, other] = [aPlace(), aPlace()];
    for (const where of [place, { ...other, configDir: place.configDir }]) {
      const desk = await aDesk(where);
      await desk.append();
      await desk.close();
    }
    rmSync(dirname(place.dbPath), { recursive: true });
    symlinkSync(dirname(other.dbPath), dirname(place.dbPath));

    await expectRefused(await aDesk(place), /was the log .* and is now colibri/);
  });

  test('a database that was moved as a whole goes on', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append();
    await one.close();
    const moved = { ...place, dbPath: join(dirname(place.dbPath), '..', 'moved', 'colibri.db') };
    renameSync(dirname(place.dbPath), dirname(moved.dbPath));

    const two = await aDesk(moved);
    await two.append();

    await expectSigned(two);
  });

  test.each<[string, RegExp, (folder: KeyFolder) => void]>([
    ['the folder', /has no key for the log/, ({ path }) => rmSync(path, { recursive: true })],
    ['the key', /key in .* is missing/, ({ path }) => rmSync(join(path, 'key.pem'))],
    ['the public key', /key in .* is missing/, ({ path }) => rmSync(join(path, 'key.pub'))],
    [
      'the key, by another',
      /key in .* is missing/,
      ({ path }) => writeFileSync(join(path, 'key.pem'), generateNoteKey('x').privateKeyPem),
    ],
    [
      'the memory',
      /it is not known what was signed last/,
      ({ signedPath }) => rmSync(signedPath, { recursive: true }),
    ],
  ])('without %s nothing is signed, and with it again everything is', async (_name, reason, lose) => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append();
    await one.signer.stop();
    await one.close();
    const folder = folderOf(place, one);
    const { path } = folder;
    const copies = readdirSync(path, { recursive: true })
      .map(String)
      .filter((name) => statSync(join(path, name)).isFile());
    const saved = copies.map((name) => [name, readFileSync(join(path, name))] as const);
    lose(folder);

    const two = await aDesk(place);
    expect(two.signer.state().refused).toMatch(reason);
    expect(two.signer.state().refused).toContain('colibri checkpoint --adopt');
    for (const [name, bytes] of saved) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), bytes);
    }
    await two.append();

    await expectSigned(two);
  });

  test('rows without a name were never signed, and are not now', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await appendUnsigned(desk.storage, 2);

    await expectRefused(desk, /2 audit rows and no name/);
  });

  test('a name that is a path is not followed', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await tamper(desk.storage, "INSERT INTO log (id, origin) VALUES (1, 'colibri/../../x')");

    await expectRefused(desk, /not one that Colibri gives/);
    expect(existsSync(join(place.configDir, 'logs'))).toBe(false);
  });

  test('a key folder that cannot be made leaves the calls unsigned', async () => {
    const place = aPlace();
    writeFileSync(place.configDir, 'a file');
    const desk = await aDesk(place);

    await desk.append();

    expect(desk.signer.state().refused).toMatch(/key folder cannot be used/);
    expect(await rowsIn(desk.storage)).toHaveLength(1);
    expect(await headsIn(desk.storage)).toEqual([]);
  });

  test('rows that do not end where the caller says are a broken promise, and nothing is committed', async () => {
    const desk = await aDesk(aPlace());
    await desk.append();
    const jump = desk.storage.write(async (tx) => {
      const head = await desk.signer.open(tx);
      await desk.signer.close(tx, { ...head, position: 50 }, ['a'.repeat(64)], false);
    });

    await expect(jump).rejects.toThrow('do not end at 50');
  });

  test('a planted trigger that swallows the head stops the commit', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await desk.append();
    const stranger = openDatabase(place.dbPath);
    stranger.exec('CREATE TRIGGER planted BEFORE UPDATE ON log_heads BEGIN SELECT RAISE(IGNORE); END');
    stranger.close();

    await expect(desk.append()).rejects.toThrow("The trigger planted is not one of Colibri's.");
  });
});

describe('the owner adopts', () => {
  test('where nothing is wrong there is nothing to adopt', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(2);

    expect(await desk.signer.adopt()).toEqual({ reason: undefined, lost: undefined, key: undefined });
    await desk.append();
    await expectSigned(desk);
  });

  test('foreign rows: nothing signed is lost, the key stays, and every process signs again', async () => {
    const place = aPlace();
    const [server, owner] = [await aDesk(place), await aDesk(place)];
    await server.append(2);
    await appendUnsigned(server.storage);
    await expectRefused(server, /after row 2/);

    const adopting = await owner.signer.adopt();
    await expectRefused(server, /after row 2/);
    await owner.append(1);
    await server.append();
    await expectSigned(server);
    await owner.append(1, { keep: true });

    expect(adopting).toMatchObject({
      lost: undefined,
      own: { signer: { verifierKey: server.signer.state().keys[0] } },
    });
    expect(adopting.reason).toMatch(/after row 2/);
    await expectSigned(owner);
    expect(await rowsIn(owner.storage)).toHaveLength(8);
  });

  test('an older copy: the lost head is named, and the memory of it is put aside', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(2);
    await one.close();
    copyFileSync(place.dbPath, `${place.dbPath}.old`);
    const two = await aDesk(place);
    await two.append(3);
    const lost = openCheckpoint(two.signer.newest()!, [parseVerifierKey(two.signer.state().keys[0]!)]);
    await two.close();
    renameSync(`${place.dbPath}.old`, place.dbPath);
    const server = await aDesk(place);
    await expectRefused(server, /but 5 were signed/);

    const owner = await aDesk(place);
    const adopting = await owner.signer.adopt();
    await owner.append(2);

    expect(adopting.lost).toEqual({ size: 5, root: lost.root, key: owner.signer.state().keys[0] });
    await expectSigned(owner);
    await server.append();
    await expectSigned(server);
    await owner.close();
    await server.close();
    const next = await aDesk(place);
    expect(next.signer.state().refused).toBeUndefined();
    const folder = folderOf(place, next);
    expect(readdirSync(folder.path).some((name) => name.startsWith('signed.given-up-'))).toBe(true);
  });

  test('an adoption that is rolled back is still to be done', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(2);
    await appendUnsigned(desk.storage);
    await desk.signer.adopt();
    await desk.fail();
    await appendUnsigned(desk.storage);

    await desk.append();

    await expectSigned(desk);
  });

  test('after it, foreign rows are refused again', async () => {
    const desk = await aDesk(aPlace());
    await desk.append();
    await appendUnsigned(desk.storage);
    await desk.signer.adopt();
    await desk.append();
    await appendUnsigned(desk.storage);

    await expectRefused(desk, /after row 3/);
  });

  test('a lost key: a new one signs under the same name, and the head of the old one stays', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(3);
    const [old] = one.signer.state().keys;
    await one.close();
    rmSync(join(place.configDir, 'logs'), { recursive: true });

    const owner = await aDesk(place);
    const adopting = await owner.signer.adopt();
    await owner.append(2);

    expect(adopting).toMatchObject({ lost: undefined });
    const made = adopting.own?.signer.verifierKey;
    expect(made).not.toBe(old);
    expect(owner.signer.state()).toMatchObject({ origin: originOfKey(old!), keys: [made, old] });
    expect((await headsIn(owner.storage)).map(({ key, size }) => [key, size])).toEqual([
      [made, 5],
      [old, 3],
    ]);
    await expectSigned(owner);
  });

  test('a damaged key is put aside for a new one', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(3);
    const [old] = one.signer.state().keys;
    await one.close();
    const folder = folderOf(place, one);
    writeFileSync(join(folder.path, 'key.pem'), 'nonsense');

    const owner = await aDesk(place);
    await owner.signer.adopt();
    await owner.append(2);

    await expectSigned(owner);
    expect(owner.signer.state().keys[1]).toBe(old);
    expect(readdirSync(folder.path).filter((name) => name.startsWith('key.pem.retired-'))).toHaveLength(1);
  });

  test('a head of somebody else’s key goes, whatever it claims', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(2);
    const [own] = await headsIn(desk.storage);
    for (const size of [1, 10]) {
      const other = noteOfOther(size);
      await tamper(desk.storage, [
        'INSERT INTO log_heads VALUES (?, ?, ?, ?, ?, ?)',
        other.key,
        size,
        own!.chain_hash,
        own!.at,
        own!.frontier,
        other.note,
      ]);
    }

    await desk.signer.adopt();
    await desk.append();

    await expectSigned(desk);
    expect(await headsIn(desk.storage)).toHaveLength(1);
    expect(desk.signer.state().keys).toHaveLength(1);
  });

  test('rows without a name get one', async () => {
    const desk = await aDesk(aPlace());
    await appendUnsigned(desk.storage, 3);
    const { own } = await desk.signer.adopt();
    await desk.append(2);

    await expectSigned(desk);
    expect(originOfKey(own!.signer.verifierKey)).toBe(desk.signer.state().origin);
  });

  test('a removed name is given back', async () => {
    const place = aPlace();
    const desk = await aDesk(place);
    await desk.append(2);
    const { origin } = desk.signer.state();
    await tamper(desk.storage, 'DELETE FROM log');
    await desk.signer.adopt();
    await desk.append();

    await expectSigned(desk);
    expect(desk.signer.state().origin).toBe(origin);
  });

  test('another log at the path is accepted and remembered', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(2);
    await one.close();
    rmSync(dirname(place.dbPath), { recursive: true });
    const owner = await aDesk(place);
    const { reason } = await owner.signer.adopt();
    await owner.append();
    await owner.close();

    const next = await aDesk(place);

    expect(reason).toMatch(/is now an empty one/);
    expect(next.signer.state().refused).toBeUndefined();
    expect(next.signer.state().origin).not.toBe(one.signer.state().origin);
  });

  test('rewritten rows that only a full reading sees are found by it, and named as lost', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(4);
    await tamper(desk.storage, ['UPDATE actions SET content = ? WHERE position = 2', Buffer.alloc(32, 0xee)]);

    const adopting = await desk.signer.adopt();
    await desk.append();

    expect(adopting).toMatchObject({ lost: { size: 4 } });
    expect(adopting.reason).toMatch(/history was rewritten/);
    await expectSigned(desk);
  });

  test('a gap is refused even to the owner, at once (V9)', async () => {
    const desk = await aDesk(aPlace());
    await desk.append(2);
    await tamper(desk.storage, [
      "INSERT INTO actions (position, text, content, chain) VALUES (1000000000, '{}', ?, ?)",
      Buffer.alloc(32, 0xaa),
      Buffer.alloc(32, 0xbb),
    ]);

    await expect(desk.signer.adopt()).rejects.toThrow('Audit row 3 of');
    await expectRefused(desk, /after row 2/);
  });
});

describe('the whole log is read again in the background', () => {
  async function waitFor(condition: () => boolean): Promise<void> {
    for (let i = 0; i < 2_000 && !condition(); i += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
    expect(condition()).toBe(true);
  }

  test('a changed old row stops the signing, also at the next start, until a good copy is back', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(5);
    const good = Buffer.from((await rowsIn(one.storage))[1]!, 'hex');
    await tamper(one.storage, ['UPDATE actions SET content = ? WHERE position = 2', Buffer.alloc(32, 0xee)]);
    await one.close();

    const two = await aDesk(place, { fullCheckMsMin: 1 });
    expect(two.signer.state().refused).toBeUndefined();
    await waitFor(() => two.signer.state().refused !== undefined);
    await two.signer.stop();
    await two.close();
    const three = await aDesk(place);
    expect(three.signer.state().refused).toMatch(/history was rewritten/);
    await tamper(three.storage, ['UPDATE actions SET content = ? WHERE position = 2', good]);
    await three.close();
    const four = await aDesk(place, { fullCheckMsMin: 1 });
    await waitFor(() => folderOf(place, four).lastCheck()?.finding === undefined);
    await four.append();

    await expectSigned(four);
  });

  test('it is read at most once an hour, and a sound log stays signed', async () => {
    const place = aPlace();
    const one = await aDesk(place);
    await one.append(2_500);
    await one.close();
    const two = await aDesk(place, { fullCheckMsMin: 1 });
    await waitFor(() => folderOf(place, two).lastCheck() !== undefined);
    const first = folderOf(place, two).lastCheck();
    await two.close();

    const three = await aDesk(place, { fullCheckMsMin: 1 });
    await new Promise((resolve) => setTimeout(resolve, 50));

    expect(folderOf(place, three).lastCheck()).toEqual(first);
    await three.append();
    await expectSigned(three);
  });
});
