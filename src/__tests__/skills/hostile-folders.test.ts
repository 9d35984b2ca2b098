import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { tier } from '../../../tests/driver/tier.ts';
import { makePipe, makeWorkspace, skillText, type Workspace } from './workspace.ts';

const FOLDERS = tier(2_100, 5_000);

const root = (workspace: Workspace, ...parts: string[]): string =>
  join(workspace.path, '.agents', 'skills', ...parts);

/** A workspace with one good skill, and a secret outside its skills folder. */
function makeWorkspaceWithSecret(): Workspace {
  const workspace = makeWorkspace();
  workspace.skill('good');
  workspace.write('secret/SKILL.md', skillText('secret'));
  workspace.write('secret/inner/SKILL.md', skillText('inner'));
  return workspace;
}

const LINK = 'a symbolic link, and links are not followed';

describe('R35: what lies in a skills folder is refused with its file and reason, and the rest is served', () => {
  const cases: [string, (workspace: Workspace) => void, { path: string; reason: string }[]][] = [
    [
      'a folder that is a link out of the root',
      (w) => symlinkSync('../../secret', root(w, 'out')),
      [{ path: 'out', reason: LINK }],
    ],
    [
      'a folder that is a link to the whole disk',
      (w) => symlinkSync('/', root(w, 'disk')),
      [{ path: 'disk', reason: LINK }],
    ],
    [
      'a SKILL.md that is a link out of the root',
      (w) => {
        mkdirSync(root(w, 'out'));
        symlinkSync('../../../secret/SKILL.md', root(w, 'out', 'SKILL.md'));
      },
      [{ path: 'out/SKILL.md', reason: LINK }],
    ],
    [
      'a SKILL.md that is a link to a device',
      (w) => {
        mkdirSync(root(w, 'zero'));
        symlinkSync('/dev/zero', root(w, 'zero', 'SKILL.md'));
      },
      [{ path: 'zero/SKILL.md', reason: LINK }],
    ],
    ['a link to itself', (w) => symlinkSync('loop', root(w, 'loop')), [{ path: 'loop', reason: LINK }]],
    [
      'a link to nothing',
      (w) => symlinkSync('gone', root(w, 'dangling')),
      [{ path: 'dangling', reason: LINK }],
    ],
    [
      'a SKILL.md that is a pipe',
      (w) => {
        mkdirSync(root(w, 'pipe'));
        makePipe(root(w, 'pipe', 'SKILL.md'));
      },
      [{ path: 'pipe/SKILL.md', reason: 'a named pipe, not a file' }],
    ],
    [
      'a pipe in the root',
      (w) => makePipe(root(w, 'pipe')),
      [{ path: 'pipe', reason: 'a named pipe, not a file' }],
    ],
    [
      'a SKILL.md that is a folder',
      (w) => mkdirSync(root(w, 'folder', 'SKILL.md'), { recursive: true }),
      [{ path: 'folder/SKILL.md', reason: 'a folder, not a file' }],
    ],
    [
      'a SKILL.md of 100 MB',
      (w) => {
        w.skill('large');
        truncateSync(root(w, 'large', 'SKILL.md'), 100_000_000);
      },
      [{ path: 'large/SKILL.md', reason: 'larger than 1024 KiB' }],
    ],
    [
      'a SKILL.md of one byte too many',
      (w) => w.skill('large', skillText('large').padEnd(1_048_577)),
      [{ path: 'large/SKILL.md', reason: 'larger than 1024 KiB' }],
    ],
    [
      'a file beside it of 64 MiB',
      (w) => {
        w.skill('large');
        w.write('.agents/skills/large/data', '');
        truncateSync(root(w, 'large', 'data'), 67_108_864);
      },
      [{ path: 'large/SKILL.md', reason: 'the files in its folder take more than 64 MiB' }],
    ],
    [
      '4,096 files beside it',
      (w) => {
        w.skill('many');
        for (let i = 0; i < 4_096; i += 1) w.write(`.agents/skills/many/${i % 3}/${i}`, '');
      },
      [{ path: 'many/SKILL.md', reason: 'its folder contains more than 4096 files' }],
    ],
    [
      'a folder of 10,001 names',
      (w) => {
        mkdirSync(root(w, 'names'));
        for (let i = 0; i <= 10_000; i += 1) writeFileSync(root(w, 'names', `${i}`), '');
      },
      [{ path: 'names', reason: 'a folder with more than 10000 entries' }],
    ],
    [
      'a name that is not UTF-8',
      (w) => mkdirSync(Buffer.concat([Buffer.from(`${root(w)}/`), Buffer.of(0x66, 0xff)])),
      [{ path: 'f\ufffd', reason: 'its name is not UTF-8' }],
    ],
    [
      'broken YAML',
      (w) => w.skill('broken', '---\ndescription: !!js/function x\n---\n'),
      [{ path: 'broken/SKILL.md', reason: expect.stringContaining('not valid YAML') }],
    ],
  ];

  test.each(cases)('%s', async (_, put, refused) => {
    const workspace = makeWorkspaceWithSecret();
    put(workspace);

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['good']);
    expect(skipped).toEqual(refused.map(({ path, reason }) => ({ path: `.agents/skills/${path}`, reason })));
  });

  test('a socket is not read', async () => {
    const workspace = makeWorkspaceWithSecret();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(root(workspace, 'good', 'socket'), resolve));

    const { skipped } = await workspace.registry().list();
    server.close();

    expect(skipped).toEqual([{ path: '.agents/skills/good/socket', reason: 'a socket, not a file' }]);
  });

  test('a file beside SKILL.md that cannot be read leaves the skill in force and is named', async () => {
    const workspace = makeWorkspaceWithSecret();
    makePipe(root(workspace, 'good', 'pipe'));
    symlinkSync('/etc/passwd', root(workspace, 'good', 'passwd'));
    symlinkSync('../../../secret', root(workspace, 'good', 'secret'));
    mkdirSync(root(workspace, 'good', 'inside'));
    symlinkSync('inside', root(workspace, 'good', 'to-inside'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['good']);
    expect(skipped).toEqual([
      { path: '.agents/skills/good/passwd', reason: LINK },
      { path: '.agents/skills/good/pipe', reason: 'a named pipe, not a file' },
      { path: '.agents/skills/good/secret', reason: LINK },
      { path: '.agents/skills/good/to-inside', reason: LINK },
    ]);
  });

  test('a device is not read', async ({ skip }) => {
    const workspace = makeWorkspaceWithSecret();
    mkdirSync(root(workspace, 'device'));
    const made = spawnSync('mknod', [root(workspace, 'device', 'SKILL.md'), 'c', '1', '5']);
    if (made.status !== 0) skip('only the superuser can make a device');

    const { skipped } = await workspace.registry().list();

    expect(skipped).toEqual([{ path: '.agents/skills/device/SKILL.md', reason: 'a device, not a file' }]);
  });

  test('a file or folder that may not be read is named', async ({ skip }) => {
    if (process.getuid?.() === 0) skip('the superuser may read everything');
    const workspace = makeWorkspaceWithSecret();
    workspace.skill('closed');
    chmodSync(root(workspace, 'closed', 'SKILL.md'), 0);
    workspace.skill('closed-folder/x');
    chmodSync(root(workspace, 'closed-folder'), 0);

    const { skipped } = await workspace.registry().list();
    chmodSync(root(workspace, 'closed-folder'), 0o700);

    expect(skipped.map(({ reason }) => reason)).toEqual([
      'Colibri has no permission to read it (EACCES)',
      'Colibri has no permission to read it (EACCES)',
    ]);
  });

  test('links inside the roots are not followed: what they lead to counts where it is', async () => {
    const workspace = makeWorkspaceWithSecret();
    mkdirSync(join(workspace.path, '.claude', 'skills'), { recursive: true });
    symlinkSync('../../.agents/skills/good', join(workspace.path, '.claude', 'skills', 'good'));
    symlinkSync('good', root(workspace, 'again'));
    symlinkSync('.', root(workspace, 'whole'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ path }) => path)).toEqual(['.agents/skills/good/SKILL.md']);
    const links = ['.agents/skills/again', '.agents/skills/whole', '.claude/skills/good'];
    expect(skipped).toEqual(links.map((path) => ({ path, reason: LINK })));
  });

  test('a SKILL.md that is a link inside the roots is not read', async () => {
    const workspace = makeWorkspace();
    workspace.skill('one', '---\ndescription: d\n---\n');
    mkdirSync(root(workspace, 'two'));
    symlinkSync('../one/SKILL.md', root(workspace, 'two', 'SKILL.md'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['one']);
    expect(skipped).toEqual([{ path: '.agents/skills/two/SKILL.md', reason: LINK }]);
  });

  test('a root that is a link to another root counts once', async () => {
    const workspace = makeWorkspaceWithSecret();
    mkdirSync(join(workspace.path, '.claude'));
    symlinkSync('../.agents/skills', join(workspace.path, '.claude', 'skills'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills).toHaveLength(1);
    expect(skipped).toEqual([]);
  });

  test.each([
    ['out of the workspace', '/etc', 'a symbolic link out of the workspace'],
    ['to nothing', 'gone', 'a symbolic link that leads nowhere'],
    ['to a file', 'secret/SKILL.md', 'not a folder'],
  ])('a root in the workspace that is a link %s is refused', async (_, target, reason) => {
    const workspace = makeWorkspaceWithSecret();
    symlinkSync(target, join(workspace.path, 'skills'));

    const { skills, skipped } = await workspace.registry(['skills']).list();

    expect(skills).toEqual([]);
    expect(skipped).toEqual([{ path: 'skills', reason: expect.stringContaining(reason) }]);
  });

  test('a root outside the workspace may be a link: its owner chose it', async () => {
    const workspace = makeWorkspace();
    const home = makeWorkspaceWithSecret();
    symlinkSync('.agents/skills', join(home.path, 'linked'));

    const { skills } = await workspace.registry([`../${home.path.split('/').at(-1)}/linked`]).list();

    expect(skills.map(({ path }) => path)).toEqual([join(home.path, 'linked', 'good', 'SKILL.md')]);
  });

  test(`of ${FOLDERS} folders 2,000 are searched, always the same ones`, async () => {
    const workspace = makeWorkspace();
    for (let i = 0; i < FOLDERS; i += 1) workspace.skill(`skill-${i}`);
    const began = performance.now();

    const { skills, skipped } = await workspace.registry().list();

    console.error(`${FOLDERS} skill folders: ${(performance.now() - began).toFixed(0)} ms`);
    expect(skills).toHaveLength(1_999);
    expect(skipped).toEqual([
      { path: '.agents/skills', reason: 'more than 2000 folders; the rest is not searched' },
    ]);
    expect((await workspace.registry().list()).skills).toEqual(skills);
  });

  test('front matter together longer than 4 MiB is not read to the end', async () => {
    const workspace = makeWorkspace();
    const padding = `#${'x'.repeat(60_000)}\n`;
    for (let i = 100; i < 180; i += 1) workspace.skill(`s-${i}`, skillText(`s-${i}`, 'd', padding));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.length + skipped.length).toBe(80);
    expect(skipped.at(-1)).toEqual({
      path: '.agents/skills/s-179/SKILL.md',
      reason: 'its skills folder contains more than 4194304 bytes of front matter; the rest is not read',
    });
    expect(skills).toHaveLength(70);
  });
});

