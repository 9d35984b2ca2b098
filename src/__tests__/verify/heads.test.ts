import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../tests/driver/database.ts';
import { formatCheckpoint } from '../../integrity/checkpoint.ts';
import { generateNoteKey, noteSigner, parseVerifierKey, signNote } from '../../integrity/signed-note.ts';
import { Frontier } from '../../integrity/tree.ts';
import { originOfKey } from '../../trust/opening.ts';
import type { Finding } from '../../verify/finding.ts';
import { Filings } from '../../verify/rules/filings.ts';
import type { Evidence } from '../../verify/rules/heads.ts';
import type { ReadRow } from '../../verify/rules/row-form.ts';
import { DatabaseSource } from '../../verify/sources/database.ts';
import type { Verdict } from '../../verify/verdict.ts';
import { verify } from '../../verify/verify.ts';
import { freshBench, tellStory } from './history.ts';
import { inTampered, settleFile } from './tamper.ts';

let path = '';
const own = keyFor();
const other = keyFor(own.origin);

beforeAll(async () => {
  const bench = await freshBench();
  await tellStory(bench);
  await bench.close();
  path = bench.path;
  settleFile(path);
});

/** A key, and the log that it creates unless another one did. */
function keyFor(origin?: string) {
  const draft = generateNoteKey('x');
  const name = origin ?? originOfKey(draft.verifierKey) ?? '';
  const signer = noteSigner(name, draft.privateKeyPem);
  return { origin: name, signer, text: signer.verifierKey, key: parseVerifierKey(signer.verifierKey) };
}

/** The head of the first rows, as the writer stores it. */
function headAt(db: Database, size: number, { origin, signer, text } = own) {
  const tree = new Frontier();
  const rows = db
    .prepare('SELECT content_hash, chain_hash, at FROM audit_rows WHERE position <= ? ORDER BY position')
    .all(size) as { content_hash: string; chain_hash: string; at: string }[];
  for (const { content_hash } of rows) tree.add(content_hash);
  const { chain_hash, at } = rows.at(-1)!;
  const checkpoint = signNote(formatCheckpoint({ origin, size, root: tree.root() }), signer);
  return { key: text, size, chain_hash, at, frontier: tree.state.hashes.join(''), checkpoint };
}

function sign(db: Database, size = 58, key = own): void {
  db.prepare('INSERT OR IGNORE INTO log VALUES (1, ?)').run(key.origin);
  const head = headAt(db, size, key);
  db.prepare('INSERT INTO log_heads VALUES (@key, @size, @chain_hash, @at, @frontier, @checkpoint)').run(
    head,
  );
  if (key !== own) return;
  const filing = db
    .prepare(
      `SELECT position FROM audit_rows WHERE tool = 'merkle_finalize' AND stage = 'exit' AND outcome = 'ok'`,
    )
    .pluck()
    .all() as number[];
  for (const position of filing)
    db.prepare('INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?)').run(
      position,
      own.text,
      headAt(db, position).checkpoint,
    );
}

async function verdictAfter(
  change: (db: Database) => void,
  {
    trusted = [own.key],
    evidence = [],
  }: { trusted?: readonly (typeof own)['key'][]; evidence?: readonly Evidence[] } = {},
): Promise<{ verdict: Verdict; findings: Finding[]; kinds: string[] }> {
  return await inTampered(path, change, async (storage) => {
    const findings: Finding[] = [];
    const options = {
      report: (finding: Finding) => void findings.push(finding),
      now: Date.now(),
      keys: { trusted },
      evidence,
    };
    const verdict = await storage.read((tx) => verify(new DatabaseSource(storage, tx), options));
    return { verdict, findings, kinds: findings.map(({ kind }) => kind) };
  });
}

test('a log under the head of its key has nothing wrong', async () => {
  const { verdict, findings } = await verdictAfter((db) => sign(db));

  expect(findings).toEqual([]);
  expect(verdict).toMatchObject({
    intactThrough: 58,
    replayedThrough: 58,
    checkpointedThrough: 58,
    origin: own.origin,
  });
  expect(verdict.checkpointed).toEqual([{ key: own.text, through: 58, vouched: true }]);
});

test('without a trusted key, the key that the log is named after is believed', async () => {
  const { verdict, findings } = await verdictAfter((db) => sign(db), { trusted: [] });

  expect(findings).toEqual([]);
  expect(verdict.checkpointedThrough).toBe(58);
});

test('rows behind the newest head are one finding that names them', async () => {
  const { verdict, findings } = await verdictAfter((db) => sign(db, 50));

  expect(findings).toMatchObject([{ kind: 'foreign', record: '#51 to #58', position: 51 }]);
  expect(verdict).toMatchObject({ intactThrough: 50, replayedThrough: 50, checkpointedThrough: 50 });
});

