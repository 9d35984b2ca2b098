import { generateKeyPairSync } from 'node:crypto';
import { cpSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatCheckpoint, parseCheckpoint } from '../../src/integrity/checkpoint.ts';
import { verifyInclusion } from '../../src/integrity/proof-verifier.ts';
import { noteSigner, signNote } from '../../src/integrity/signed-note.ts';
import { leafHash, nodeHash, treeRoot } from '../../src/integrity/tree.ts';
import { canonical, sha256 } from '../driver/audit-file.ts';
import { cutCleanly, type LogDesk, proves, putHead, rewrite, rewriteText, signAnew } from './log-desk.ts';

// PROOFS 1.1, row by row, and the first four of 1.2: the file is changed as written there, and the finding has its name.

describe('attacks on rows (PROOFS 1.1)', () => {
  proves(
    'verdict.ranges',
    'an untouched log is intact and covered by a checkpoint to its last row',
    async (desk) => {
      await desk.work();

      const verdict = await desk.verify();

      expect(verdict).toMatchObject({ ok: true, code: 0, findings: [], remarks: [] });
      expect(verdict.intact_through).toBe(verdict.size);
      expect(verdict.checkpointed_through).toBe(verdict.size);
      expect(verdict.unanchored_tail).toBe(verdict.size);
    },
  );

  proves(['detect.column', 'detect.names', 'detect.attacks'], '1: an edited row is named', async (desk) => {
    await desk.work();
    desk.tamper((db) =>
      db.exec(`UPDATE actions SET text = replace(text, 'contract-test', 'somebody') WHERE position = 3`),
    );

    const { findings, code, intact_through } = await desk.verify();

    expect(code).toBe(1);
    expect(findings).toContainEqual(
      expect.objectContaining({ kind: 'altered', table: 'actions', record: '#3' }),
    );
    expect(intact_through).toBe(2);
  });

  proves(
    ['detect.rewritten', 'checkpoint.next-start', 'checkpoint.extends', 'detect.attacks'],
    '2: a history that was rewritten and recomputed is found and refused',
    async (desk) => {
      await desk.work();
      const kept = desk.lastSigned;
      desk.tamper((db) =>
        rewrite(db, (row) => {
          if (row.position === 6) row.duration_ms = 12_345;
        }),
      );

      const against = await desk.verify('--against', kept);
      const found = await desk.findings();
      const { health, stderr } = await desk.refusalAtStart();

      expect(found).toEqual(['rewritten']);
      expect(against.against?.verdict).toBe('inconsistent');
      expect(against.code).toBe(1);
      expect(health.log.refused).toContain('history was rewritten');
      expect(stderr).toContain('history was rewritten');
      expect(desk.lastSigned).toBe(kept);
    },
  );

  proves(
    ['detect.cut-tail', 'checkpoint.next-start', 'checkpoint.extends', 'detect.attacks'],
    '3: a cut tail is found and refused, with or without what the rows left behind',
    async (desk) => {
      await desk.work();
      const end = desk.positions().length;
      await desk.moreWork();
      const kept = desk.lastSigned;
      desk.tamper((db) => db.prepare('DELETE FROM actions WHERE position > ?').run(end));
      const untidy = await desk.findings();
      desk.tamper((db) => cutCleanly(db, end));
      const tidy = await desk.verify('--against', kept);

      const { health, stderr } = await desk.refusalAtStart();

      expect(untidy).toContain('cut-tail');
      expect([...new Set(tidy.findings.map(({ kind }) => kind))]).toEqual(['older-copy']);
      expect(tidy.against?.verdict).toBe('inconsistent');
      expect(tidy.intact_through).toBe(end);
      expect(health.log.refused).toContain('were cut off, or an older copy was restored');
      expect(stderr).toContain('nothing is signed');
      expect(desk.lastSigned).toBe(kept);
    },
  );

  proves(
    ['detect.older-copy', 'checkpoint.next-start', 'checkpoint.extends', 'detect.attacks'],
    '4: an older copy of the file is found and refused',
    async (desk) => {
      await desk.work();
      const copy = desk.colibri.path('yesterday.db');
      desk.copyTo(copy);
      await desk.moreWork();
      const kept = desk.lastSigned;
      desk.restore(copy);

      const verdict = await desk.verify('--against', kept);
      const { health } = await desk.refusalAtStart();

      expect([...new Set(verdict.findings.map(({ kind }) => kind))]).toEqual(['older-copy']);
      expect(verdict.against?.verdict).toBe('inconsistent');
      expect(health.log.refused).toContain('an older copy was restored');
      // The server wrote rows meanwhile, past the old size perhaps: they change nothing.
      expect(await desk.findings('--against', kept)).not.toEqual([]);
      expect(desk.lastSigned).toBe(kept);
    },
  );

  const columns: readonly [number, string, string, unknown][] = [
    [5, 'thoughts', 'type', 'risk'],
    [5, 'thoughts', 'session_id', null],
    [5, 'thoughts', 'recorded_at', '2020-01-01T00:00:00.000Z'],
    [5, 'tasks', 'created_at', '2020-01-01T00:00:00.000Z'],
    [6, 'thoughts', 'metadata', '{"a":1}'],
    [6, 'thoughts', 'tests_run', '["none"]'],
    [6, 'thoughts', 'commit_sha', 'abcdef0'],
    [6, 'thoughts', 'chain_position', 99],
    [8, 'sessions', 'leaf_count', 2],
    [11, 'sessions', 'merkle_root', sha256('a chain link')],
    [15, 'tasks', 'estimate_hours', Number.POSITIVE_INFINITY],
    [16, 'tasks', 'progress', 1e-300],
  ];

  proves(
    ['detect.column', 'detect.forged-root', 'detect.names', 'detect.attacks', 'verdict.columns'],
    '5, 6, 8, 11, 15: every changed column of every table is named',
    async (desk) => {
      await desk.work();
      const copy = desk.colibri.path('good.db');
      desk.copyTo(copy);

      for (const [attack, table, column, value] of columns) {
        desk.restore(copy);
        desk.tamper((db) => db.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = 1`).run(value));
        const { findings } = await desk.verify();
        const altered = findings.filter(({ kind }) => kind === 'altered');
        expect(altered, `${attack}: ${table}.${column}`).toEqual([
          expect.objectContaining({ table, columns: [column] }),
        ]);
      }
    },
  );

  proves(
    ['detect.no-effect', 'detect.no-row', 'detect.attacks'],
    '5: a changed id is a row nobody wrote and one that is gone',
    async (desk) => {
      await desk.work();
      desk.tamper((db) => db.exec('UPDATE thoughts SET id = 77 WHERE id = 1'));

      const kinds = await desk.findings();

      expect(kinds).toContain('missing');
      expect(kinds).toContain('unexplained');
    },
  );

  proves(
    ['detect.rewritten', 'detect.attacks'],
    '7: a changed author, recomputed down to the last hash, is a rewritten history',
    async (desk) => {
      await desk.work();
      await desk.moreWork();
      forgeAuthor(desk);

      expect(await desk.findings()).toContain('rewritten');
    },
  );

  proves(
    'detect.forged-root',
    'a forged root is found by the records under it, though every hash was recomputed',
    async (desk) => {
      await desk.work();
      const merkle_root = sha256('whatever I like');
      forge(
        desk,
        'sessions',
        1,
        (session) => Object.assign(session, { merkle_root }),
        (effect) => Object.assign(effect, { seal: { merkle_root, leaf_count: 4 } }),
      );
      signAnew(desk);

      const { findings, intact_through } = await desk.verify();

      expect(findings).toEqual([
        expect.objectContaining({
          kind: 'forbidden',
          table: 'sessions',
          record: 'A-0001',
          columns: ['merkle_root'],
        }),
      ]);
      expect(intact_through).toBe(desk.positions("tool = 'merkle_finalize'").at(-1)! - 1);
    },
  );

  proves('detect.forged-root', 'a root in the log that is not the session’s is found', async (desk) => {
    await desk.work();
    desk.tamper((db) =>
      rewrite(db, (row) => {
        for (const effect of (row.effects ?? []) as { seal?: object }[])
          if (effect.seal !== undefined) effect.seal = { merkle_root: sha256('another'), leaf_count: 4 };
      }),
    );
    signAnew(desk);

    const { findings } = await desk.verify();

    expect(findings).toEqual([
      expect.objectContaining({ kind: 'forbidden', record: 'A-0001', columns: ['seal'] }),
    ]);
  });

  const texts: readonly [number, string, (text: string) => string][] = [
    [12, 'keys in another order', (text) => text.replace(/^\{("actor":"[^"]*"),("at":"[^"]*")/, '{$2,$1')],
    [
      13,
      'an integer beyond 2^53',
      (text) => text.replace(/"duration_ms":[^,]*/, '"duration_ms":9007199254740993'),
    ],
    [14, 'a repeated name', (text) => text.replace(/^\{/, '{"actor":"other",')],
    [15, 'infinity', (text) => text.replace(/"duration_ms":[^,]*/, '"duration_ms":Infinity')],
    [16, 'minus zero', (text) => text.replace(/"duration_ms":[^,]*/, '"duration_ms":-0')],
    [16, 'a field left out', (text) => text.replace(/"rules":1,/, '')],
    [16, 'a null', (text) => text.replace('"outcome"', '"error_code":null,"outcome"')],
    [16, 'an empty list', (text) => text.replace('"result_hash"', '"repaired":[],"result_hash"')],
    [16, 'effects that are none', (text) => text.replace(/"effects":\[[^\]]*\]/, '"effects":5')],
    [17, 'a space', (text) => text.replace('":', '": ')],
  ];

  proves(
    'detect.attacks',
    '12 to 17: a row in any other form is malformed, even with every hash recomputed',
    async (desk) => {
      await desk.work();
      const copy = desk.colibri.path('good.db');
      desk.copyTo(copy);

      for (const [attack, what, change] of texts) {
        desk.restore(copy);
        desk.tamper((db) => rewriteText(db, (text, position) => (position === 4 ? change(text) : text)));
        const { findings } = await desk.verify();
        const kinds = findings.filter(({ record }) => record === '#4').map(({ kind }) => kind);
        expect(kinds, `${attack}: ${what}`).toContain('malformed');
        expect(findings.map(({ kind }) => kind)).toContain('rewritten');
      }
    },
  );

  proves('detect.attacks', '13, 15: numbers that cannot be kept exactly never get in', async (desk) => {
    const server = await desk.colibri.start();
    await desk.ok(server, 'task_create', { title: 'a', project: 'demo' });
    const call = (metadata: string) =>
      server.sendLine(
        `{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"thought_record","arguments":{"task_id":"T-0001","type":"plan","content":"c","metadata":${metadata}}}}`,
        'n',
      );

    const beyond = await call('{"n":9007199254740993}');
    const huge = await call('{"n":1e999}');

    for (const answer of [beyond, huge])
      expect((answer.result?.structuredContent ?? { ok: false }) as object).toMatchObject({ ok: false });
    await server.closeInput();
    expect(await desk.findings()).toEqual([]);
  });

  proves('detect.attacks', '17: keys that look like numbers are no false alarm', async (desk) => {
    const server = await desk.colibri.start();
    await desk.ok(server, 'task_create', { title: 'a', project: 'demo' });
    await desk.think(server, 'numbers as names', { metadata: { 10: 'ten', 9: 'nine', a: -0 } });
    await server.closeInput();

    expect(await desk.findings()).toEqual([]);
  });

  proves(
    ['detect.duplicated', 'detect.attacks'],
    '10: the last row once more is not the same log',
    async (desk) => {
      await desk.work();
      const size = desk.positions().length;
      desk.tamper((db) => {
        db.exec(
          `INSERT INTO actions (position, text, content, chain) SELECT position + 1, text, content, chain FROM actions WHERE position = ${size}`,
        );
        rewriteText(db, (text) => text);
      });

      const { findings } = await desk.verify();

      expect(findings.map(({ kind, record }) => `${kind} ${record}`)).toContain(`malformed #${size + 1}`);
    },
  );
});

describe('attacks on trees (PROOFS 1.1)', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(sha256) as [string, string, string, string];

  test('8: four leaves are not two, whatever the two are', () => {
    const inner = [nodeHash(leafHash(a), leafHash(b)), nodeHash(leafHash(c), leafHash(d))] as const;
    const root = treeRoot([a, b, c, d]);

    expect(treeRoot(inner)).not.toBe(root);
    expect(() => verifyInclusion({ index: 0, size: 4, leafHash: inner[0], root, proof: [inner[1]] })).toThrow(
      'too short',
    );
    // An inner node shown as the leaf of a smaller tree leads to the root; that tree's size is what no key signed.
    expect(() =>
      verifyInclusion({ index: 0, size: 2, leafHash: leafHash(inner[0]), root, proof: [inner[1]] }),
    ).toThrow('another root');
  });

  test('9: a record made of two child hashes does not hash to their parent', () => {
    const children = leafHash(a) + leafHash(b);
    const made = [sha256(children), sha256(Buffer.from(children, 'hex').toString('latin1'))];

    for (const record of made) expect(treeRoot([record])).not.toBe(treeRoot([a, b]));
  });

  test('10: three leaves and the last one twice have different roots', () => {
    expect(treeRoot([a, b, c])).not.toBe(treeRoot([a, b, c, c]));
  });

  test('11: a chain link is no root', () => {
    expect(sha256(a + b)).not.toBe(treeRoot([a, b]));
  });
});