describe('R35: what the operating system saw', () => {
  const STRACE = 'strace';
  const TRACED = `
    import { createSkillRegistry } from ${JSON.stringify(join(import.meta.dirname, '../../domains/skills/registry.ts'))};
    const workspace = process.argv[2];
    const registry = createSkillRegistry({ roots: [workspace + '/.agents/skills'], workspace });
    process.stdout.write(JSON.stringify(await registry.list()));
  `;

  /** Every open of a path below the workspace, in a process of its own. */
  function trace(workspace: Workspace): { opened: string[]; listing: string } {
    const program = join(workspace.path, 'program.mjs');
    const stdin = { contents: TRACED, resolveDir: import.meta.dirname, loader: 'ts' } as const;
    buildSync({ stdin, bundle: true, platform: 'node', format: 'esm', outfile: program, logLevel: 'error' });
    const log = join(workspace.path, 'trace.log');
    const calls = 'trace=open,openat,openat2';
    const args = ['-f', '-s', '4096', '-e', calls, '-o', log, process.execPath, program, workspace.path];
    const listing = spawnSync(STRACE, args, { encoding: 'utf8' }).stdout;
    const opened = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /\bopen(at2?)?\(/.test(line) && !line.includes('O_PATH'))
      .map((line) => line.split('"')[1] ?? '')
      .filter((path) => path.startsWith(workspace.path) && path !== program);
    return { opened, listing };
  }

  test('nothing outside the root is opened', ({ skip }) => {
    if (spawnSync(STRACE, ['-V']).status !== 0) skip('strace is not installed');
    const workspace = makeWorkspaceWithSecret();
    workspace.write('.agents/skills/good/scripts/run.sh', 'echo');
    symlinkSync('../../secret', root(workspace, 'out'));
    mkdirSync(root(workspace, 'file'));
    symlinkSync('../../../secret/SKILL.md', root(workspace, 'file', 'SKILL.md'));
    symlinkSync('../../../secret/inner', root(workspace, 'good', 'inner'));
    workspace.skill('named', skillText('../../../secret/SKILL.md'));
    workspace.skill('absolute', skillText(join(workspace.path, 'secret', 'SKILL.md')));

    const { opened, listing } = trace(workspace);

    expect(opened.filter((path) => !path.startsWith(root(workspace)))).toEqual([]);
    expect(opened).toContain(root(workspace, 'good', 'SKILL.md'));
    expect(opened).toContain(root(workspace, 'good', 'scripts', 'run.sh'));
    expect(JSON.parse(listing).skills).toHaveLength(3);
    rmSync(join(workspace.path, 'trace.log'));
  });
});
