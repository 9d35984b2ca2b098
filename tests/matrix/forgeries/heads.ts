import { createHash, type KeyObject } from 'node:crypto';
import { formatCheckpoint } from '../../../src/integrity/checkpoint.ts';
import { generateNoteKey, type NoteSigner, noteSigner } from '../../../src/integrity/signed-note.ts';
import { Frontier } from '../../../src/integrity/tree.ts';
import type { ForgedLog, HeadRow } from '../forge.ts';
import * as legal from '../legal.ts';
import type { Found } from '../sources.ts';
import { type Forgery, foreign, missingSeals } from './forgery.ts';

// Heads and kept checkpoints. Every row is as the server wrote it, unless it says otherwise.

function ofOwnHead(kind: Found['kind'], log: ForgedLog, ...columns: string[]): Found {
  return { kind, record: `the head of key ${log.signer.id}`, ...(columns.length > 0 && { columns }) };
}

function ofKept(kind: Found['kind'], log: ForgedLog, size: number | undefined, ...columns: string[]): Found {
  return {
    kind,
    record: `the kept checkpoint ${size} of key ${log.signer.id}`,
    ...(columns.length > 0 && { columns }),
  };
}

/** The head is worth nothing: what it says is a finding, and so is every row that nobody else has signed. */
function worthless(kind: Found['kind'], log: ForgedLog): Found[] {
  return [ofOwnHead(kind, log), foreign(1, log.rows.length)];
}

/** Changes the head of an untouched log. */
function ofHead(
  id: string,
  holds: Forgery['holds'],
  change: (head: HeadRow, log: ForgedLog, root: string) => void,
  finds: (log: ForgedLog) => Found | Found[],
): Forgery {
  return {
    id,
    holds,
    forge(log) {
      const found = finds(log);
      const root = rootOf(log);
      log.editHeads((heads) => {
        for (const head of heads) change(head, log, root);
      });
      return found;
    },
  };
}

function otherSigner(origin: string): NoteSigner {
  return noteSigner(origin, generateNoteKey(origin).privateKeyPem);
}

function rootOf(log: ForgedLog, size = log.rows.length): string {
  const tree = new Frontier();
  for (const hash of log.contentHashes().slice(0, size)) tree.add(hash);
  return tree.root();
}

