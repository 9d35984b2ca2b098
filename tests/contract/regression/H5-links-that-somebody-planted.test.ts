import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { timeStampAuthority } from '../../driver/anchor-places.ts';
import { runColibri } from '../../driver/command-line.ts';
import type { Playground } from '../../driver/playground.ts';
import { proves } from '../proves.ts';

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** A folder of the user's that nothing may reach, and what is in it now. */
function precious(colibri: Playground) {
  const folder = colibri.path('precious');
  mkdirSync(folder, { mode: 0o755 });
  for (const name of ['file', 'note.md']) writeFileSync(join(folder, name), '', { mode: 0o644 });
  const look = () => [
    statSync(folder).mode,
    ...readdirSync(folder).map((name) => {
      const { mode, size } = statSync(join(folder, name));
      return [name, mode, size];
    }),
  ];
  const before = JSON.stringify(look());
  return { folder, file: join(folder, 'file'), isUntouched: () => JSON.stringify(look()) === before };
}

async function withLog(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.call('task_create', { title: 'a', project: 'p' });
  await server.closeInput();
}

proves(
  'files.no-links',
  'H5: links beside the database are neither written through nor chmodded',
  async ({ colibri }) => {
    const { file, isUntouched } = precious(colibri);
    mkdirSync(dirname(colibri.dbPath));
    for (const suffix of ['-wal', '-shm', '-journal']) {
      symlinkSync(file, `${colibri.dbPath}${suffix}`);

      const server = await colibri.start();
      const { error } = await server.call('task_create', { title: 'a', project: 'p' });
      await server.closeInput();
      const read = await runColibri(colibri, ['verify']);

      expect(error?.message).toMatch(/^ERR_INIT_FAILED: /);
      expect(error?.message).toContain(`${suffix} is a symbolic link. Remove it.`);
      expect(read.code).not.toBe(0);
      expect(isUntouched()).toBe(true);
      rmSync(`${colibri.dbPath}${suffix}`);
    }
  },
);

proves(
  'files.no-links',
  'H5: a file of the user’s under a second name in the place of one of ours is neither written nor chmodded',
  async ({ colibri }) => {
    const { file, isUntouched } = precious(colibri);
    mkdirSync(join(dirname(colibri.dbPath), '.git'), { recursive: true });
    const mcp = join(dirname(colibri.dbPath), '.mcp.json');
    const env = { CLAUDE_PROJECT_DIR: dirname(mcp) };
    for (const suffix of ['', '-wal', '-shm', '-journal']) {
      linkSync(file, `${colibri.dbPath}${suffix}`);

      const server = await colibri.start();
      const { error } = await server.call('task_create', { title: 'a', project: 'p' });
      await server.closeInput();

      expect(error?.message).toContain(`${colibri.dbPath}${suffix} is a file with a second name.`);
      expect([suffix, isUntouched()]).toEqual([suffix, true]);
      rmSync(`${colibri.dbPath}${suffix}`);
    }
    linkSync(file, mcp);
    const initialised = await runColibri(colibri, ['init'], { cwd: dirname(mcp), env });
    expect(initialised).toMatchObject({ code: 2, stderr: expect.stringContaining('a second name') });
    expect(isUntouched()).toBe(true);

    await withLog(colibri);
    linkSync(colibri.dbPath, `${colibri.dbPath}.copy`);
    const verified = await runColibri(colibri, ['verify']);
    expect(verified.code).toBe(0);
  },
);

proves(
  'files.no-links',
  'H5: a -journal that names a file of the user is not played back, which would delete that file',
  async ({ colibri }) => {
    const { file, isUntouched } = precious(colibri);
    await withLog(colibri);
    const pages = statSync(colibri.dbPath).size / 4_096;
    for (const pagesBefore of [0, pages]) {
      writeFileSync(`${colibri.dbPath}-journal`, journalNaming(file, pagesBefore));
      const before = readFileSync(colibri.dbPath);

      const server = await colibri.start();
      const { error } = await server.call('task_create', { title: 'a', project: 'p' });
      await server.closeInput();
      const read = await runColibri(colibri, ['verify']);

      expect(error?.message).toMatch(/^ERR_INIT_FAILED: .*-journal names a file that SQLite would delete/);
      expect(read.code).not.toBe(0);
      expect(isUntouched()).toBe(true);
      expect(readFileSync(colibri.dbPath).equals(before)).toBe(true);
    }
  },
);

/** A rollback journal of a transaction that began with so many pages and spanned several databases. */
function journalNaming(file: string, pagesBefore: number): Buffer {
  const magic = Buffer.from('d9d505f920a163d7', 'hex');
  const name = Buffer.from(file);
  const numbers = (...values: number[]) => {
    const bytes = Buffer.alloc(4 * values.length);
    for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i);
    return bytes;
  };
  const header = Buffer.alloc(512);
  Buffer.concat([magic, numbers(0, 12_345, pagesBefore, 512, 4_096)]).copy(header);
  const sum = name.reduce((total, byte) => total + byte, 0);
  const lockPage = 0x4000_0000 / 4_096 + 1;
  return Buffer.concat([header, numbers(lockPage), name, numbers(name.length, sum), magic]);
}

