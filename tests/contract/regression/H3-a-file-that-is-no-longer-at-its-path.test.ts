import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { mountMissing, mountSmallDisk } from '../../driver/linux.ts';
import type { Playground } from '../../driver/playground.ts';
import type { ServerProcess } from '../../driver/server-process.ts';
import { proves } from '../proves.ts';

/** What happens to the file of a server that is at work, and what the server says of it. */
type Case = readonly [what: string, happen: (colibri: Playground) => void, said: RegExp];

const folderOf = ({ dbPath }: Playground) => dirname(dbPath);

const CASES: readonly Case[] = [
  ['is deleted', ({ dbPath }) => rmSync(dbPath), /colibri\.db is gone/],
  ['is deleted with its folder', (colibri) => rmSync(folderOf(colibri), { recursive: true }), /is gone/],
  ['is overwritten by a move', moveCopyOver, /colibri\.db was replaced/],
  [
    'is moved away and another is put there',
    ({ dbPath }) => {
      renameSync(dbPath, `${dbPath}.old`);
      copyFileSync(`${dbPath}.old`, dbPath);
    },
    /colibri\.db (?:is gone|was replaced)/,
  ],
  ['is emptied', ({ dbPath }) => truncateSync(dbPath), /colibri\.db was truncated/],
  ['is cut short', ({ dbPath }) => truncateSync(dbPath, 8_192), /colibri\.db was truncated/],
  ['is made read-only', ({ dbPath }) => chmodSync(dbPath, 0o400), /colibri\.db was made read-only/],
  ['loses its -wal', ({ dbPath }) => rmSync(`${dbPath}-wal`), /colibri\.db-wal is gone/],
  ['loses its -shm', ({ dbPath }) => rmSync(`${dbPath}-shm`), /colibri\.db-shm is gone/],
  [
    'has its -shm replaced',
    ({ dbPath }) => moveCopyOver({ dbPath: `${dbPath}-shm` }),
    /colibri\.db-shm was replaced/,
  ],
  [
    'has its -wal emptied',
    ({ dbPath }) => truncateSync(`${dbPath}-wal`),
    /colibri\.db-wal was truncated|The disk failed/,
  ],
  [
    'has its -wal cut to its header',
    ({ dbPath }) => truncateSync(`${dbPath}-wal`, 32),
    /colibri\.db-wal was truncated|The disk failed/,
  ],
  [
    'has its folder swapped for a link to an empty one',
    (colibri) => swapFolder(colibri, () => undefined),
    /colibri\.db\S* is gone/,
  ],
  [
    'has its folder swapped for a link to a copy',
    (colibri) => swapFolder(colibri, (old, made) => cpSync(old, made, { recursive: true })),
    /colibri\.db\S* (?:is gone|was replaced)/,
  ],
];

for (const [what, happen, said] of CASES)
  proves(
    ['storage.in-place', 'storage.uncertain'],
    `H3: a database that ${what} under load: nothing sent afterwards is acknowledged, and the process ends with 74`,
    async ({ colibri }) => await workThrough(colibri, () => happen(colibri), said),
    { concurrent: true },
  );

proves(
  ['storage.in-place', 'storage.uncertain'],
  'H3: a database whose disk is unmounted under load: nothing sent afterwards is acknowledged, and the process ends with 74',
  async ({ colibri }) => {
    mountSmallDisk(colibri, folderOf(colibri), 20_000);
    // The mount of the test ends on the empty folder, which is what its clearing up then unmounts.
    const unmount = () => {
      execFileSync('umount', ['--lazy', folderOf(colibri)]);
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folderOf(colibri)]);
    };

    await workThrough(colibri, unmount, /colibri\.db\S* is gone/);
  },
  { unless: mountMissing() },
);

proves(
  'storage.in-place',
  'H3: a server whose database was replaced leaves the new one and its -wal as they are',
  async ({ colibri }) => {
    const server = await colibri.start();
    await create(server, 'before');
    moveCopyOver(colibri);
    const next = await colibri.start();
    await create(next, 'in the new file');
    const files = () => ['', '-wal'].map((end) => readFileSync(`${colibri.dbPath}${end}`, 'latin1'));
    const before = files();

    const answer = await server.call('server_health');
    const exit = await server.waitForExit();

    expect(answer.error?.message).toMatch(/was replaced/);
    expect(exit.code).toBe(74);
    expect(files()).toEqual(before);
    expect((await create(next, 'again')).error).toBeUndefined();
  },
);

proves(
  ['storage.in-place', 'processes.unique-ids'],
  'H3: a server whose -shm was removed gives out nothing beside one that made another, and so with other locks',
  async ({ colibri }) => {
    const first = await colibri.start();
    await create(first, 'before');
    rmSync(`${colibri.dbPath}-shm`);
    const second = await colibri.start();

    const [refused, accepted] = await Promise.all([create(first, 'a'), create(second, 'b')]);

    expect(refused.error?.message).toMatch(
      /ERR_STORAGE_UNCERTAIN: .*colibri\.db-shm (?:is gone|was replaced)/,
    );
    expect(await first.waitForExit()).toEqual({ code: 74, signal: null });
    expect(accepted.envelope?.data).toMatchObject({ task_id: 'T-0002' });
    expect((await create(second, 'c')).envelope?.data).toMatchObject({ task_id: 'T-0003' });
    expect(colibri.readAudit().findings).toEqual([]);
  },
);