export const HEAD_FORGERIES: readonly Forgery[] = [
  {
    id: 'heads: the head is removed',
    holds: 'everywhere',
    forge(log) {
      log.editHeads((heads) => heads.splice(0));
      return foreign(1, log.rows.length);
    },
  },
  {
    id: 'heads: an older head in its place',
    holds: 'everywhere',
    forge(log) {
      const size = log.rows.length - 4;
      const root = rootOf(log, size);
      log.editHeads((heads) => {
        for (const head of heads) Object.assign(head, { size, checkpoint: log.note(size, root) });
      });
      log.edit((db) => {
        const tree = new Frontier();
        for (const hash of log.contentHashes().slice(0, size)) tree.add(hash);
        const old = db.prepare('SELECT chain_hash, at FROM audit_rows WHERE position = ?').get(size) as {
          chain_hash: string;
          at: string;
        };
        db.prepare('UPDATE log_heads SET frontier = ?, chain_hash = ?, at = ?').run(
          tree.state.hashes.join(''),
          old.chain_hash,
          old.at,
        );
      });
      return foreign(size + 1, log.rows.length);
    },
  },
  ofHead(
    'heads: the frontier is another',
    'database',
    (head) => (head.frontier = `${'a'.repeat(64)}${head.frontier.slice(64)}`),
    (log) => ofOwnHead('bad-head', log, 'frontier'),
  ),
  ofHead(
    'heads: the frontier lacks a hash',
    'database',
    (head) => (head.frontier = head.frontier.slice(64)),
    (log) => ofOwnHead('bad-head', log, 'frontier'),
  ),
  ofHead(
    'heads: its chain hash is another',
    'database',
    (head) => (head.chain_hash = 'a'.repeat(64)),
    (log) => ofOwnHead('bad-head', log, 'chain_hash'),
  ),
  ofHead(
    'heads: its time is another',
    'database',
    (head) => (head.at = '2026-01-01T00:00:00.000Z'),
    (log) => ofOwnHead('bad-head', log, 'at'),
  ),
  ofHead(
    'heads: its size is not the one that is signed',
    'database',
    (head) => (head.size -= 2),
    (log) => ofOwnHead('bad-head', log, 'size'),
  ),
  ofHead(
    'heads: signed by another key under the name of the right one',
    'everywhere',
    (head, log, root) => (head.checkpoint = log.note(log.rows.length, root, otherSigner(log.origin))),
    (log) => worthless('foreign-key', log),
  ),
  {
    id: 'heads: replaced by that of another key',
    holds: 'everywhere',
    forge(log) {
      const signer = otherSigner(log.origin);
      const checkpoint = log.note(log.rows.length, rootOf(log), signer);
      log.editHeads((heads, kept) => {
        for (const head of heads) Object.assign(head, { key: signer.verifierKey, checkpoint });
        kept.splice(0);
      });
      return [{ kind: 'foreign-key', record: `the head of key ${signer.id}` }, foreign(1, log.rows.length)];
    },
  },
  {
    id: 'heads: a second one by another key',
    holds: 'everywhere',
    forge(log) {
      const signer = otherSigner(log.origin);
      const checkpoint = log.note(log.rows.length, rootOf(log), signer);
      log.editHeads((heads) => {
        for (const head of heads.slice(0, 1)) heads.push({ ...head, key: signer.verifierKey, checkpoint });
      });
      return { kind: 'foreign-key', record: `the head of key ${signer.id}` };
    },
  },
  ofHead(
    'heads: of another root',
    'everywhere',
    (head, log) => (head.checkpoint = log.note(log.rows.length, 'c'.repeat(64))),
    (log) => ({ ...ofOwnHead('rewritten', log), position: (log.kept.at(-2)?.size ?? 0) + 1 }),
  ),
  ofHead(
    'heads: no checkpoint',
    'everywhere',
    (head) => (head.checkpoint = 'Trust me.\n'),
    (log) => worthless('bad-head', log),
  ),
  ofHead(
    'heads: one letter of the signature is another',
    'everywhere',
    (head) =>
      (head.checkpoint = head.checkpoint
        .replace(/(.)(=*\n)$/, (_, letter: string, end: string) => `${letter === 'g' ? 'w' : 'g'}${end}`)
        .replace(
          /(.{12})(.)(.{6}=*\n)$/,
          (_, a: string, b: string, c: string) => `${a}${b === 'A' ? 'B' : 'A'}${c}`,
        )),
    (log) => worthless('bad-head', log),
  ),
  ofHead(
    'V15 heads: a signature whose R is of small order',
    'everywhere',
    (head, log, root) => (head.checkpoint = smallOrderNote(log, root)),
    (log) => worthless('bad-head', log),
  ),
  {
    id: 'V15 a kept checkpoint whose R is of small order',
    holds: 'everywhere',
    forge(log) {
      const { size } = log.kept[0] ?? { size: 0 };
      const root = rootOf(log, size);
      log.editHeads((_, kept) => {
        for (const note of kept.slice(0, 1)) note.note = smallOrderNote(log, root, size);
      });
      return ofKept('bad-checkpoint', log, size);
    },
  },
  {
    id: 'kept: a checkpoint of another root, signed by the owner',
    holds: 'everywhere',
    forge(log) {
      log.editHeads((_, kept) => {
        for (const note of kept.slice(0, 1)) note.note = log.note(note.size, 'c'.repeat(64));
      });
      return { ...ofKept('rewritten', log, log.kept[0]?.size), position: 1 };
    },
  },
  {
    id: 'kept: a checkpoint by another key',
    holds: 'everywhere',
    forge(log) {
      const { size } = log.kept[0] ?? { size: 0 };
      const note = log.note(size, rootOf(log, size), otherSigner(log.origin));
      log.editHeads((_, kept) => {
        for (const one of kept.slice(0, 1)) one.note = note;
      });
      return ofKept('foreign-key', log, size);
    },
  },
  {
    id: 'kept: a checkpoint that is none',
    holds: 'everywhere',
    forge(log) {
      log.editHeads((_, kept) => {
        for (const one of kept.slice(0, 1)) one.note = 'Trust me.\n';
      });
      return ofKept('bad-checkpoint', log, log.kept[0]?.size);
    },
  },
  {
    id: 'kept: a checkpoint filed under another size',
    holds: 'everywhere',
    forge(log) {
      log.editHeads((_, kept) => {
        for (const one of kept.slice(0, 1)) one.size -= 1;
      });
      return ofKept('bad-checkpoint', log, (log.kept[0]?.size ?? 0) - 1, 'size');
    },
  },
  {
    id: 'kept: a checkpoint of more rows than there are',
    holds: 'everywhere',
    forge(log) {
      const size = log.rows.length + 10;
      log.editHeads((_, kept) =>
        kept.push({ size, key: log.signer.verifierKey, note: log.note(size, 'd'.repeat(64)) }),
      );
      return { ...ofKept('older-copy', log, size), position: log.rows.length + 1 };
    },
  },
  {
    id: 'A10 kept: the checkpoint of a seal is deleted',
    holds: 'everywhere',
    forge(log) {
      const { position } = log.exit('merkle_finalize').fields;
      log.editHeads((_, kept) => {
        kept.splice(0, kept.length, ...kept.filter(({ size }) => size !== position));
      });
      return { kind: 'missing', record: `#${position}` };
    },
  },
  {
    id: 'A10 kept: the checkpoint of a seal is replaced by an older one',
    holds: 'everywhere',
    forge(log) {
      const { position } = log.exit('merkle_finalize').fields;
      const size = position - 1;
      const note = log.note(size, rootOf(log, size));
      log.editHeads((_, kept) => {
        for (const one of kept.filter(({ size }) => size === position)) Object.assign(one, { size, note });
      });
      return { kind: 'missing', record: `#${position}` };
    },
  },
  {
    id: 'A10 kept: the checkpoint of a clean stop is deleted',
    holds: 'database',
    forge(log) {
      const size = log.kept.at(-1)?.size;
      log.editHeads((_, kept) => void kept.pop());
      return ofKept('missing', log, size);
    },
    isBesideRows: true,
  },
  {
    id: 'kept: history is rewritten and signed anew, and one old checkpoint is left',
    holds: 'everywhere',
    forge(log) {
      const exit = log.exits('server_ping')[0] ?? log.last;
      for (const one of [log.enterOf(exit), exit]) one.fields.actor = 'mallory';
      const old = log.kept.at(-1);
      // Whoever signs anew does so for all the others.
      log.editHeads((_, kept) => {
        for (const note of kept) if (note.size === old?.size) note.note = old.note;
      });
      return { ...ofKept('rewritten', log, old?.size), position: (log.kept.at(-2)?.size ?? 0) + 1 };
    },
  },
  {
    id: 'memory: history is rewritten and signed anew, and the memory is left',
    holds: 'database',
    forge(log) {
      const exit = log.exits('server_ping')[0] ?? log.last;
      for (const one of [log.enterOf(exit), exit]) one.fields.actor = 'mallory';
      log.editHeads((_, kept) => kept.splice(0));
      log.remembers = false;
      return [{ kind: 'rewritten', record: 'what was signed last', position: 1 }, ...missingSeals(log)];
    },
    takesReplay: true,
  },
  {
    id: 'memory: an older copy in its place',
    holds: 'database',
    forge(log) {
      log.rows.splice(-2, 2);
      log.kept = log.kept.filter(({ size }) => size <= log.rows.length);
      log.remembers = false;
      return { kind: 'older-copy', record: 'what was signed last', position: log.rows.length + 1 };
    },
    takesReplay: true,
  },
  {
    id: 'log: its name is another',
    holds: 'everywhere',
    forge(log) {
      log.edit((db) => db.prepare('UPDATE log SET origin = ?').run(`colibri/${'0'.repeat(32)}`));
      return worthless('replaced', log);
    },
  },
  {
    id: 'log: its name is gone',
    holds: 'everywhere',
    forge(log) {
      log.edit((db) => db.prepare('DELETE FROM log').run());
      return worthless('replaced', log);
    },
  },
  {
    id: 'log: its name and its heads are gone',
    holds: 'everywhere',
    forge(log) {
      log.edit((db) => db.exec('DELETE FROM log; DELETE FROM log_heads'));
      const [first] = log.kept;
      return [ofKept('replaced', log, first?.size), foreign(1, log.rows.length)];
    },
  },
  {
    id: 'adoption: an adoption that another key signs from now on, without a row under the head of the first',
    holds: 'everywhere',
    forge(log) {
      const signer = otherSigner(log.origin);
      const before = log.rows.length;
      const exit = log.append({ ...legal.adoption(log, signer), actor: 'mallory', source: 'cli' });
      const root = rootOf(log);
      log.sign = 'none';
      log.editHeads((heads) => {
        for (const head of heads.slice(0, 1))
          heads.push({
            ...head,
            key: signer.verifierKey,
            size: exit.fields.position,
            checkpoint: log.note(exit.fields.position, root, signer),
          });
      });
      log.edit((db) => {
        const tree = new Frontier();
        for (const hash of log.contentHashes()) tree.add(hash);
        const last = db.prepare('SELECT chain_hash, at FROM audit_rows ORDER BY position DESC').get() as {
          chain_hash: string;
          at: string;
        };
        db.prepare('UPDATE log_heads SET frontier = ?, chain_hash = ?, at = ? WHERE key = ?').run(
          tree.state.hashes.join(''),
          last.chain_hash,
          last.at,
          signer.verifierKey,
        );
      });
      return [
        { kind: 'foreign-key', record: `the head of key ${signer.id}` },
        foreign(before + 1, before + 2),
      ];
    },
  },
  {
    id: 'adoption: history is rewritten, and in it the owner has accepted that, without the key',
    holds: 'everywhere',
    forge(log) {
      const signer = otherSigner(log.origin);
      const size = log.rows.length;
      const [old] = log.heads;
      // The last call makes room, so that the adoption lies under the head that it gives up.
      log.rows.splice(-2, 2);
      const first = log.rows.slice(0, 2);
      for (const { fields } of first) fields.actor = 'mallory';
      log.append({ ...legal.adoption(log, signer, size), actor: 'mallory', source: 'cli' });
      const root = rootOf(log);
      log.remembers = false;
      log.editHeads((heads, kept) => {
        kept.splice(0);
        for (const head of heads.slice(0, 1)) {
          heads.push({ ...head, key: signer.verifierKey, checkpoint: log.note(size, root, signer) });
          Object.assign(head, { checkpoint: old?.checkpoint ?? '' });
        }
      });
      return [
        { ...ofOwnHead('rewritten', log), position: 1 },
        { kind: 'foreign-key', record: `the head of key ${signer.id}` },
        ...missingSeals(log),
      ];
    },
  },
  {
    id: 'V2 a legal call and a second head of a stranger over it',
    holds: 'everywhere',
    forge(log) {
      const before = log.rows.length;
      legal.read(log);
      const signer = otherSigner(log.origin);
      const root = rootOf(log);
      log.sign = 'none';
      log.editHeads((heads) => {
        for (const head of heads.slice(0, 1))
          heads.push({
            ...head,
            key: signer.verifierKey,
            size: before + 2,
            checkpoint: log.note(before + 2, root, signer),
          });
      });
      log.edit((db) => {
        const tree = new Frontier();
        for (const hash of log.contentHashes()) tree.add(hash);
        const last = db.prepare('SELECT chain_hash, at FROM audit_rows ORDER BY position DESC').get() as {
          chain_hash: string;
          at: string;
        };
        db.prepare('UPDATE log_heads SET frontier = ?, chain_hash = ?, at = ? WHERE key = ?').run(
          tree.state.hashes.join(''),
          last.chain_hash,
          last.at,
          signer.verifierKey,
        );
      });
      return [
        { kind: 'foreign-key', record: `the head of key ${signer.id}` },
        foreign(before + 1, before + 2),
      ];
    },
  },
];