proves(
  'files.no-links',
  'H5: with links at every name that a version of Colibri used, nothing behind them changes',
  async ({ colibri }) => {
    const { file, folder, isUntouched } = precious(colibri);
    mkdirSync(dirname(colibri.dbPath));
    for (const suffix of ['.checkpoint', '.checkpoint.tmp', '.checkpoint.1.tmp', '.lock'])
      symlinkSync(file, `${colibri.dbPath}${suffix}`);
    for (const suffix of ['.checkpoints', '.anchors']) symlinkSync(folder, `${colibri.dbPath}${suffix}`);

    await withLog(colibri);
    const verified = await runColibri(colibri, ['verify']);
    const asked = await runColibri(colibri, ['anchor', '--tsq', colibri.path('q.tsq')]);

    expect(verified.code).toBe(0);
    expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('.anchors is a symbolic link') });
    expect(isUntouched()).toBe(true);
  },
);

proves('files.no-links', 'H5: a time stamp is filed without following a link', async ({ colibri }) => {
  const { file, isUntouched } = precious(colibri);
  const [query, reply] = [colibri.path('q.tsq'), colibri.path('q.tsr')];
  const authority = timeStampAuthority(colibri, 'authority');
  await withLog(colibri);
  symlinkSync(file, query);
  await runColibri(colibri, ['anchor', '--tsq', query]);
  authority.answer(query, reply);
  symlinkSync(file, join(`${colibri.dbPath}.anchors`, '2.tsr'));

  const filed = await runColibri(colibri, ['anchor', '--tsr', reply, '--ca', authority.certificate]);
  const verified = await runColibri(colibri, ['verify', '--json']);

  expect(filed).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, anchored_by: ['tsr'] });
  expect(isUntouched()).toBe(true);
});

proves(
  'files.no-links',
  'H5: a link in the place of .colibri or of what is in it: nothing is made behind it',
  async ({ colibri }) => {
    const { folder, isUntouched } = precious(colibri);
    const workspace = colibri.path('workspace');
    mkdirSync(workspace);
    symlinkSync(folder, join(workspace, '.colibri'));
    const env = { CLAUDE_PROJECT_DIR: workspace, COLIBRI_DB_PATH: '' };

    const server = await colibri.start({ env });
    const { error } = await server.call('task_create', { title: 'a', project: 'p' });
    await server.closeInput();
    const initialised = await runColibri(colibri, ['init'], { cwd: workspace, env });
    const written = readdirSync(workspace);
    rmSync(join(workspace, '.colibri'));
    mkdirSync(join(workspace, '.colibri'));
    symlinkSync(join(folder, 'new'), join(workspace, '.colibri', '.gitignore'));
    const again = await runColibri(colibri, ['init'], { cwd: workspace, env });
    rmSync(join(workspace, '.mcp.json'));
    symlinkSync(join(folder, 'file'), join(workspace, '.mcp.json'));
    const merged = await runColibri(colibri, ['init'], { cwd: workspace, env });

    expect(error?.message).toMatch(/^ERR_INIT_FAILED: .*\.colibri is a symbolic link/);
    expect(initialised).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('.colibri is a symbolic link'),
    });
    expect(written).toEqual(['.colibri']);
    expect(again.code).toBe(0);
    expect(merged).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('.mcp.json is a symbolic link'),
    });
    expect(isUntouched()).toBe(true);
  },
);

proves(
  'files.no-links',
  'H5: in a vault, no link leads a note, a list of notes or a deletion elsewhere',
  async ({ colibri }) => {
    const { folder, file, isUntouched } = precious(colibri);
    await withLog(colibri);
    const vault = colibri.path('vault');
    const stale = JSON.stringify({
      'Tasks/note.md': EMPTY,
      'Sessions/note.md': EMPTY,
      'Other/note.md': EMPTY,
    });
    const places = ['Colibri', 'Colibri/Tasks', 'Colibri/Sessions'];
    const codes: (number | null)[] = [];
    for (const linked of [...places, 'Colibri/Other', 'Colibri/.colibri-notes.json']) {
      rmSync(vault, { recursive: true, force: true });
      mkdirSync(dirname(join(vault, linked)), { recursive: true });
      if (linked !== 'Colibri') writeFileSync(join(vault, 'Colibri', '.colibri-notes.json'), stale);
      rmSync(join(vault, linked), { force: true });
      symlinkSync(linked.endsWith('json') ? file : folder, join(vault, linked));

      codes.push((await runColibri(colibri, ['obsidian', '--vault', vault])).code);

      expect([linked, isUntouched()]).toEqual([linked, true]);
    }
    expect(codes).toEqual([1, 1, 1, 0, 0]);
  },
);

proves(
  'files.no-links',
  'H5: exports replace no link, and follow none to what they write or read',
  async ({ colibri }) => {
    const { folder, file, isUntouched } = precious(colibri);
    await withLog(colibri);
    const commands: Readonly<Record<string, readonly string[]>> = {
      'bundle.zip': ['export', '-o'],
      bundle: ['export', '-o'],
      'report.html': ['report', '-o'],
      'proof.json': ['prove', 'T-0001', '-o'],
      checkpoint: ['anchor', '--file'],
    };
    const outcomes: unknown[] = [];
    for (const target of [file, join(folder, 'new')])
      await Promise.all(
        Object.entries(commands).map(async ([name, command]) => {
          const path = colibri.path(name);
          symlinkSync(target, path);
          const { code } = await runColibri(colibri, [...command, path]);
          if (code === 0) outcomes.push([name, basename(target)]);
          if (!lstatSync(path).isSymbolicLink()) outcomes.push(`${name} was replaced`);
          rmSync(path, { recursive: true });
        }),
      );

    expect(outcomes).toEqual([]);
    expect(isUntouched()).toBe(true);
    expect(existsSync(join(folder, 'new'))).toBe(false);
    expect(readFileSync(file, 'utf8')).toBe('');
  },
);