describe('attacks that need more than hashing (PROOFS 1.2)', () => {
  proves(
    ['detect.beyond-hashing', 'checkpoint.copies'],
    'split view: of two logs shown under one name, each denies the other’s checkpoint',
    async (desk) => {
      await desk.work();
      const before = desk.lastSigned;
      const fork = desk.colibri.path('fork.db');
      desk.copyTo(fork);
      // The same key, and a memory that knows nothing later.
      const bob = desk.colibri.path('config-of-bob');
      cpSync(desk.colibri.path('config'), bob, { recursive: true });
      await desk.moreWork('shown to ada');
      const adas = desk.lastSigned;
      const server = await desk.colibri.start({ env: { ...desk.placed(fork), XDG_CONFIG_HOME: bob } });
      const answer = await server.call('thought_record', {
        task_id: 'T-0001',
        type: 'plan',
        content: 'for bob',
      });
      await server.closeInput();
      const meta = (answer.message.result?._meta ?? {}) as Record<string, string>;
      const bobs = meta['colibri/checkpoint'] ?? '';

      expect((await desk.verify('--against', bobs)).against?.verdict).toBe('inconsistent');
      expect((await desk.verify(fork, '--against', adas)).against?.verdict).toBe('inconsistent');
      expect((await desk.verify('--against', before)).against?.verdict).toBe('consistent');
    },
  );

  proves(
    'detect.beyond-hashing',
    'clock: a row dated before its neighbour is malformed; where a day or more lies between, the neighbour was ahead',
    async (desk) => {
      await desk.work();
      const copy = desk.colibri.path('good.db');
      desk.copyTo(copy);
      for (const [ms, record] of [
        [3_600_000, '#6'],
        [200_000_000, '#5'],
      ] as const) {
        desk.restore(copy);
        desk.tamper((db) =>
          rewrite(db, (row) => {
            if (row.position === 6) row.at = new Date(Date.parse(String(row.at)) - ms).toISOString();
          }),
        );

        const { findings } = await desk.verify();

        expect(findings).toContainEqual(expect.objectContaining({ kind: 'malformed', record }));
        expect(findings.map(({ kind }) => kind)).toContain('rewritten');
      }
    },
  );

  proves(
    ['detect.beyond-hashing', 'detect.names'],
    'impersonation: a name changed later is found; before that it is a claim',
    async (desk) => {
      await desk.work();
      desk.tamper((db) => db.exec(`UPDATE thoughts SET recorded_by = 'the boss' WHERE id = 2`));

      const { findings } = await desk.verify();

      expect(findings).toEqual([
        expect.objectContaining({ kind: 'altered', record: 'Θ-0002', columns: ['recorded_by'] }),
      ]);
    },
  );

  proves(
    ['detect.beyond-hashing', 'anchor.file'],
    'key theft: a history signed anew with the stolen key is found by an older anchor',
    async (desk) => {
      await desk.work();
      const untouched = desk.positions().length;
      await desk.moreWork();
      await desk.run('anchor', '--file', desk.colibri.path('kept'));
      desk.tamper((db) =>
        rewrite(db, (row) => {
          if (row.position === untouched + 2) row.duration_ms = 12_345;
        }),
      );
      signAnew(desk);

      const verdict = await desk.verify();

      expect(verdict.checkpointed_by).toEqual([
        expect.objectContaining({ through: verdict.size, known: true }),
      ]);
      expect(verdict.findings.map(({ kind, record }) => [kind, record])).toEqual([
        ['rewritten', desk.colibri.path('kept')],
      ]);
      expect(verdict.intact_through).toBe(untouched);
    },
  );

  proves(
    ['verdict.replay', 'detect.beyond-hashing'],
    'key theft: what the rules would not have done is found without any anchor, though everything was signed anew',
    async (desk) => {
      await desk.work();
      await desk.moreWork();
      forgeAuthor(desk);
      signAnew(desk);

      const { findings } = await desk.verify();

      expect(findings).toEqual([
        expect.objectContaining({ record: 'Θ-0005', columns: ['hash', 'recorded_by'] }),
      ]);
    },
  );

  proves('detect.foreign-key', 'a checkpoint from another key is a finding', async (desk) => {
    await desk.work();
    const { origin, size, root } = headIn(desk.lastSigned);
    const { privateKey } = generateKeyPairSync('ed25519');
    const signer = noteSigner(origin, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    const forged = signNote(formatCheckpoint({ origin, size, root }), signer);
    const copy = desk.colibri.path('good.db');
    desk.copyTo(copy);

    desk.tamper((db) => putHead(db, forged, signer.verifierKey));
    const besides = await desk.findings();
    desk.restore(copy);
    desk.tamper((db) =>
      db.prepare('INSERT INTO checkpoints VALUES (?, ?, ?)').run(size, signer.verifierKey, forged),
    );
    const kept = await desk.findings();

    expect([besides, kept]).toEqual([['foreign-key'], ['foreign-key']]);
    expect((await desk.verify('--against', forged)).against?.message).toContain('not signed by a known key');
  });

  proves('detect.foreign-key', 'a checkpoint whose signature was broken is a finding', async (desk) => {
    await desk.work();
    const copy = desk.colibri.path('good.db');
    desk.copyTo(copy);
    const broken = desk.lastSigned.replace(/\n(\d+)\n/, (_, size) => `\n${Number(size) - 1}\n`);

    desk.tamper((db) => db.prepare('UPDATE log_heads SET checkpoint = ?').run(broken));
    const head = await desk.findings();
    desk.restore(copy);
    desk.tamper((db) => db.prepare('UPDATE checkpoints SET note = ?').run(broken));
    const kept = await desk.findings();

    expect(head).toEqual(['bad-head', 'foreign']);
    expect(kept).toEqual(['bad-checkpoint']);
  });

  proves(
    ['checkpoint.origin', 'checkpoint.replaced', 'detect.rewritten'],
    'a log made anew from its first row, with another key, is another log',
    async (desk) => {
      await desk.work();
      const kept = desk.lastSigned;
      const anew = desk.colibri.path('anew.db');
      const env = { COLIBRI_DB_PATH: anew, XDG_CONFIG_HOME: desk.colibri.path('config-of-a-stranger') };
      const server = await desk.colibri.start({ env });
      await desk.ok(server, 'task_create', { title: 'Build the thing', project: 'demo' });
      await server.closeInput();
      desk.restore(anew);

      const verdict = await desk.verify('--against', kept);
      const { health } = await desk.refusalAtStart();

      expect(new Set(verdict.findings.map(({ kind }) => kind))).toEqual(new Set(['replaced']));
      expect(verdict.against?.verdict).toBe('not comparable');
      expect(health.log.refused).toContain('was the log');
    },
  );
});

/** The author of the last thought, its hash, the digests of its row and everything that follows from them. */
function forgeAuthor(desk: LogDesk): void {
  const last = desk.positions("tool = 'thought_record' AND stage = 'exit'").length;
  forge(desk, 'thoughts', last, (thought) => {
    thought.recorded_by = 'the boss';
    const { type, content, previous_hash, recorded_at, recorded_by } = thought;
    const task_id = 'T-0001';
    thought.hash = sha256(
      JSON.stringify({ task_id, type, content, previous_hash, recorded_at, recorded_by }),
    );
  });
}

/** Changes a row of state, and the effects that vouch for it, and every hash after them. */
function forge(
  desk: LogDesk,
  table: string,
  id: number,
  change: (row: Record<string, unknown>) => void,
  changeEffect: (effect: Record<string, unknown>) => void = () => undefined,
): void {
  desk.tamper((db) => {
    const row = db.prepare(`SELECT * FROM ${table} WHERE id = ?`).get(id) as Record<string, unknown>;
    const columns = Object.keys(row);
    change(row);
    db.prepare(`UPDATE ${table} SET ${columns.map((name) => `${name} = @${name}`)} WHERE id = @id`).run(row);
    rewrite(db, (audit) => {
      if (audit.position !== row.position) return;
      for (const effect of (audit.effects ?? []) as Record<string, unknown>[]) {
        if (effect.table !== table || Number(String(effect.id).slice(2)) !== id) continue;
        effect.hash = sha256(canonical({ ...row, table }));
        changeEffect(effect);
      }
    });
  });
}

function headIn(note: string) {
  return parseCheckpoint(note.slice(0, note.indexOf('\n\n') + 1));
}