const L = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;

/** A signature by the right key with the neutral point as its R: some verifiers take it, some do not. */
function smallOrderNote(log: ForgedLog, root: string, size = log.rows.length): string {
  const text = formatCheckpoint({ origin: log.origin, size, root });
  const neutral = Buffer.alloc(32);
  neutral[0] = 1;
  const scalar = secretScalar(log.signer.privateKey);
  const point = Buffer.from(log.signer.verifierKey.split('+').slice(2).join('+'), 'base64').subarray(1);
  const k = littleEndian(createHash('sha512').update(neutral).update(point).update(text).digest()) % L;
  const s = Buffer.from(((k * scalar) % L).toString(16).padStart(64, '0'), 'hex').reverse();
  const signature = Buffer.concat([Buffer.from(log.signer.id, 'hex'), neutral, s]).toString('base64');
  return `${text}\n— ${log.signer.name} ${signature}\n`;
}

function secretScalar(key: KeyObject): bigint {
  const { d = '' } = key.export({ format: 'jwk' });
  const bytes = createHash('sha512').update(Buffer.from(d, 'base64url')).digest().subarray(0, 32);
  bytes[0] = (bytes[0] ?? 0) & 248;
  bytes[31] = ((bytes[31] ?? 0) & 127) | 64;
  return littleEndian(bytes);
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
