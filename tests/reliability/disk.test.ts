import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { startColibri } from '../driver/command-line.ts';
import { backup, type Database, openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { sleepMs } from '../driver/server-process.ts';
import { figure, tier } from '../driver/tier.ts';
import { battery, noMount, noPython, run } from './battery.ts';
import { Checker } from './checker.ts';
import { preciseCode, Recorder, writeChapters } from './recorder.ts';

const checker = noPython === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

const TASK = { title: 'a task', project: 'demo', description: 'words '.repeat(300) };

battery(
  'R11',
  'on a full disk writing calls say so and nothing is half written; reads go on; with room again the next call works',
  async (colibri) => {
    const data = mountTmpfs(colibri, '2m');
    const server = await colibri.start();
    const recorder = new Recorder(server);
    await recorder.data('task_create', TASK);
    writeFileSync(join(data, 'ballast'), Buffer.alloc(900_000));

    let calls = 1;
    for (let code = 'none'; code !== 'ERR_STORAGE_FULL' && calls < 500; calls += 1) {
      const { error } = await recorder.call('task_create', TASK);
      code = error === undefined ? 'none' : preciseCode(error);
      expect(['none', 'ERR_STORAGE_FULL']).toContain(code);
    }
    const again = await recorder.call('task_update', { task_id: 'T-0001', status: 'todo' });
    const ping = await server.call('server_ping');
    const read = await server.call('task_get', { task_id: 'T-0001' });
    const trail = await startColibri(colibri, ['verify', '--json']);
    run('mount', '-o', 'remount,size=16m', data);
    const after = await recorder.call('task_update', { task_id: 'T-0001', status: 'todo' });
    const exit = await server.closeInput();

    figure('R11', { calls_until_full: calls });
    expect(again.error?.message).toMatch(/^ERR_STORAGE_FULL: /);
    expect(ping.envelope?.ok).toBe(true);
    expect(read.envelope?.data).toMatchObject({ task_id: 'T-0001', status: 'backlog' });
    expect(JSON.parse(trail.stdout), trail.stderr).toMatchObject({ findings: [] });
    expect(server.stderr).toMatch(/could not be recorded/);
    expect(after.error).toBeUndefined();
    expect(exit.code).toBe(0);
    const next = await colibri.start();
    await next.call('server_ping');
    await next.closeInput();
    // A call refused for want of room may have left no trace, for want of room.
    const acked = recorder.acked.filter((call) => 'data' in call);
    const verdict = await checker?.judge({ db: colibri.dbPath, acked, settled: true });
    expect(verdict?.findings).toEqual([]);
    expect(verdict?.ok).toBe(acked.length);
  },
  { unless: noMount ?? noPython },
);

battery(
  'R12',
  'a start on a full disk degrades with the path and the remedy, and a later start with room works',
  async (colibri) => {
    const data = mountTmpfs(colibri, '1m');
    fill(data);

    const server = await colibri.start();
    const health = await server.call('server_health');
    const exit = await server.closeInput();
    rmSync(join(data, 'ballast'));
    const next = await colibri.start();
    const created = await next.call('task_create', TASK);

    expect(health.envelope?.data).toMatchObject({
      status: 'degraded',
      db: { open: false, reason: expect.stringMatching(/full|room/) },
    });
    expect(server.stderr).toContain(colibri.dbPath);
    expect(exit.code).toBe(0);
    expect(created.error).toBeUndefined();
  },
  { unless: noMount },
);

battery(
  'R12',
  'in a folder that cannot be written nothing is created, and the reason names the path',
  async (colibri) => {
    mkdirSync(dirname(colibri.dbPath));
    remountReadOnly(colibri, dirname(colibri.dbPath));

    const server = await colibri.start();
    const { envelope } = await server.call('server_health');

    expect(envelope?.data).toMatchObject({
      status: 'degraded',
      db: { open: false, reason: expect.stringContaining(colibri.dbPath) },
    });
    expect(readdirSync(dirname(colibri.dbPath))).toEqual([]);
  },
  { unless: noMount },
);

for (const left of ['closed', 'killed'] as const) {
  battery(
    'R12',
    `a database on read-only media, its last server ${left}: FULL degrades, READONLY answers reads, no byte changes`,
    async (colibri) => {
      const server = await colibri.start();
      await server.call('task_create', TASK);
      await (left === 'closed' ? server.closeInput() : server.killHard());
      remountReadOnly(colibri, dirname(colibri.dbPath));
      const before = digestsOf(colibri);

      const full = await colibri.start();
      const fullHealth = await full.call('server_health');
      await full.closeInput();
      const readOnly = await colibri.start({ env: { COLIBRI_MODE: 'READONLY' } });
      const task = await readOnly.call('task_get', { task_id: 'T-0001' });
      const health = await readOnly.call('server_health');
      await readOnly.closeInput();

      expect(fullHealth.envelope?.data).toMatchObject({ status: 'degraded' });
      expect(task.error).toBeUndefined();
      expect(task.envelope?.data).toMatchObject({ task_id: 'T-0001' });
      expect(health.envelope?.data).toMatchObject({ status: 'ok', db: { open: true, writable: false } });
      expect(digestsOf(colibri)).toEqual(before);
    },
    { unless: noMount },
  );
}

/** Files that were Colibri's, with one thing that this version does not know. */
const STRANGE: Readonly<Record<string, (db: Database) => void>> = {
  'a newer version': (db) => db.pragma('user_version = 9999'),
  'another application_id': (db) => db.pragma('application_id = 1'),
};

for (const [what, change] of Object.entries(STRANGE)) {
  for (const mode of ['FULL', 'READONLY'] as const) {
    battery('R13', `a file with ${what} is refused in ${mode}, byte for byte untouched`, async (colibri) => {
      await aUsedFile(colibri, change);
      const before = digestsOf(colibri);

      const server = await colibri.start({ env: { COLIBRI_MODE: mode } });
      const { envelope } = await server.call('server_health');
      const refused = await server.call('task_get', { task_id: 'T-0001' });
      await server.closeInput();

      expect(envelope?.data).toMatchObject({ status: 'degraded', db: { open: false } });
      expect(refused.error?.message).toMatch(/^ERR_INIT_FAILED: /);
      expect(digestsOf(colibri)).toMatchObject(before);
    });
  }
}

battery('R13', 'nothing is put beside a file of another program', async (colibri) => {
  await aUsedFile(colibri, (db) => db.pragma('application_id = 1'));
  const before = readdirSync(dirname(colibri.dbPath));

  const server = await colibri.start();
  await server.call('server_health');
  await server.closeInput();

  expect(readdirSync(dirname(colibri.dbPath))).toEqual(before);
});

battery('R13', 'a table that is not Colibri’s is named by verify', async (colibri) => {
  await aUsedFile(colibri, (db) => db.exec('CREATE TABLE theirs (a)'));

  const { code, stdout } = await startColibri(colibri, ['verify', '--json']);

  expect(code).toBe(1);
  expect(JSON.parse(stdout).findings).toEqual([
    expect.objectContaining({ message: expect.stringMatching(/theirs/) }),
  ]);
});

/** Ways to copy a database that is being written to. */
const BACKUPS: Readonly<Record<string, (from: string, to: string) => Promise<unknown>>> = {
  'backup()': async (from, to) => {
    const db = openDatabase(from, { readOnly: true });
    await backup(db, to, { rate: 7 });
    db.close();
  },
  'VACUUM INTO': async (from, to) => {
    const db = openDatabase(from, { readOnly: true });
    db.prepare('VACUUM INTO ?').run(to);
    db.close();
  },
};

for (const [name, backup] of Object.entries(BACKUPS)) {
  battery(
    'R16',
    `a copy made by ${name} while servers write opens, verifies and is a prefix (${tier(2, 20)} copies)`,
    async (colibri) => {
      const recorder = new Recorder(await colibri.start());
      await recorder.chapter('first');
      let over = false;
      const writing = (async () => {
        while (!over) await writeChapters(recorder, 2, 1);
      })();
      const copies: { path: string; owed: number }[] = [];

      for (let i = 0; i < tier(2, 20); i += 1) {
        await sleepMs(150);
        const copy = { path: colibri.path(`copy-${i}.db`), owed: recorder.acked.length };
        await backup(colibri.dbPath, copy.path);
        copies.push(copy);
      }
      over = true;
      await writing;

      const chain = chainOf(colibri.dbPath);
      for (const { path, owed } of copies) {
        // What was acked before the copy began is in the copy.
        const verdict = await checker?.judge({ db: path, acked: recorder.acked.slice(0, owed) });
        expect(verdict?.findings).toEqual([]);
        expect(chainOf(path)).toEqual(chain.slice(0, verdict?.rows));
        expect(statSync(path).size).toBeGreaterThan(0);
      }
      const last = copies.at(-1)?.path ?? '';
      const verified = await startColibri(colibri, ['verify', '--json', last]);
      figure('R16', {
        way: name,
        copies: copies.length,
        rows_in_last: chainOf(last).length,
        rows_at_end: chain.length,
      });
      // The user's folder knows of newer rows by now. Nothing else may be wrong with the copy.
      const kinds = (JSON.parse(verified.stdout).findings as { kind: string }[]).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind !== 'older-copy')).toEqual([]);
    },
    { unless: noPython },
  );
}

