import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect } from 'vitest';
import { recomputeSums } from '../../src/__tests__/export/evidence.ts';
import { formatTlogProof } from '../../src/integrity/checkpoint.ts';
import { sha256Hex } from '../../src/integrity/digest.ts';
import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { generateNoteKey } from '../../src/integrity/signed-note.ts';
import { leafHash } from '../../src/integrity/tree.ts';
import {
  anchorEverywhere,
  fetchCheckpoints,
  pushCheckpoints,
  repository,
  timeStampAuthority,
} from '../driver/anchor-places.ts';
import { sha256 } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { tier } from '../driver/tier.ts';
import { contentOf } from '../driver/transfer.ts';
import { type LogDesk, proves } from './log-desk.ts';

describe('colibri verify', () => {
  proves(
    'detect.read-only',
    'changes no byte of the database, its key folder or what is remembered of it',
    async (desk) => {
      await desk.work();
      const before = digests(desk);

      await desk.verify();

      expect(digests(desk)).toEqual(before);
    },
  );

  proves(
    'detect.read-only',
    'finds nothing wrong in calls on tasks of any number or of no tool',
    async (desk) => {
      const server = await desk.colibri.start();
      for (const name of ['', 5, undefined]) await server.request('tools/call', { name, arguments: {} });
      for (const number of [1, 2 ** 31, 2 ** 32, 5_000_000_000, Number.MAX_SAFE_INTEGER])
        await server.call('task_update', { task_id: `T-${String(number).padStart(4, '0')}`, progress: 1 });
      await server.closeInput();

      expect((await desk.verify()).findings).toEqual([]);
    },
  );

  proves('tree.hex', 'every hash that tools, verdicts and bundles show is lowercase hex', async (desk) => {
    const server = await desk.colibri.start();
    const answers = [
      await server.call('task_create', { title: 'a', project: 'demo' }),
      await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' }),
      await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' }),
      await server.call('merkle_root', { session_id: 'A-0001' }),
      await server.call('merkle_finalize', { session_id: 'A-0001' }),
      await server.call('audit_verify_chain', { session_id: 'A-0001', full_trace: true }),
    ].map(({ envelope }) => JSON.stringify(envelope));
    await server.closeInput();
    const commands = [
      ['verify', '--json'],
      ['show', 'A-0001', '--json'],
      ['prove', 'A-0001', '-o', '-'],
    ];
    const printed = await Promise.all(commands.map(async (args) => (await desk.run(...args)).stdout));

    const hashes = [...answers, ...printed].join().match(/\b[0-9a-fA-F]{64}\b/g) ?? [];

    expect(hashes.length).toBeGreaterThan(20);
    expect(hashes.filter((hash) => /[A-F]/.test(hash))).toEqual([]);
  });

  proves('detect.read-only', 'works while servers write, and finds nothing wrong', async (desk) => {
    await desk.work();
    const server = await desk.colibri.start();
    let busy = true;
    const writing = (async () => {
      for (let i = 0; busy; i += 1) await desk.think(server, `thought ${i}`);
    })();

    const verdicts = [];
    for (let i = 0; i < 6; i += 1) {
      await desk.run('checkpoint');
      verdicts.push(await desk.verify());
    }
    busy = false;
    await writing;

    for (const verdict of verdicts) expect(verdict).toMatchObject({ ok: true, findings: [] });
    await server.closeInput();
  });

  proves('verdict.ranges', 'tells people the ranges, and that nothing is wrong', async (desk) => {
    await desk.work();

    const { code, stdout } = await desk.run('verify');

    expect(code).toBe(0);
    for (const range of [
      'intact through',
      'replayed through',
      'checkpointed through',
      'anchored through',
      'unanchored tail',
    ])
      expect(stdout).toContain(range);
    expect(stdout).toContain('Nothing is wrong.');
  });

  proves(
    'verdict.exit',
    'shows people the first twenty findings and the count, and programs all of them',
    async (desk) => {
      await desk.work();
      for (let i = 0; i < 5; i += 1) await desk.moreWork();
      desk.tamper((db) => db.exec(`UPDATE actions SET chain = content`));

      const people = await desk.run('verify');
      const { findings } = await desk.verify();

      const lines = people.stdout.split('\n').filter((line) => line.startsWith('unlinked'));
      expect(people.code).toBe(1);
      expect(findings.filter(({ kind }) => kind === 'unlinked')).toHaveLength(desk.positions().length);
      expect(lines).toHaveLength(20);
      expect(people.stdout).toContain(`and ${findings.length - 20} more`);
    },
  );

  proves('detect.bits', 'a damaged file is a finding, wherever the damage is', async (desk) => {
    await desk.work();
    const copy = desk.colibri.path('good.db');
    desk.copyTo(copy);
    const pages = statSync(copy).size / 4096;

    for (let page = 0; page < pages; page += tier(16, 1)) {
      desk.restore(copy);
      overwrite(desk.dbPath, page * 4096 + (page === 0 ? 100 : 0), 512);
      const { code, stdout, stderr } = await desk.run('verify', '--json');
      expect(stdout, `page ${page}: ${stderr}`).not.toBe('');
      const { findings } = JSON.parse(stdout) as { findings: unknown[] };
      expect(findings, `page ${page}`).not.toEqual([]);
      expect(code).toBe(1);
    }
    desk.restore(copy);
    overwrite(desk.dbPath, 0, 4096);
    expect((await desk.verify()).findings).toEqual([expect.objectContaining({ kind: 'damaged' })]);
  });

  proves(
    'verdict.exit',
    'is used wrongly with a file that is nothing it knows, a key that is none, a checkpoint that is none',
    async (desk) => {
      await desk.work();
      const text = desk.colibri.path('notes.txt');
      writeFileSync(text, 'shopping list');

      for (const args of [
        [text],
        [desk.colibri.path('nowhere')],
        ['--key', 'not a key'],
        ['--against', 'not a checkpoint'],
        ['--unknown'],
      ])
        expect((await desk.run('verify', ...args)).code, args.join(' ')).toBe(2);
    },
  );

  proves(
    'verdict.against',
    '--against takes a note file, a proof, and the text itself, with or without its last newline',
    async (desk) => {
      await desk.work();
      const note = desk.lastSigned;
      const size = Number(note.split('\n')[1]);
      await desk.moreWork();
      const file = desk.colibri.path('kept.note');
      const proof = desk.colibri.path('kept.tlog-proof');
      writeFileSync(file, note);
      writeFileSync(proof, await proofOf(desk, 4, size, note));

      for (const form of [
        file,
        proof,
        note,
        note.trimEnd(),
        JSON.stringify(note),
        note.replaceAll('\n', '\\n'),
      ]) {
        const { against, code } = await desk.verify('--against', form);
        expect([against?.verdict, code], form).toEqual(['consistent', 0]);
      }
    },
  );

  proves(
    ['verdict.against', 'log-tree.inclusion'],
    'a proof of another record than the one that stands there is a finding',
    async (desk) => {
      await desk.work();
      const note = desk.lastSigned;
      const proof = desk.colibri.path('kept.tlog-proof');
      const size = Number(note.split('\n')[1]);
      writeFileSync(proof, (await proofOf(desk, 4, size, note)).replace('index 4', 'index 5'));

      const { findings } = await desk.verify('--against', proof);

      expect(findings).toEqual([expect.objectContaining({ kind: 'altered', record: '#6' })]);
    },
  );

  proves(
    'verdict.key',
    '--key decides whom to believe; without any, the key that the name of the log belongs to is, and that is said',
    async (desk) => {
      await desk.work();
      const key = readFileSync(`${desk.logFolder}/key.pub`, 'utf8').trim();
      const stranger = { env: { XDG_CONFIG_HOME: desk.colibri.path('nobody') } };
      const run = async (...args: string[]) =>
        JSON.parse((await runColibri(desk.colibri, ['verify', '--json', ...args], stranger)).stdout);

      const without = await run();
      const given = await run('--key', key);

      const other = await run('--key', generateNoteKey(key.split('+')[0] ?? '').verifierKey);

      expect(without).toMatchObject({ ok: true, checkpointed_through: desk.positions().length });
      expect(without.remarks.join(' ')).toContain('No key was given');
      expect(other).toMatchObject({ ok: false, checkpointed_through: 0 });
      expect(given).toMatchObject({ ok: true, checkpointed_through: desk.positions().length });
    },
  );
});

