import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { formatCheckpoint } from '../../src/integrity/checkpoint.ts';
import { generateNoteKey, noteSigner, signNote } from '../../src/integrity/signed-note.ts';
import { encodeSlot } from '../../src/trust/memory.ts';
import { type Database, openDatabase } from '../driver/database.ts';
import { type LogDesk, proves, putHead, sizeIn } from './log-desk.ts';

/** Something that happens to the head of a log while nobody looks. */
interface Blow {
  readonly name: string;
  /** What verify must find, among others. */
  readonly finds: string;
  readonly says: string;
  strike(db: Database, desk: LogDesk): void;
}

const BLOWS: readonly Blow[] = [
  {
    name: 'the head is removed',
    finds: 'foreign',
    says: 'its signed head was removed',
    strike: (db) => db.exec('DELETE FROM log_heads'),
  },
  {
    name: 'the head and the name of the log are removed',
    finds: 'replaced',
    says: 'was the log',
    strike: (db) => db.exec('DELETE FROM log_heads; DELETE FROM log'),
  },
  {
    name: 'an older head of the same key is put back',
    finds: 'foreign',
    says: 'did not sign',
    strike(db, desk) {
      const [older = ''] = desk.kept;
      putHead(db, older, keyIn(db));
    },
  },
  {
    name: 'the signature is another one',
    finds: 'bad-head',
    says: 'is not valid',
    strike: (db) =>
      db.exec(`UPDATE log_heads SET checkpoint = replace(checkpoint, substr(checkpoint, -12, 4), 'AAAA')`),
  },
  {
    name: 'the signature is cut short',
    finds: 'bad-head',
    says: 'is not valid',
    strike: (db) =>
      db.exec('UPDATE log_heads SET checkpoint = substr(checkpoint, 1, length(checkpoint) - 12)'),
  },
  {
    name: 'the frontier is not that of the tree',
    finds: 'bad-head',
    says: 'is not valid',
    strike: (db) => db.exec(`UPDATE log_heads SET frontier = '${'0'.repeat(64)}' || substr(frontier, 65)`),
  },
  {
    name: 'the time beside it is not that of its row',
    finds: 'bad-head',
    says: 'are not the ones that were signed',
    strike: (db) => db.exec(`UPDATE log_heads SET at = '2020-01-01T00:00:00.000Z'`),
  },
  {
    name: 'a head by another key stands beside it',
    finds: 'foreign-key',
    says: 'someone else signed this log',
    strike(db, desk) {
      const [origin = '', , root = ''] = desk.head.split('\n');
      const signer = noteSigner(origin, generateNoteKey(origin).privateKeyPem);
      const text = { origin, size: sizeIn(desk.head), root: Buffer.from(root, 'base64').toString('hex') };
      putHead(db, signNote(formatCheckpoint(text), signer), signer.verifierKey);
    },
  },
];

describe('what happens to a head', () => {
  for (const { name, finds, says, strike } of BLOWS) {
    proves('head.checked', `${name}: verify finds it, and no start signs over it`, async (desk) => {
      await ready(desk);
      const remembered = desk.lastSigned;
      desk.tamper((db) => strike(db, desk));

      const found = await desk.findings();
      const { health } = await desk.refusalAtStart();

      expect(found).toContain(finds);
      expect(health.log.refused).toContain(says);
      expect(desk.lastSigned).toBe(remembered);
      expect(await desk.findings()).not.toEqual([]);
    });

    proves('head.checked', `${name} under a running server: its next call is unsigned`, async (desk) => {
      await desk.work();
      const server = await desk.colibri.start();
      await desk.think(server, 'signed');
      const remembered = desk.lastSigned;
      desk.tamper((db) => strike(db, desk));

      const answer = await server.call('thought_record', {
        task_id: 'T-0001',
        type: 'plan',
        content: 'unsigned',
      });
      const health = await desk.health(server);
      await server.closeInput();

      const meta = answer.message.result?._meta as Record<string, unknown>;
      expect(answer.envelope).toMatchObject({ ok: true });
      expect(meta['colibri/unsigned']).toBeDefined();
      expect(health.status).toBe('degraded');
      expect(desk.lastSigned).toBe(remembered);
    });
  }
});