for (const umask of ['000', '022', '077']) {
  battery(
    'R17',
    `under umask ${umask} everything Colibri keeps, signatures, keys and exports too, is for its owner alone`,
    async (colibri) => {
      const wrapper = ['/bin/sh', '-c', `umask ${umask}; exec "$@"`, 'sh'];
      const server = await colibri.start({ wrapper });
      await new Recorder(server).chapter('a chapter');
      const whileOpen = openToOthers(dirname(colibri.dbPath));
      await server.closeInput();
      const exported = await exportUnder(umask, colibri);

      expect(whileOpen).toEqual([]);
      expect(openToOthers(dirname(colibri.dbPath))).toEqual([]);
      expect(openToOthers(colibri.path('config', 'colibri'))).toEqual([]);
      expect(exported).toEqual([]);
    },
  );
}

/** Exports a bundle with the built command line under a umask; returns what of it others may read. */
async function exportUnder(umask: string, colibri: Playground): Promise<string[]> {
  const { fileURLToPath } = await import('node:url');
  const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
  const folder = colibri.path('bundle');
  execFileSync(
    '/bin/sh',
    ['-c', `umask ${umask}; exec "$@"`, 'sh', process.execPath, cli, 'export', '-o', folder],
    { cwd: colibri.folder, env: colibri.environment, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  return [...openToOthers(folder), ...(isOpen(folder) ? [folder] : [])];
}

function openToOthers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(isOpen);
}

function isOpen(path: string): boolean {
  return (statSync(path).mode & 0o077) !== 0;
}

function chainOf(path: string): unknown[] {
  return withDatabase(path, (db) =>
    db.prepare('SELECT chain_hash FROM audit_rows ORDER BY position').pluck().all(),
  );
}

async function aUsedFile(colibri: Playground, change: (db: Database) => void): Promise<void> {
  const server = await colibri.start();
  await server.call('task_create', TASK);
  await server.closeInput();
  const db = openDatabase(colibri.dbPath);
  change(db);
  db.close();
}

function mountTmpfs(colibri: Playground, size: string): string {
  const folder = dirname(colibri.dbPath);
  mkdirSync(folder);
  run('mount', '-t', 'tmpfs', '-o', `size=${size},mode=700`, 'none', folder);
  colibri.onDispose(() => run('umount', '-l', folder));
  return folder;
}

/** Modes do not stop root; a mount does. */
function remountReadOnly(colibri: Playground, folder: string): void {
  run('mount', '--bind', folder, folder);
  colibri.onDispose(() => run('umount', '-l', folder));
  run('mount', '-o', 'remount,ro,bind', folder);
}

function fill(folder: string): void {
  try {
    writeFileSync(join(folder, 'ballast'), Buffer.alloc(16_000_000));
  } catch {
    // Full is what was wanted.
  }
}

/** Of the database and what lies beside it. The -shm is memory that happens to have a name. */
function digestsOf(colibri: Playground): Record<string, string> {
  const folder = dirname(colibri.dbPath);
  const names = readdirSync(folder).filter(
    (name) => !name.endsWith('-shm') && statSync(join(folder, name)).isFile(),
  );
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
}