describe('colibri verify of what was taken out of the database', () => {
  proves(
    ['verdict.key', 'verdict.exit'],
    'a bundle and a proof hold, under the right key only, and a changed one does not',
    async (desk) => {
      await desk.work();
      const key = `${desk.logFolder}/key.pub`;
      const [bundle, proof] = [desk.colibri.path('bundle'), desk.colibri.path('proof')];
      await desk.run('export', '-o', bundle);
      await desk.run('prove', 'T-0001', '-o', proof);
      const other = desk.colibri.path('other.pub');
      writeFileSync(other, generateNoteKey(desk.lastSigned.split('\n')[0] ?? '').verifierKey);

      const good = await Promise.all([bundle, proof].map((path) => desk.run('verify', path, '--key', key)));
      const wrongKey = await Promise.all(
        [bundle, proof].map((path) => desk.run('verify', path, '--key', other)),
      );
      const rows = `${bundle}/log.jsonl`;
      writeFileSync(rows, readFileSync(rows, 'utf8').replace('contract-test', 'somebody-else'));
      const changed = await desk.run('verify', bundle, '--json');

      expect(good.map(({ code }) => code)).toEqual([0, 0]);
      expect(wrongKey.map(({ code }) => code)).toEqual([1, 1]);
      expect(changed.code).toBe(1);
      expect(JSON.parse(changed.stdout)).toMatchObject({ ok: false, what: 'bundle' });
    },
  );
});

