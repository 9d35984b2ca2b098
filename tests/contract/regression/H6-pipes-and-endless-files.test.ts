import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { localHeader } from '../../../src/verify/sources/zip.ts';
import { repository } from '../../driver/anchor-places.ts';
import { runColibri } from '../../driver/command-line.ts';
import type { Playground } from '../../driver/playground.ts';
import { proves } from '../proves.ts';

/** What never ends, or never begins: each makes a reader wait for ever, or fill its memory. */
const ENDLESS: Readonly<Record<string, (path: string) => void>> = {
  'a pipe': (path) => {
    if (spawnSync('mkfifo', [path]).status !== 0) throw new Error('no mkfifo');
  },
  '/dev/zero': (path) => symlinkSync('/dev/zero', path),
};

/** Where files of ours are, were, or are looked for, beside the database and in the workspace. */
function places(colibri: Playground): string[] {
  const beside = ['.checkpoint', '.checkpoints/5', '.anchors/5.note', '.anchors/2.note', '.anchors/2.tsr'];
  return [
    ...beside.map((suffix) => `${colibri.dbPath}${suffix}`),
    ...['.mcp.json', '.gitignore', 'vault/Colibri/.colibri-notes.json', 'vault/Colibri/Tasks/T-0001.md'].map(
      (name) => colibri.path(name),
    ),
  ];
}

for (const [what, put] of Object.entries(ENDLESS)) {
  proves(
    'files.no-hang',
    `H6: with ${what} in every place, a new log is made, every command ends, and the server leaves with its client`,
    async ({ colibri }) => {
      repository(colibri);
      for (const place of places(colibri)) {
        mkdirSync(dirname(place), { recursive: true });
        put(place);
      }
      const server = await colibri.start();
      const { envelope } = await server.call('task_create', { title: 'a', project: 'p' });
      const stopped = await server.closeInput();

      const codes = await Promise.all(
        [
          ['verify'],
          ['log'],
          ['show', 'T-0001'],
          ['doctor'],
          ['export', '-o', colibri.path('bundle')],
          ['prove', 'T-0001', '-o', colibri.path('proof.json')],
          ['report', '-o', colibri.path('report.html')],
          ['obsidian', '--vault', colibri.path('vault')],
          ['init'],
        ].map(async (args) => [args[0], (await runColibri(colibri, args)).code]),
      );

      expect(envelope?.ok).toBe(true);
      expect(stopped.code).toBe(0);
      expect(Object.fromEntries(codes)).toEqual({
        ...{ verify: 0, log: 0, show: 0, doctor: 0, export: 0, prove: 0, report: 0, obsidian: 0 },
        // It is not ours to replace, and the message says what it is.
        init: 2,
      });
    },
  );

  proves(
    'files.no-hang',
    `H6: ${what} as the database, its log, a bundle, a proof, a report or a certificate is refused`,
    async ({ colibri }) => {
      mkdirSync(dirname(colibri.dbPath), { recursive: true });
      const odd = colibri.path('odd');
      put(odd);
      const named = [
        ['verify', odd],
        ['verify', '--against', odd],
        ['verify', colibri.path('odd'), '--ca', odd],
        ['export', '-o', odd],
        ['report', '-o', odd],
        ['anchor', '--file', odd],
        ['anchor', '--tsr', odd],
      ];
      const before = await colibri.start();
      await before.call('task_create', { title: 'a', project: 'p' });
      await before.closeInput();
      const codes = await Promise.all(named.map(async (args) => (await runColibri(colibri, args)).code));
      const asDatabase: unknown[] = [];
      for (const suffix of ['', '-wal', '-shm', '-journal']) {
        rmSync(`${colibri.dbPath}${suffix}`, { force: true });
        put(`${colibri.dbPath}${suffix}`);
        const server = await colibri.start();
        const { error } = await server.call('task_list');
        const { code } = await server.closeInput();
        const verified = await runColibri(colibri, ['verify']);
        asDatabase.push([error?.message.split(':')[0], code, verified.code]);
        rmSync(`${colibri.dbPath}${suffix}`);
      }

      expect(codes.filter((code) => code !== 1 && code !== 2)).toEqual([]);
      expect(asDatabase).toEqual(asDatabase.map(() => ['ERR_INIT_FAILED', 0, 1]));
    },
  );
}