test.each([
  ['a head that was removed', (db: Database) => void db.exec('DELETE FROM log_heads'), ['foreign']],
  [
    'a frontier that is not the tree’s',
    (db: Database) => void db.exec(`UPDATE log_heads SET frontier = '${'0'.repeat(64 * 4)}'`),
    ['bad-head'],
  ],
  [
    'another chain hash',
    (db: Database) => void db.exec(`UPDATE log_heads SET chain_hash = '${'0'.repeat(64)}'`),
    ['bad-head'],
  ],
  ['another time', (db: Database) => void db.exec("UPDATE log_heads SET at = 'x'"), ['bad-head']],
  ['another size', (db: Database) => void db.exec('UPDATE log_heads SET size = 57'), ['bad-head']],
  [
    'a note that is not one',
    (db: Database) => void db.exec("UPDATE log_heads SET checkpoint = 'x'"),
    ['bad-head', 'foreign'],
  ],
  [
    'another name of the log',
    (db: Database) => void db.exec("UPDATE log SET origin = origin || 'x'"),
    ['replaced', 'foreign'],
  ],
])('%s is found', async (_name, change, kinds) => {
  const found = await verdictAfter((db) => {
    sign(db);
    change(db);
  });

  expect(found.kinds).toEqual(kinds);
});

test('the head of a key that nobody trusts is found, and vouches for nothing', async () => {
  const { findings } = await verdictAfter((db) => {
    sign(db, 50);
    sign(db, 58, other);
  });

  expect(findings).toMatchObject([{ kind: 'foreign-key' }, { kind: 'foreign', position: 51 }]);
});

test('a log that only another key than the trusted one has signed is foreign as a whole', async () => {
  const stranger = keyFor(own.origin);
  const { kinds } = await verdictAfter((db) => sign(db), { trusted: [stranger.key] });

  // The head and the kept checkpoint.
  expect(kinds).toEqual(['foreign-key', 'foreign-key', 'foreign']);
});

test('a kept checkpoint of another history is found, and those beside it are not findings of their own', async () => {
  const { kinds, verdict } = await verdictAfter((db) => {
    sign(db);
    for (const size of [20, 30]) {
      const note = signNote(formatCheckpoint({ origin: own.origin, size, root: 'd'.repeat(64) }), own.signer);
      db.prepare('INSERT INTO checkpoints VALUES (?, ?, ?)').run(size, own.text, note);
    }
    db.prepare('INSERT INTO checkpoints VALUES (?, ?, ?)').run(10, own.text, headAt(db, 10).checkpoint);
  });

  expect(kinds).toEqual(['rewritten']);
  expect(verdict.intactThrough).toBe(10);
});

test('a checkpoint that was kept elsewhere shows a tail that was cut off, and anchors what it covers', async () => {
  let notes: string[] = [];
  await verdictAfter((db) => {
    notes = [headAt(db, 58).checkpoint, headAt(db, 40).checkpoint];
  });
  const evidence = [
    { source: 'last-signed', where: 'memory', note: notes[0]! },
    { source: 'file', where: 'usb', note: notes[1]! },
  ] as const;

  const { kinds, verdict } = await verdictAfter(
    (db) => {
      db.exec(
        'DELETE FROM thoughts WHERE id = 4; DELETE FROM session_records WHERE id = 4; DELETE FROM actions WHERE position > 56; DELETE FROM action_payloads WHERE position > 56',
      );
      db.exec(
        "DELETE FROM texts WHERE text = 'open'; DELETE FROM task_calls WHERE position > 56; UPDATE processes SET last_seen = (SELECT min(at) FROM audit_rows a WHERE a.actor = processes.actor AND position <= 56 AND substr(at, 1, 19) = (SELECT max(substr(at, 1, 19)) FROM audit_rows b WHERE b.actor = processes.actor AND position <= 56))",
      );
      sign(db, 56);
    },
    { evidence },
  );

  expect(kinds).toEqual(['older-copy']);
  expect(verdict).toMatchObject({
    intactThrough: 56,
    anchoredThrough: 40,
    anchoredBy: ['file'],
    unanchoredTail: 16,
  });
});

test('a checkpoint that was filed must end with the commit of its row: behind it are only ends of the same process', () => {
  const row = (position: number, fields: Partial<ReadRow>) =>
    ({ position, stage: 'exit', tool: 'task_get', outcome: 'ok', process: 'p', ...fields }) as ReadRow;
  const missingOf = (
    rows: readonly ReadRow[],
    sizes: readonly number[],
    range = { after: 0, through: 99 },
  ) => {
    const filings = new Filings();
    for (const one of rows) filings.follow(one);
    const found: string[] = [];
    const kept = sizes.map((size) => ({ size, key: own.text, note: '', where: '' }));
    filings.check(kept, [], range, ({ record }) => found.push(record));
    return found;
  };
  const seal = { tool: 'merkle_finalize' };
  const batch = [row(4, seal), row(5, {}), row(6, { tool: 'owner_trust' }), row(7, {})];

  const ends = { enter: row(8, { stage: 'enter' }), another: row(8, { process: 'q' }) };
  for (const next of Object.values(ends)) {
    expect(missingOf([...batch, next], [7])).toEqual([]);
    expect(missingOf([...batch, next], [5])).toEqual(['#6']);
    expect(missingOf([...batch, next], [3, 8])).toEqual(['#4', '#6']);
  }
  expect(missingOf(batch, [90])).toEqual([]);
  expect(missingOf(batch, [], { after: 4, through: 5 })).toEqual([]);
  expect(missingOf([row(4, { ...seal, outcome: 'error' }), row(6, { ...seal, stage: 'enter' })], [])).toEqual(
    [],
  );
});