describe('colibri verify of a bundle or a certificate, and what lies outside of it', () => {
  interface Carried {
    readonly ok: boolean;
    readonly anchored_through: number;
    readonly anchored_by: readonly string[];
    readonly unanchored_tail: number;
    readonly key_from: string;
    readonly anchors: readonly {
      readonly kind: string;
      readonly checked: boolean;
      readonly check?: string;
    }[];
    readonly findings: readonly { readonly kind: string; readonly message: string }[];
  }

  async function judge(
    desk: LogDesk,
    args: readonly string[],
    where: Parameters<typeof runColibri>[2] = {},
  ): Promise<Carried> {
    const { stdout, stderr } = await runColibri(desk.colibri, ['verify', '--json', ...args], where);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as Carried;
  }

  /** Somebody who has never seen the log, in a folder of his own. */
  function stranger(desk: LogDesk) {
    const cwd = desk.colibri.path('stranger');
    mkdirSync(join(cwd, '.colibri'), { recursive: true });
    // His folder lies in the playground, which is a repository: git must not look above it.
    const env = {
      XDG_CONFIG_HOME: join(cwd, 'config'),
      COLIBRI_DATABASE_URL: '',
      COLIBRI_DB_PATH: join(cwd, 'none.db'),
      GIT_CEILING_DIRECTORIES: desk.colibri.folder,
    };
    return { cwd, env };
  }

  proves(
    ['bundle.anchors', 'verdict.ranges'],
    'an anchor is named with how to check it, and counts only where it was found',
    async (desk) => {
      await desk.work();
      const { git, authority } = await anchorEverywhere(desk.colibri);
      const anchored = desk.positions().length;
      await desk.moreWork();
      const [bundle, proof] = [desk.colibri.path('bundle.zip'), desk.colibri.path('proof.json')];
      await desk.run('export', '-o', bundle);
      await desk.run('prove', 'Θ-0001', '-o', proof);
      const alone = stranger(desk);
      const clone = { ...alone, cwd: desk.colibri.path('clone') };
      git('clone', '-q', '--no-local', desk.colibri.folder, clone.cwd);
      const notFetched = await judge(desk, [bundle], clone);
      fetchCheckpoints(git, clone.cwd);
      const wrong = timeStampAuthority(desk.colibri, 'wrong');

      const unchecked = await judge(desk, [bundle], alone);
      const inClone = await judge(desk, [bundle], clone);
      const stamped = await judge(desk, [bundle, '--ca', authority.certificate], alone);
      const forged = await judge(desk, [bundle, '--ca', wrong.certificate], alone);
      const certificate = await judge(desk, [proof, '--ca', authority.certificate], clone);
      const people = await runColibri(desk.colibri, ['verify', bundle], alone);

      for (const verdict of [unchecked, notFetched]) {
        expect(verdict).toMatchObject({ ok: true, anchored_through: 0, anchored_by: [] });
        expect(verdict.anchors.map(({ kind, checked }) => [kind, checked]).sort()).toEqual([
          ['git', false],
          ['tsr', false],
        ]);
      }
      expect(people.stdout).toContain(
        `git cat-file commit ${git('rev-parse', 'refs/colibri/checkpoints').trim()}`,
      );
      expect(people.stdout).toContain('Not checked here: time stamp claiming 20');
      expect(people.stdout).not.toMatch(/^(?:Pushed|Time-stamped):/m);
      expect(inClone).toMatchObject({ ok: true, anchored_through: anchored, anchored_by: ['git'] });
      expect(inClone.unanchored_tail).toBe(2);
      expect(stamped).toMatchObject({ ok: true, anchored_through: anchored, anchored_by: ['tsr'] });
      expect(forged).toMatchObject({ ok: false, anchored_through: 0 });
      expect(forged.findings).toEqual([expect.objectContaining({ kind: 'bad-anchor' })]);
      expect(certificate.anchors.map(({ checked }) => checked)).toEqual([true, true]);
    },
  );

  proves(
    ['bundle.anchors', 'anchor.stamp'],
    'a token made anew for a rewritten bundle does not stand before its authority',
    async (desk) => {
      await desk.work();
      const { authority } = await anchorEverywhere(desk.colibri);
      const folder = desk.colibri.path('bundle');
      await desk.run('export', '-o', folder);
      const [name = ''] = readdirSync(join(folder, 'anchors')).filter((file) => file.endsWith('.tsr'));
      const token = readFileSync(join(folder, 'anchors', name));
      // The last byte is of the signature: nothing but the authority's certificate can tell.
      token.writeUInt8(token.readUInt8(token.length - 1) ^ 1, token.length - 1);
      rmSync(join(folder, 'anchors', name));
      writeFileSync(join(folder, 'anchors', `${sha256Hex(token)}.tsr`), token);
      recomputeSums(folder);

      const unnamed = await judge(desk, [folder], stranger(desk));
      const named = await judge(desk, [folder, '--ca', authority.certificate], stranger(desk));

      expect(unnamed).toMatchObject({ ok: true, anchored_through: 0 });
      expect(named.findings).toEqual([expect.objectContaining({ kind: 'bad-anchor' })]);
    },
  );

  proves(
    'verdict.key',
    'the key that came along is said to have come along, and held against the one known',
    async (desk) => {
      await desk.work();
      const [bundle, proof] = [desk.colibri.path('bundle'), desk.colibri.path('proof.json')];
      await desk.run('export', '-o', bundle);
      await desk.run('prove', 'T-0001', '-o', proof);
      const key = join(desk.logFolder, 'key.pub');
      const own = readFileSync(key, 'utf8');
      const [origin = '', id = ''] = own.split('+');
      const other = `${generateNoteKey(origin).verifierKey}\n`;

      const strange = await Promise.all([bundle, proof].map((path) => judge(desk, [path], stranger(desk))));
      const told = await runColibri(desk.colibri, ['verify', bundle], stranger(desk));
      const known = await Promise.all([bundle, proof].map((path) => judge(desk, [path])));
      const given = await judge(desk, [bundle, '--key', own.trim()]);
      writeFileSync(key, other);
      const differs = await Promise.all([bundle, proof].map((path) => judge(desk, [path])));
      const believed = await judge(desk, [bundle, '--key', own.trim()]);

      expect(strange.map(({ ok, key_from }) => [ok, key_from])).toEqual(Array(2).fill([true, 'bundle']));
      expect(told.stdout).toContain(`Signed by key ${id}, which came with it`);
      expect(known.map(({ ok, key_from }) => [ok, key_from])).toEqual(Array(2).fill([true, 'known']));
      expect(given).toMatchObject({ ok: true, key_from: '--key' });
      for (const verdict of differs) {
        expect(verdict).toMatchObject({ ok: false, key_from: 'known' });
        expect(verdict.findings.map(({ kind }) => kind)).toContain('foreign-key');
      }
      expect(believed).toMatchObject({ ok: true, key_from: '--key' });
    },
  );

  proves('verdict.exit', '--ca is for a bundle or a proof, and names a file', async (desk) => {
    await desk.work();
    await desk.run('export', '-o', desk.colibri.path('bundle'));

    for (const args of [
      ['--ca', 'x'],
      [desk.colibri.path('bundle'), '--ca', desk.colibri.path('nowhere')],
    ])
      expect((await desk.run('verify', ...args)).code, args.join(' ')).toBe(2);
  });
});

