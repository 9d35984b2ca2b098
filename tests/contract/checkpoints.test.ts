import { spawnSync } from 'node:child_process';
import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect } from 'vitest';
import { generateNoteKey } from '../../src/integrity/signed-note.ts';
import { repository } from '../driver/anchor-places.ts';
import { withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { filesAt } from '../driver/postgres.ts';
import { tier } from '../driver/tier.ts';
import { type LogDesk, proves, rewrite, sizeIn } from './log-desk.ts';

interface CheckpointJson {
  readonly origin?: string;
  readonly size?: number;
  readonly key?: string;
  readonly note?: string;
  readonly refused?: string;
  readonly adopted?: boolean;
  readonly given_up?: readonly string[];
}

describe('checkpoints', () => {
  proves(
    ['checkpoint.format', 'checkpoint.origin', 'checkpoint.command'],
    'a checkpoint opens with a strict reader of signed notes that shares no code with us',
    async (desk) => {
      await desk.work();

      const { note = '', key = '', size } = await checkpoint(desk);

      const opened = openStrictly(note, key);
      expect(opened).toEqual({ origin: expect.stringMatching(/^colibri\/[0-9a-f]{32}$/), size });
      expect(size).toBe(desk.positions().length);
      expect(() => openStrictly(note.replace(/\n\d+\n/, '\n1\n'), key)).toThrow('signature');
    },
  );

  proves('checkpoint.format', 'a checkpoint is valid for openssl', async (desk) => {
    await desk.work();
    const { note = '', key = '' } = await checkpoint(desk);
    const at = (name: string) => desk.colibri.path(name);
    const spki = Buffer.concat([
      Buffer.from('302a300506032b6570032100', 'hex'),
      Buffer.from(key.split('+').slice(2).join('+'), 'base64').subarray(1),
    ]);
    writeFileSync(at('key.der'), spki);
    writeFileSync(at('text'), note.slice(0, note.indexOf('\n\n') + 1));
    writeFileSync(at('sig'), Buffer.from(note.trim().split(' ').at(-1) ?? '', 'base64').subarray(4));

    const args = ['pkeyutl', '-verify', '-pubin', '-keyform', 'DER', '-inkey', at('key.der'), '-rawin'];
    const { stdout } = spawnSync('openssl', [...args, '-in', at('text'), '-sigfile', at('sig')]);

    expect(stdout.toString()).toContain('Signature Verified Successfully');
  });

  proves(
    ['checkpoint.meta', 'verdict.against'],
    'the checkpoint that comes with the answer to a writing call covers that call, and a read brings the newest durable one',
    async (desk) => {
      const server = await desk.colibri.start();

      const written = await server.call('task_create', { title: 'a', project: 'demo' });
      const covered = desk.positions().length;
      const read = await server.call('server_ping', {});

      const note = metaOf(written.message.result) ?? '';
      const key = readFileSync(join(desk.logFolder, 'key.pub'), 'utf8').trim();
      expect(openStrictly(note, key).size).toBe(covered);
      expect(metaOf(read.message.result)).toBe(note);
      await server.closeInput();
      expect(
        (await desk.verify('--against', JSON.stringify({ _meta: { 'colibri/checkpoint': note } }))).against,
      ).toMatchObject({
        verdict: 'consistent',
      });
    },
  );

  proves(
    'checkpoint.kept',
    'a sealed session and a clean stop each leave a checkpoint for good',
    async (desk) => {
      await desk.work();

      const rows = desk.colibri.readAudit().rows;
      const sealed = rows.find(({ tool, stage }) => tool === 'merkle_finalize' && stage === 'exit')?.position;

      expect(desk.kept.map(sizeIn)).toEqual(
        [sealed, rows.length].filter((size, i, all) => all.indexOf(size) === i),
      );
      expect(desk.kept.at(-1)).toBe(desk.lastSigned);
      if (desk.colibri.isOnFile)
        expect(readdirSync(dirname(desk.dbPath)).filter((name) => name.includes('checkpoint'))).toEqual([]);
    },
  );

  proves(
    'checkpoint.deleted',
    'a backup made before a clean stop is sound where it lies, and again in the place of the log after the next start',
    async (desk) => {
      const { colibri } = desk;
      await desk.work();
      const server = await colibri.start();
      await desk.think(server, 'later');
      const backup = colibri.path('backup.db');
      const made = await desk.run('backup', backup);
      await server.closeInput();

      const copy = await desk.run('verify', backup);
      for (const ending of ['-wal', '-shm']) rmSync(colibri.dbPath + ending, { force: true });
      copyFileSync(backup, colibri.dbPath);
      const restored = await desk.verify();
      await desk.moreWork();
      const after = await desk.verify();

      expect([made.code, copy.code]).toEqual([0, 0]);
      expect(restored.findings).toMatchObject([{ kind: 'missing', table: 'checkpoints' }]);
      expect(after.findings).toEqual([]);
    },
  );

  proves(
    'checkpoint.deleted',
    'a deleted or replaced checkpoint of a seal, of "colibri checkpoint" and of a clean stop is named (A10)',
    async (desk) => {
      await desk.work();
      await desk.moreWork();
      await desk.run('checkpoint');
      const server = await desk.colibri.start();
      await desk.think(server, 'later');
      const older = desk.head;
      await desk.think(server, 'and later');
      await server.closeInput();
      const sizes = desk.kept.map(sizeIn);
      const before = await desk.verify();

      desk.tamper((db) => {
        const deleting = db.prepare('DELETE FROM checkpoints WHERE size = ?');
        for (const size of sizes.slice(0, -1)) deleting.run(size);
        // The head of an earlier commit is signed, too.
        const replacing = db.prepare('UPDATE checkpoints SET size = ?, note = ? WHERE size = ?');
        replacing.run(sizeIn(older), older, sizes.at(-1));
      });
      const { findings, code } = await desk.verify();
      const adopted = await desk.run('checkpoint', '--adopt');
      const after = await desk.verify();
      await desk.moreWork();
      desk.tamper((db) =>
        db.prepare('DELETE FROM checkpoints WHERE size = ?').run(desk.colibri.readAudit().rows.length),
      );
      const again = await desk.verify();

      expect(before.findings).toEqual([]);
      expect(sizes.length).toBeGreaterThan(2);
      expect(code).toBe(1);
      expect(findings.map(({ kind, table }) => `${kind} ${table}`)).toEqual(
        sizes.map(() => 'missing checkpoints'),
      );
      expect(findings.map(({ record }) => Number(/\d+/.exec(record)?.[0]))).toEqual(sizes);
      expect(adopted.stdout).toContain('The kept checkpoint');
      expect(after.findings).toEqual([]);
      expect(again.findings).toMatchObject([{ kind: 'missing', table: 'checkpoints' }]);
    },
  );

  proves(
    'head.every-commit',
    'both commits of a writing call and the one of a reading call are signed as they are made',
    async (desk) => {
      const server = await desk.colibri.start();
      for (const [tool, args] of [
        ['task_create', { title: 'a', project: 'demo' }],
        ['server_ping', {}],
        ['task_update', { task_id: 'T-0001', status: 'done' }],
        ['task_create', { nonsense: true }],
        ['no_such_tool', {}],
      ] as const) {
        await server.call(tool, args);
        const rows = desk.colibri.readAudit().entries;
        const { size, chain_hash, at } = headRow(desk);
        expect([size, chain_hash, at], tool).toEqual([
          rows.length,
          rows.at(-1)?.chain_hash,
          rows.at(-1)?.row.at,
        ]);
        expect(sizeIn(desk.head), tool).toBe(rows.length);
      }
      await server.killHard();

      const verdict = await desk.verify();

      expect(verdict).toMatchObject({ ok: true, checkpointed_through: desk.positions().length });
    },
  );

  proves(
    'head.every-commit',
    'the enter row of a call that a kill cuts off is signed already',
    async (desk) => {
      await desk.work();
      for (const waitMs of tier([0, 3, 7, 12], [...Array(20).keys()])) {
        const server = await desk.colibri.start();
        const calls = Array.from({ length: 8 }, () => desk.think(server, 'cut off').catch(() => undefined));
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        await server.killHard();
        await Promise.all(calls);
        expect(headRow(desk).size).toBe(desk.positions().length);
      }

      expect((await desk.verify()).findings).toEqual([]);
    },
  );

  proves(
    ['head.durable', 'checkpoint.private'],
    'what was signed last is remembered outside the workspace, and never more than the database holds',
    async (desk) => {
      const server = await desk.colibri.start();
      for (let i = 0; i < 10; i += 1) {
        await desk.ok(server, 'task_create', { title: `task ${i}`, project: 'demo' });
        expect(sizeIn(desk.lastSigned)).toBe(desk.positions().length);
      }
      await server.killHard();

      expect(desk.lastSigned).toBe(desk.head);
      expect((await desk.verify()).findings).toEqual([]);
    },
  );

  proves(
    'checkpoint.one-lock',
    'calls in the first breath of the first start do not make a new log look like a stranger’s',
    async (desk) => {
      for (let i = 0; i < 5; i += 1) {
        const { env } = desk.colibri.another(`fresh-${i}`);
        const servers = [desk.colibri.spawn({ env }), desk.colibri.spawn({ env })];
        const answers = servers.flatMap((server) => [
          server.initialize(),
          server.call('server_ping', {}),
          server.call('task_create', { title: 'at once', project: 'demo' }),
        ]);
        await Promise.all(answers);
        for (const server of servers) expect((await desk.health(server)).status).toBe('ok');
        await Promise.all(servers.map((server) => server.closeInput()));
        for (const server of servers) expect(server.stderr).not.toContain('nothing is signed');
      }
    },
  );

  proves(
    'checkpoint.one-lock',
    'several processes that sign at once make one history, and what is remembered of it only grows',
    async (desk) => {
      await desk.work();
      const servers = await Promise.all([1, 2, 3, 4].map(() => desk.colibri.start()));
      const sizes: number[] = [];
      const watch = setInterval(() => sizes.push(sizeIn(desk.lastSigned)), 5);
      for (let round = 0; round < 4; round += 1) {
        await Promise.all(servers.map((server) => desk.think(server, `round ${round}`)));
        await Promise.all([1, 2, 3].map(() => desk.run('checkpoint')));
      }
      await Promise.all(servers.map((server) => server.closeInput()));
      clearInterval(watch);

      const verdict = await desk.verify();

      expect(verdict).toMatchObject({ ok: true, findings: [] });
      expect(verdict.checkpointed_by).toEqual([
        {
          key: readFileSync(join(desk.logFolder, 'key.pub'), 'utf8').trim(),
          through: verdict.size,
          known: true,
          vouched: true,
        },
      ]);
      expect(verdict.checkpointed_through).toBe(desk.positions().length);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
      for (const server of servers) expect(server.stderr).not.toContain('nothing is signed');
    },
  );

  proves(
    ['log-tree.global', 'checkpoint.origin'],
    'checkpoints name the root over all audit rows, under one name from the first to the last',
    async (desk) => {
      await desk.work();
      await desk.moreWork();
      const { note = '', key = '' } = await checkpoint(desk);

      const notes = [note, ...desk.kept];
      const hashes = desk.colibri.readAudit().entries.map((entry) => entry.content_hash);
      const publicKey = Buffer.from(key.split('+').slice(2).join('+'), 'base64').subarray(1);

      expect(notes.length).toBeGreaterThan(2);
      for (const [origin, size, root] of notes.map((text) => text.split('\n'))) {
        expect(origin).toBe(`colibri/${createHash('sha256').update(publicKey).digest('hex').slice(0, 32)}`);
        expect(Buffer.from(root ?? '', 'base64').toString('hex')).toBe(
          rootOver(hashes.slice(0, Number(size)).map((hash) => nodeOver('00', hash))),
        );
      }
    },
  );

  proves(
    'checkpoint.unsigned',
    'where the log may not be signed over, calls are answered, unsigned, and _meta, health and verify say so',
    async (desk) => {
      await desk.work();
      const signed = desk.positions().length;
      rmSync(join(desk.logFolder, 'key.pem'));
      const server = await desk.colibri.start();

      const answer = await server.call('thought_record', {
        task_id: 'T-0001',
        type: 'plan',
        content: 'unsigned',
      });
      const health = await desk.health(server);
      await server.closeInput();

      const meta = answer.message.result?._meta as Record<string, unknown>;
      expect(answer.envelope).toMatchObject({ ok: true });
      expect(meta['colibri/unsigned']).toContain('is missing or was replaced');
      expect(meta['colibri/checkpoint']).toBeUndefined();
      expect(health).toMatchObject({ status: 'degraded', log: { refused: meta['colibri/unsigned'] } });
      expect(sizeIn(desk.head)).toBe(signed);
      expect((await desk.verify()).findings).toContainEqual(
        expect.objectContaining({ kind: 'foreign', record: `#${signed + 1} to #${desk.positions().length}` }),
      );
    },
  );

  proves(
    'checkpoint.private',
    'the key and what was signed last are their owner’s alone, and no key lies beside the database',
    async (desk) => {
      await desk.work();

      const files = ['key.pem', ...readdirSync(desk.memory).map((name) => join('signed', name))];
      expect(files.length).toBeGreaterThan(2);
      for (const name of files) expect(statSync(join(desk.logFolder, name)).mode & 0o777, name).toBe(0o600);
      for (const folder of [desk.logFolder, desk.memory]) expect(statSync(folder).mode & 0o777).toBe(0o700);
      const beside = desk.colibri.isOnFile
        ? readdirSync(dirname(desk.dbPath), { recursive: true, withFileTypes: true })
            .filter((entry) => entry.isFile())
            .map((entry) => join(entry.parentPath, entry.name))
        : filesAt(desk.dbPath);
      const texts = beside.map((path) => readFileSync(path, 'latin1'));
      expect(texts.length).toBeGreaterThan(0);
      expect(texts.filter((text) => text.includes('PRIVATE KEY'))).toEqual([]);
    },
  );

  proves(
    'anchor.outside-calls',
    'a day of tool calls in a git repository starts neither git nor openssl nor a shell',
    async (desk) => {
      repository(desk.colibri);
      const [programs, started] = [desk.colibri.path('programs'), desk.colibri.path('started')];
      mkdirSync(programs);
      for (const name of ['git', 'openssl', 'sh', 'gpg', 'ssh', 'curl'])
        writeFileSync(join(programs, name), `#!/bin/bash\necho ${name} >> ${started}\n`, { mode: 0o755 });

      const server = await desk.colibri.start({ env: { PATH: programs } });
      await desk.ok(server, 'task_create', { title: 'a', project: 'demo' });
      await desk.ok(server, 'audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
      await desk.think(server, 'because');
      await desk.ok(server, 'audit_verify_chain', { task_id: 'T-0001' });
      await desk.ok(server, 'merkle_finalize', { session_id: 'A-0001' });
      await desk.ok(server, 'server_health', {});
      await server.closeInput();

      const during = existsSync(started) ? readFileSync(started, 'utf8') : '';
      await runColibri(desk.colibri, ['anchor', '--git'], { env: { PATH: programs } });

      expect(during).toBe('');
      expect(readFileSync(started, 'utf8')).toContain('git');
    },
  );

  proves('checkpoint.modes', 'nothing is signed in TEST and MINIMAL', async (desk) => {
    for (const mode of ['TEST', 'MINIMAL']) {
      const server = await desk.colibri.start({ env: { COLIBRI_MODE: mode } });
      const answer = await server.call('server_ping', {});
      await server.closeInput();
      expect(metaOf(answer.message.result)).toBeUndefined();
    }
    expect(existsSync(join(desk.colibri.folder, 'config', 'colibri'))).toBe(false);
    expect((await runColibri(desk.colibri, ['checkpoint'], { env: { COLIBRI_MODE: 'TEST' } })).code).toBe(2);
  });
});

describe('what a log refuses to be signed over, and how its owner goes on', () => {
  /** A loss: what happens, what the refusal says, what verify says before it is adopted. */
  interface Loss {
    readonly name: string;
    readonly says: string;
    readonly finds: readonly string[];
    lose(desk: LogDesk): Promise<void> | void;
  }

  const lostKeys: readonly Loss[] = [
    {
      name: 'the private key is gone',
      says: 'is missing or was replaced',
      finds: ['lost-key'],
      lose: (desk) => rmSync(join(desk.logFolder, 'key.pem')),
    },
    {
      name: 'the private key is another one',
      says: 'is missing or was replaced',
      finds: ['lost-key'],
      lose: (desk) => writeFileSync(join(desk.logFolder, 'key.pem'), generateNoteKey('x').privateKeyPem),
    },
    {
      name: 'the private key is damaged',
      says: 'is missing or was replaced',
      finds: ['lost-key'],
      lose: (desk) => writeFileSync(join(desk.logFolder, 'key.pem'), 'not a key'),
    },
    {
      name: 'the whole folder of the log is gone',
      says: 'This user has no key for the log',
      finds: ['lost-key'],
      lose: (desk) => rmSync(desk.logFolder, { recursive: true }),
    },
    {
      name: 'the public half of the key is gone',
      says: 'is missing or was replaced',
      finds: ['lost-key'],
      lose: (desk) => rmSync(join(desk.logFolder, 'key.pub')),
    },
    {
      name: 'the public half of the key is another one',
      says: 'is missing or was replaced',
      finds: ['foreign', 'foreign-key', 'lost-key'],
      lose: (desk) =>
        writeFileSync(
          join(desk.logFolder, 'key.pub'),
          generateNoteKey(desk.lastSigned.split('\n')[0] ?? '').verifierKey,
        ),
    },
  ];
  const lostMemories: readonly Loss[] = [
    {
      name: 'the memory of what was signed last is gone',
      says: 'it is not known what was signed last',
      finds: ['lost-memory'],
      lose: (desk) => rmSync(desk.memory, { recursive: true }),
    },
    {
      name: 'every file of that memory is damaged',
      says: 'it is not known what was signed last',
      finds: ['lost-memory'],
      lose: (desk) => {
        for (const name of readdirSync(desk.memory)) {
          const path = join(desk.memory, name);
          writeFileSync(path, readFileSync(path, 'latin1').replaceAll('\n', ' '), 'latin1');
        }
      },
    },
  ];
  const otherHistories: readonly Loss[] = [
    {
      name: 'the last row is another one',
      says: 'history was rewritten',
      finds: ['rewritten', 'unpaired'],
      lose: (desk) =>
        desk.tamper((db) => {
          const last = desk.positions().length;
          rewrite(db, (row) => {
            if (row.position === last) row.actor = 'somebody else';
          });
        }),
    },
    {
      name: 'an older copy was restored',
      says: 'an older copy was restored',
      finds: ['older-copy'],
      async lose(desk) {
        desk.copyTo(desk.colibri.path('old.db'));
        await desk.moreWork();
        desk.restore(desk.colibri.path('old.db'));
      },
    },
  ];

  const refuses =
    ({ says, finds, lose }: Loss) =>
    async (desk: LogDesk) => {
      await desk.work();
      await lose(desk);

      const found = await desk.findings();
      const command = await checkpoint(desk);
      const { health, stderr } = await desk.refusalAtStart();

      expect(found).toEqual(finds);
      expect(health.status).toBe('degraded');
      expect(health.log.refused).toContain(says);
      expect(stderr).toContain(says);
      expect(command).toMatchObject({ refused: expect.stringContaining(says) });
      expect(command.note).toBeUndefined();
    };
  const refused = ({ name }: Loss) =>
    `${name}: refused with the reason, in the server and on the command line`;
  for (const loss of lostKeys) proves('checkpoint.lost-key', refused(loss), refuses(loss));
  for (const loss of lostMemories) proves('checkpoint.lost-memory', refused(loss), refuses(loss));
  for (const loss of otherHistories) proves('checkpoint.extends', refused(loss), refuses(loss));

  // All of them go the same way; one of each kind is enough on every change.
  const adoptable = [lostKeys, lostMemories, otherHistories].flatMap((losses) =>
    losses.filter(({ finds }) => !finds.includes('unpaired')).slice(0, tier(1, losses.length)),
  );
  for (const { name, lose } of adoptable)
    proves(
      'checkpoint.adopt',
      `${name}: adopting says what is given up, and the log goes on`,
      async (desk) => {
        await desk.work();
        await lose(desk);

        const adopted = await checkpoint(desk, '--adopt');
        await desk.moreWork();
        const verdict = await desk.verify();

        expect(adopted).toMatchObject({ adopted: true, size: expect.any(Number) });
        expect(adopted.given_up?.join(' ')).toMatch(/is accepted as it is|no longer counts/);
        expect(readFileSync(join(desk.logFolder, 'adopted'), 'utf8')).toContain('"reason"');
        expect(desk.colibri.readAudit().rows).toContainEqual(
          expect.objectContaining({ tool: 'owner_adopt', stage: 'exit', outcome: 'ok', source: 'cli' }),
        );
        expect(verdict).toMatchObject({ ok: true, findings: [] });
        expect(verdict.checkpointed_through).toBe(verdict.size);
      },
    );

  proves(
    'checkpoint.adopt',
    'a running server does not hand on a checkpoint that the owner has given up',
    async (desk) => {
      await desk.work();
      const server = await desk.colibri.start();
      const title = { title: 'soon cut off', project: 'demo' };
      const before = metaOf((await server.call('task_create', title)).message.result);
      const last = desk.positions().length;
      desk.tamper((db) => {
        for (const table of ['actions', 'action_payloads'])
          db.exec(`DELETE FROM ${table} WHERE position > ${last - 2}`);
      });
      await server.call('server_ping');
      await checkpoint(desk, '--adopt');
      const other = await desk.colibri.start();
      await other.call('task_list');

      const answers = [await server.call('task_list'), await server.call('task_list')];
      await Promise.all([server.closeInput(), other.closeInput()]);

      expect(before).toBeDefined();
      for (const { message } of answers) expect(metaOf(message.result)).not.toBe(before);
    },
  );

  proves('checkpoint.adopt', 'adopting where nothing was refused gives up nothing', async (desk) => {
    await desk.work();
    const before = readFileSync(join(desk.logFolder, 'key.pub'), 'utf8');

    const adopted = await checkpoint(desk, '--adopt');

    expect(adopted).toMatchObject({ adopted: false, given_up: [] });
    expect(readFileSync(join(desk.logFolder, 'key.pub'), 'utf8')).toBe(before);
  });

  proves(
    'checkpoint.moved',
    'in another folder of the same user the log goes on with its key',
    async (desk) => {
      await desk.work();
      const before = readFileSync(join(desk.logFolder, 'key.pub'), 'utf8');
      renameSync(dirname(desk.dbPath), desk.colibri.path('elsewhere'));
      const env = { COLIBRI_DB_PATH: desk.colibri.path('elsewhere', 'colibri.db') };

      const server = await desk.colibri.start({ env });
      await desk.think(server, 'in the new place');
      await server.closeInput();
      const { stdout } = await runColibri(desk.colibri, ['verify', '--json'], { env });
      const old = await desk.verify();

      expect(server.stderr).not.toContain('nothing is signed');
      expect(JSON.parse(stdout)).toMatchObject({ ok: true, checkpointed_through: sizeIn(desk.lastSigned) });
      expect(readFileSync(join(desk.logFolder, 'key.pub'), 'utf8')).toBe(before);
      expect(old.findings.map(({ kind }) => kind)).toEqual(['missing']);
    },
  );

  proves(
    'checkpoint.moved',
    'on another machine the log is refused until its folder comes along',
    async (desk) => {
      await desk.work();
      const elsewhere = desk.colibri.path('elsewhere');
      mkdirSync(join(elsewhere, 'colibri'), { recursive: true });

      const untouched = desk.colibri.path('untouched.db');
      desk.copyTo(untouched);
      const alone = await desk.refusalAtStart({ XDG_CONFIG_HOME: elsewhere });
      // What was written there without the key stays foreign; here it is the database as it arrived.
      desk.restore(untouched);
      cpSync(desk.colibri.path('config', 'colibri', 'logs'), join(elsewhere, 'colibri', 'logs'), {
        recursive: true,
      });
      const server = await desk.colibri.start({ env: { XDG_CONFIG_HOME: elsewhere } });
      await desk.think(server, 'at home again');
      await server.closeInput();

      expect(alone.health.log.refused).toContain('moved from another machine or user');
      expect(server.stderr).not.toContain('nothing is signed');
      const { stdout } = await runColibri(desk.colibri, ['verify', '--json'], {
        env: { XDG_CONFIG_HOME: elsewhere },
      });
      expect(JSON.parse(stdout)).toMatchObject({ ok: true });
    },
  );

  proves(
    'checkpoint.copies',
    'of two copies with one key, the one that signs second is refused',
    async (desk) => {
      await desk.work();
      const copy = desk.colibri.path('copy.db');
      desk.copyTo(copy);
      const env = desk.placed(copy);
      await desk.moreWork('in the original');
      const second = await desk.colibri.start({ env });
      await desk.think(second, 'in the copy, one');
      await second.closeInput();

      const { health } = await desk.refusalAtStart(env);
      const { stdout } = await desk.run('verify', '--json', copy);

      expect(second.stderr).toContain('nothing is signed');
      expect(second.stderr).toContain('cut off, or an older copy was restored');
      expect(health.log.refused).toContain('did not sign');
      expect(JSON.parse(stdout)).toMatchObject({ ok: false });
      expect((await desk.verify()).ok).toBe(true);
    },
  );

  proves(
    ['checkpoint.replaced', 'checkpoint.adopt'],
    'a deleted database is not quietly begun anew',
    async (desk) => {
      await desk.work();
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${desk.dbPath}${suffix}`, { force: true });

      const gone = await desk.verify();
      const { health } = await desk.refusalAtStart();
      const adopted = await checkpoint(desk, '--adopt');
      await desk.colibri.start().then((server) => server.closeInput());

      expect(gone.findings).toEqual([expect.objectContaining({ kind: 'missing' })]);
      expect(health.log.refused).toContain('is now an empty one');
      expect(adopted).toMatchObject({ adopted: true });
      expect((await desk.verify()).findings).toEqual([]);
    },
  );
});

async function checkpoint(desk: LogDesk, ...args: string[]): Promise<CheckpointJson> {
  const { stdout, stderr } = await desk.run('checkpoint', '--json', ...args);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as CheckpointJson;
}

function metaOf(result: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return (result?._meta as Record<string, string> | undefined)?.['colibri/checkpoint'];
}

/** The newest head as the database keeps it. */
function headRow(desk: LogDesk): { size: number; chain_hash: string; at: string } {
  return withDatabase(desk.dbPath, (db) => {
    const row = db.prepare('SELECT size, chain_hash, at FROM log_heads').get();
    return row as { size: number; chain_hash: string; at: string };
  });
}

/** RFC 6962, 2.1, word for word. */
function rootOver(leaves: readonly string[]): string {
  const [only = '', ...more] = leaves;
  if (more.length === 0) return only;
  const half = 2 ** Math.ceil(Math.log2(leaves.length) - 1);
  return nodeOver('01', rootOver(leaves.slice(0, half)) + rootOver(leaves.slice(half)));
}

function nodeOver(prefix: string, hex: string): string {
  return createHash('sha256')
    .update(Buffer.from(prefix + hex, 'hex'))
    .digest('hex');
}

/** C2SP signed-note and tlog-checkpoint, read once more from their texts alone. */
function openStrictly(note: string, vkey: string): { origin: string; size: number } {
  const match =
    /^([^\n]+)\n(0|[1-9]\d*)\n([A-Za-z0-9+/]{43}=)\n\n\u2014 ([^ \n+]+) ([A-Za-z0-9+/]+=*)\n$/.exec(note);
  if (match === null) throw new Error('not a checkpoint in one signed note');
  const [, origin = '', size, , name, base64 = ''] = match;
  const key = Buffer.from(vkey.split('+').slice(2).join('+'), 'base64');
  const id = createHash('sha256').update(`${name}\n`).update(key).digest().subarray(0, 4);
  const signature = Buffer.from(base64, 'base64');
  if (key[0] !== 1 || name !== origin || !signature.subarray(0, 4).equals(id)) throw new Error('another key');
  const publicKey = createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: key.subarray(1).toString('base64url') },
  });
  const text = Buffer.from(note.slice(0, note.indexOf('\n\n') + 1));
  if (!verifySignature(null, text, publicKey, signature.subarray(4)))
    throw new Error('the signature is wrong');
  return { origin, size: Number(size) };
}