proves(
  ['storage.in-place', 'storage.uncertain'],
  'H3: a database that is cut to the size that it had when the server started has lost what was merged since',
  async ({ colibri }) => {
    const server = await colibri.start();
    await create(server, 'before');
    const { size } = statSync(colibri.dbPath);
    const description = 'd'.repeat(7_000);
    while (statSync(colibri.dbPath).size === size)
      await server.call('task_create', { title: 'filler', project: 'demo', description });
    truncateSync(colibri.dbPath, size);

    const answer = await create(server, 'after');

    expect(answer.error?.message).toMatch(/ERR_STORAGE_UNCERTAIN: .*colibri\.db was truncated/);
    expect(await server.waitForExit()).toEqual({ code: 74, signal: null });
  },
);

for (const [what, happen] of CASES.filter(([what]) => /^is (?:deleted|overwritten|emptied)/.test(what)))
  proves(
    ['storage.in-place', 'stop.end-of-input', 'stop.signal'],
    `H3: a database that ${what} after the last answer: the stop says so and ends with 74`,
    async ({ colibri }) => {
      for (const stop of ['end of input', 'SIGTERM']) {
        const server = await colibri.start();
        await create(server, 'answered');
        happen(colibri);

        if (stop === 'SIGTERM') server.kill('SIGTERM');
        const exit = await (stop === 'SIGTERM' ? server.waitForExit() : server.closeInput());

        expect(exit).toEqual({ code: 74, signal: null });
        expect(server.stderr).toMatch(/colibri\.db (?:is gone|was replaced|was truncated)/);
        rmSync(folderOf(colibri), { recursive: true, force: true });
      }
    },
    { concurrent: true },
  );

/** How many bytes are left of a log. */
const LEFT: Readonly<Record<string, (size: number) => number>> = {
  nothing: () => 0,
  'only half of its header': () => 16,
  'only its header': () => 32,
  half: (size) => Math.floor(size / 2),
  'all but the end of its last page': (size) => size - 4_000,
};

for (const [what, left] of Object.entries(LEFT))
  proves(
    ['storage.in-place', 'storage.uncertain'],
    `H3: a -wal of which ${what} is left in the middle of a commit is as long as before, and found all the same`,
    async ({ colibri }) => {
      const server = await colibri.start();
      await create(server, 'before');
      const wal = `${colibri.dbPath}-wal`;
      const { size } = statSync(wal);
      truncateSync(wal, left(size));
      // What a commit does that was on its way.
      truncateSync(wal, size);

      const answer = await create(server, 'after');
      const exit = await server.waitForExit();

      expect(answer.error?.message).toMatch(/colibri\.db-wal was truncated/);
      expect(exit).toEqual({ code: 74, signal: null });
    },
    { concurrent: true },
  );

proves(
  ['storage.in-place', 'processes.one-chain'],
  'H3: a -wal that other processes cut rightly, start over and leave longer than they use is not mistaken for a damaged one',
  async ({ colibri }) => {
    const [idle, busy] = [await colibri.start(), await colibri.start()];
    const description = 'd'.repeat(7_000);
    for (let round = 0; round < 3; round += 1) {
      await create(idle, 'before');
      for (let i = 0; i < 80; i += 1)
        await busy.call('task_create', { title: 'filler', project: 'demo', description });

      const answers = [await create(idle, 'after'), await idle.call('task_get', { task_id: 'T-0001' })];

      expect(answers.map(({ error }) => error)).toEqual([undefined, undefined]);
    }
    await busy.closeInput();
    expect((await create(idle, 'at last')).error).toBeUndefined();
    expect(await idle.closeInput()).toEqual({ code: 0, signal: null });
  },
);

/** Keeps calls in flight, lets it happen in the middle of them, and looks at what the client is told from then on. */
async function workThrough(colibri: Playground, happen: () => void, said: RegExp): Promise<void> {
  const server = await colibri.start();
  for (let i = 0; i < 20; i += 1) await create(server, `before ${i}`);
  let happened = false;
  const acknowledged: string[] = [];
  const messages: string[] = [];
  const worker = async (number: number) => {
    for (let i = 0; server.exit === undefined; i += 1) {
      const sentAfter = happened;
      const call =
        number % 3 === 2 ? server.call('task_get', { task_id: 'T-0001' }) : create(server, `${number}/${i}`);
      const answer = await call.catch(() => undefined);
      if (answer?.error !== undefined) messages.push(answer.error.message);
      else if (answer?.envelope?.ok === true && sentAfter) acknowledged.push(JSON.stringify(answer.envelope));
      if (answer === undefined) return;
    }
  };

  const workers = Array.from({ length: 6 }, (_, number) => worker(number));
  for (let i = 0; i < 20; i += 1) await server.call('server_ping');
  happen();
  happened = true;
  const exit = await server.waitForExit();
  await Promise.all(workers);

  expect(acknowledged).toEqual([]);
  expect(messages.filter((message) => message.includes('ERR_STORAGE_UNCERTAIN'))).not.toEqual([]);
  expect(messages.join('\n')).toMatch(said);
  expect(server.stderr).toMatch(said);
  expect(exit).toEqual({ code: 74, signal: null });
}

function create(server: ServerProcess, title: string) {
  return server.call('task_create', { title, project: 'demo' });
}

function moveCopyOver({ dbPath }: Pick<Playground, 'dbPath'>): void {
  copyFileSync(dbPath, `${dbPath}.backup`);
  renameSync(`${dbPath}.backup`, dbPath);
}

/** `mv .colibri .old; mkdir .new; ln -s .new .colibri` */
function swapFolder(colibri: Playground, fill: (old: string, made: string) => void): void {
  const folder = folderOf(colibri);
  const [old, made] = [`${folder}.old`, `${folder}.new`];
  mkdirSync(made);
  renameSync(folder, old);
  fill(old, made);
  symlinkSync(made, folder);
}