proves(
  'files.no-hang',
  'H6: a pipe in the place of a file in the key folder keeps nobody waiting',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'a', project: 'p' });
    await server.closeInput();
    const [log = ''] = spawnSync('ls', [colibri.path('config', 'colibri', 'logs')], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n');
    for (const name of ['key.pem', 'retired.pub', 'checked', 'anchors.json', 'adopted', 'signed/other']) {
      const path = join(colibri.path('config', 'colibri', 'logs', log), name);
      rmSync(path, { force: true });
      spawnSync('mkfifo', [path]);
    }

    const again = await colibri.start();
    const { envelope } = await again.call('task_create', { title: 'b', project: 'p' });
    const health = await again.call('server_health');
    const { code } = await again.closeInput();
    const verified = await runColibri(colibri, ['verify']);

    expect(envelope?.ok).toBe(true);
    expect(JSON.stringify(health.envelope)).toContain('degraded');
    expect(code).toBe(0);
    expect(verified.code).toBe(1);
  },
);

proves(
  'files.no-hang',
  'H6: init leaves a configuration that is huge, or nested without end, as it is, and says so',
  async ({ colibri }) => {
    const path = colibri.path('.mcp.json');
    mkdirSync(colibri.path('.git'));
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const outcomes: unknown[] = [];
    for (const [text, bytes] of [
      ['{}', 400 * 1_048_576],
      [`{"mcpServers":{},"deep":${deep}}`, undefined],
    ] as const) {
      writeFileSync(path, text);
      if (bytes !== undefined) truncateSync(path, bytes);
      const { code, stderr } = await runColibri(colibri, ['init']);
      outcomes.push([code, stderr.replace(path, '')]);
      expect(statSync(path).size).toBe(bytes ?? text.length);
      expect(existsSync(colibri.path('.colibri'))).toBe(false);
    }

    expect(outcomes).toEqual([
      [2, expect.stringContaining('cannot be read, or is too large')],
      [2, expect.stringContaining('is nested too deeply')],
    ]);
  },
);

proves(
  'files.no-hang',
  'H6: a bundle with a file of terabytes, which takes no room, or with too many files is refused',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'a', project: 'p' });
    await server.closeInput();
    const bundle = colibri.path('bundle');
    const outcomes: unknown[] = [];
    for (const name of [
      'README.txt',
      'verify.html',
      'SHA256SUMS',
      'log.jsonl',
      'texts.jsonl',
      'more.jsonl',
    ]) {
      await runColibri(colibri, ['export', '-o', bundle]);
      writeFileSync(join(bundle, name), '', { flag: 'a' });
      truncateSync(join(bundle, name), 4 * 1_099_511_627_776);
      const { code, stdout } = await runColibri(colibri, ['verify', bundle]);
      outcomes.push([name, code, /take more than|is longer than/.test(stdout)]);
      rmSync(bundle, { recursive: true });
    }
    const zip = colibri.path('many.zip');
    const headers = Array.from({ length: 65_536 }, (_, i) =>
      localHeader({ name: `f${i}`, crc: 0, packed: 0, size: 0 }),
    );
    writeFileSync(zip, Buffer.concat([...headers, Buffer.alloc(30)]));
    const many = await runColibri(colibri, ['verify', zip]);

    expect(outcomes).toEqual(outcomes.map((outcome) => [(outcome as string[])[0], 1, true]));
    expect(many).toMatchObject({ code: 1, stdout: expect.stringContaining('more than 65535 files') });
  },
);

proves(
  ['files.no-hang', 'programs.bounded'],
  'H6: of files that look like time stamps, openssl is asked about a hundred, and the answer says that there are more',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'a', project: 'p' });
    await server.closeInput();
    const [anchors, runs] = [`${colibri.dbPath}.anchors`, colibri.path('runs')];
    mkdirSync(anchors);
    const digest = createHash('sha256').update('note\n').digest();
    for (let size = 1; size <= 300; size += 1) {
      writeFileSync(join(anchors, `${size}.note`), 'note\n');
      writeFileSync(join(anchors, `${size}.tsr`), size <= 150 ? digest : 'junk');
    }
    const real = spawnSync('sh', ['-c', 'command -v openssl'], { encoding: 'utf8' }).stdout.trim();
    mkdirSync(colibri.path('bin'));
    const counting = `#!/bin/sh\necho >> '${runs}'\nexec '${real}' "$@"\n`;
    writeFileSync(colibri.path('bin', 'openssl'), counting, { mode: 0o755 });

    const { stdout } = await runColibri(colibri, ['verify', '--json'], {
      env: { PATH: `${colibri.path('bin')}:${process.env.PATH}` },
    });

    const { findings, remarks } = JSON.parse(stdout) as { findings: unknown[]; remarks: string[] };
    expect(readFileSync(runs, 'utf8')).toHaveLength(100);
    expect(findings).toHaveLength(250);
    expect(remarks).toEqual([expect.stringContaining('were not checked')]);
  },
);