describe('colibri anchor', () => {
  proves(
    'anchor.git',
    '--git commits to a reference of its own and touches nothing else; verify finds it',
    async (desk) => {
      const git = repository(desk.colibri);
      await desk.work();
      git('commit', '--allow-empty', '-qm', 'start');
      writeFileSync(desk.colibri.path('staged'), 'x');
      git('add', 'staged');
      const before = [git('rev-parse', 'HEAD'), git('status', '--porcelain', '-uno'), git('write-tree')];

      const first = await desk.run('anchor', '--git');
      await desk.moreWork();
      const second = await desk.run('anchor', '--git', '--json');
      const prepared = await desk.verify();
      pushCheckpoints(desk.colibri, git);
      const verdict = await desk.verify();

      expect(first.code, first.stderr).toBe(0);
      expect(first.stdout).toContain('git push origin refs/colibri/checkpoints');
      // V12: a commit that no remote is known to have protects nothing.
      expect(prepared).toMatchObject({ ok: true, anchored_by: [], anchored_through: 0 });
      expect([git('rev-parse', 'HEAD'), git('status', '--porcelain', '-uno'), git('write-tree')]).toEqual(
        before,
      );
      expect(git('rev-list', '--count', 'refs/colibri/checkpoints').trim()).toBe('2');
      expect(git('log', '-1', '--format=%B', 'refs/colibri/checkpoints')).toContain(desk.lastSigned.trim());
      expect(JSON.parse(second.stdout)).toMatchObject({ already: false });
      expect(verdict).toMatchObject({ ok: true, anchored_by: ['git'], unanchored_tail: 0 });
    },
  );

  proves('anchor.git', '--git works in a further worktree, and moves no branch', async (desk) => {
    const git = repository(desk.colibri);
    await desk.work();
    git('commit', '--allow-empty', '-qm', 'start');
    git('worktree', 'add', '-q', 'second');
    const cwd = desk.colibri.path('second');

    const there = await runColibri(desk.colibri, ['anchor', '--git'], { cwd });

    expect(there.code, there.stderr).toBe(0);
    expect(git('rev-list', '--count', 'refs/colibri/checkpoints').trim()).toBe('1');
    expect(git('rev-parse', 'second')).toBe(git('rev-parse', 'HEAD'));
  });

  proves(
    ['anchor.git', 'detect.older-copy'],
    'an older copy put back after a newer one was committed is found in git, also by whoever knows nothing else of the log',
    async (desk) => {
      repository(desk.colibri);
      await desk.work();
      await desk.run('anchor', '--git');
      const copy = desk.colibri.path('old.db');
      desk.copyTo(copy);
      await desk.moreWork();
      await desk.run('anchor', '--git');
      desk.restore(copy);

      const known = await desk.findings();
      const stranger = { env: { XDG_CONFIG_HOME: desk.colibri.path('nobody') } };
      const { stdout } = await runColibri(desk.colibri, ['verify', '--json'], stranger);

      expect(known).toEqual(['older-copy']);
      expect((JSON.parse(stdout) as { findings: object[] }).findings).toEqual([
        expect.objectContaining({
          kind: 'older-copy',
          record: expect.stringContaining('refs/colibri/checkpoints'),
        }),
      ]);
    },
  );

  proves(
    ['anchor.file', 'verdict.ranges'],
    '--file keeps a copy, renews it, and never overwrites anything else',
    async (desk) => {
      await desk.work();
      const kept = desk.colibri.path('kept');
      const other = desk.colibri.path('other');
      writeFileSync(other, 'mine');

      // N6: whoever can change the database can change a file beside it.
      const beside = await desk.run('anchor', '--file', join(dirname(desk.dbPath), 'checkpoint'));
      const listed = await desk.run('anchor', '--list');
      const prepared = await desk.verify();
      await desk.run('anchor', '--file', kept);
      await desk.moreWork();
      const partly = await desk.verify();
      await desk.run('anchor', '--file', kept);
      const refused = await desk.run('anchor', '--file', other);

      if (desk.colibri.isOnFile) {
        expect(beside.stdout).toContain('It is only prepared');
        expect(listed.stdout).toMatch(/^prepared +\d+ +file/m);
        expect(prepared).toMatchObject({ ok: true, anchored_by: [], anchored_through: 0 });
      }
      expect(partly).toMatchObject({ ok: true, anchored_by: ['file'] });
      expect(partly.unanchored_tail).toBe(partly.size - partly.anchored_through);
      expect(partly.unanchored_tail).toBeGreaterThan(0);
      expect((await desk.verify()).unanchored_tail).toBe(0);
      expect(refused.code).toBe(2);
      expect(readFileSync(other, 'utf8')).toBe('mine');
    },
  );

  proves(
    'anchor.stamp',
    '--tsq and --tsr: a token counts once its authority is named, and not with a wrong one',
    async (desk) => {
      await desk.work();
      const at = (name: string) => desk.colibri.path(name);
      const authority = timeStampAuthority(desk.colibri, 'good');
      const wrong = timeStampAuthority(desk.colibri, 'wrong');

      const asked = await desk.run('anchor', '--tsq', at('q.tsq'));
      authority.answer(at('q.tsq'), at('a.tsr'));
      await desk.moreWork();
      const unnamed = await desk.run('anchor', '--tsr', at('a.tsr'), '--json');
      const before = await desk.verify();
      const refused = await desk.run('anchor', '--tsr', at('a.tsr'), '--ca', wrong.certificate);
      const named = await desk.run('anchor', '--tsr', at('a.tsr'), '--ca', authority.certificate, '--json');
      const after = await desk.verify();

      expect(asked.code, asked.stderr).toBe(0);
      expect(JSON.parse(unnamed.stdout)).toMatchObject({ checked: 'imprint' });
      expect(before).toMatchObject({ ok: true, anchored_by: [] });
      expect(before.remarks.join(' ')).toContain('its authority was not checked');
      expect(refused.code).toBe(1);
      expect(JSON.parse(named.stdout)).toMatchObject({ checked: 'authority' });
      expect(after).toMatchObject({ ok: true, anchored_by: ['tsr'] });
      expect(after.anchored_through).toBeGreaterThan(0);
    },
  );

  proves(
    'anchor.stamp',
    'a token of something else is refused, and one put beside the database is a finding',
    async (desk) => {
      await desk.work();
      const at = (name: string) => desk.colibri.path(name);
      const authority = timeStampAuthority(desk.colibri, 'good');
      writeFileSync(at('else'), 'something else');
      spawnSync('openssl', ['ts', '-query', '-data', at('else'), '-sha256', '-cert', '-out', at('e.tsq')]);
      authority.answer(at('e.tsq'), at('e.tsr'));
      await desk.run('anchor', '--tsq', at('q.tsq'));

      const refused = await desk.run('anchor', '--tsr', at('e.tsr'));
      writeFileSync(`${desk.dbPath}.anchors/${desk.positions().length}.tsr`, readFileSync(at('e.tsr')));

      expect(refused.code).toBe(1);
      expect(await desk.findings()).toEqual(['bad-anchor']);
    },
  );

  proves(
    ['anchor.git', 'anchor.stamp'],
    'says what is missing where git or openssl is not installed, and takes one place at a time',
    async (desk) => {
      await desk.work();
      const nothing = { env: { PATH: desk.colibri.path('empty') } };

      const git = await runColibri(desk.colibri, ['anchor', '--git'], nothing);
      const openssl = await runColibri(desk.colibri, ['anchor', '--tsq', desk.colibri.path('q')], nothing);
      const verify = await runColibri(desk.colibri, ['verify'], nothing);

      expect(git.stderr).toContain('git was not found');
      expect(openssl.stderr).toContain('openssl was not found');
      expect(verify.code).toBe(0);
      for (const args of [[], ['--git', '--file', 'x'], ['--git', '--ca', 'x'], ['--tsr', 'nowhere']])
        expect((await desk.run('anchor', ...args)).code, args.join(' ')).toBe(2);
    },
  );
});

function digests(desk: LogDesk): string[] {
  const { isOnFile, dbPath } = desk.colibri;
  const folders = [...(isOnFile ? [dirname(dbPath)] : []), desk.logFolder, desk.memory];
  const entries = folders.flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true }).filter(
      (entry) => entry.isFile() && !/-(wal|shm)$/.test(entry.name),
    ),
  );
  const files = entries.map(
    ({ parentPath, name }) => `${name} ${sha256(readFileSync(join(parentPath, name), 'latin1'))}`,
  );
  // Of a database on a server, every row of every table.
  return isOnFile ? files : [...files, ...[...contentOf(dbPath).values()].flat()];
}

function overwrite(path: string, at: number, length: number): void {
  const fd = openSync(path, 'r+');
  writeSync(fd, Buffer.alloc(length, 0xa5), 0, length, at);
  closeSync(fd);
}

async function proofOf(desk: LogDesk, index: number, size: number, checkpoint: string): Promise<string> {
  const leaves = desk.colibri
    .readAudit()
    .entries.slice(0, size)
    .map((entry) => leafHash(entry.content_hash));
  return formatTlogProof({
    index,
    checkpoint,
    proof: await inclusionProof(nodesInMemory(leaves), index, size),
  });
}