describe('what happens to a head between two servers that tell each other what they sign', () => {
  for (const { name, strike } of BLOWS.filter(({ finds }) => finds === 'bad-head'))
    proves('head.checked', `${name}: the next call of each is unsigned`, async (desk) => {
      await desk.work();
      const servers = [await desk.colibri.start(), await desk.colibri.start()];
      for (const content of ['met', 'met again'])
        for (const server of servers) await desk.think(server, content);
      const noted = readFileSync(join(desk.logFolder, 'last-signed'), 'utf8');
      desk.tamper((db) => strike(db, desk));

      for (const server of servers) {
        const thought = { task_id: 'T-0001', type: 'plan', content: 'unsigned' };
        const { message } = await server.call('thought_record', thought);
        expect(message.result?._meta).toHaveProperty('colibri/unsigned');
        await server.closeInput();
      }
      expect(noted).toMatch(/^[0-9a-f]{64}$/);
      expect(readFileSync(join(desk.logFolder, 'last-signed'), 'utf8')).toBe(noted);
    });
});

for (const { lost, finds } of [
  { lost: 2, finds: 'rewritten' },
  { lost: 40, finds: 'cut-tail' },
])
  proves(
    'head.checked',
    `an older log that is brought back under a running server is not signed over, though that server signed its head last: ${lost} calls are lost`,
    async (desk) => {
      await desk.work();
      const [gone, left] = [await desk.colibri.start(), await desk.colibri.start()];
      for (const server of [gone, left]) await desk.think(server, 'kept');
      const older = desk.colibri.path('older.db');
      withFile(desk.dbPath, (db) => db.exec(`VACUUM INTO '${older}'`));
      for (let i = 0; i < lost; i += 1) await desk.think(gone, `lost ${i}`);
      await gone.killHard();
      withFile(desk.dbPath, (db) => bringBack(db, older));

      const thought = { task_id: 'T-0001', type: 'plan', content: 'unsigned' };
      const answers = [
        await left.call('thought_record', thought),
        await left.call('thought_record', thought),
      ];
      const health = await desk.health(left);
      await left.closeInput();

      for (const { message } of answers) expect(message.result?._meta).toHaveProperty('colibri/unsigned');
      expect(health.status).toBe('degraded');
      expect(await desk.findings()).toContain(finds);
    },
  );

proves('head.checked', 'what any process remembers counts, not only the largest', async (desk) => {
  await desk.work();
  const origin = desk.head.split('\n')[0] ?? '';
  const signer = noteSigner(origin, readFileSync(join(desk.logFolder, 'key.pem'), 'utf8'));
  const [root, chainHash] = ['1'.repeat(64), '2'.repeat(64)];
  const note = signNote(formatCheckpoint({ origin, size: 4, root }), signer);
  writeFileSync(join(desk.memory, 'gone'), encodeSlot(chainHash, note));

  const found = await desk.findings();
  const { health } = await desk.refusalAtStart();

  expect(found).not.toEqual([]);
  expect(health.log.refused).toContain('The first 4 audit rows');
});

function withFile(path: string, work: (db: Database) => void): void {
  const db = openDatabase(path);
  try {
    work(db);
  } finally {
    db.close();
  }
}

/** Puts every row of an older copy in the place of those that are there, in one commit. */
function bringBack(db: Database, older: string): void {
  db.exec(`PRAGMA foreign_keys = OFF; ATTACH '${older}' AS older; BEGIN IMMEDIATE`);
  const named = (type: string) =>
    db
      .prepare(
        `SELECT name, sql FROM main.sqlite_schema WHERE type = '${type}' AND sql NOT LIKE '%VIRTUAL TABLE%'`,
      )
      .all() as { name: string; sql: string }[];
  const triggers = named('trigger');
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  for (const { name } of named('table')) {
    const columns = db
      .prepare(`SELECT name FROM pragma_table_xinfo('${name}') WHERE hidden = 0`)
      .pluck()
      .all();
    db.exec(
      `DELETE FROM main.${name}; INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM older.${name}`,
    );
  }
  for (const { sql } of triggers) db.exec(sql);
  db.exec('COMMIT');
}

/** A log with an older checkpoint that was kept. */
async function ready(desk: LogDesk): Promise<void> {
  await desk.work();
  await desk.moreWork();
}

function keyIn(db: Database): string {
  return db.prepare('SELECT key FROM log_heads').pluck().get() as string;
}
