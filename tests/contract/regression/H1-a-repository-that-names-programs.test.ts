import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { Playground } from '../../driver/playground.ts';
import { proving } from '../proves.ts';

const REF = 'refs/colibri/checkpoints';

let colibri: Playground;
let workspace: string;
let dbPath: string;
let evil: string;
let markers: string;

/** A workspace with a log whose newest checkpoint is in git, and a program that leaves a mark when it runs. */
beforeAll(async () => {
  colibri = new Playground();
  workspace = colibri.path('workspace');
  dbPath = join(workspace, '.colibri', 'colibri.db');
  [evil, markers] = [colibri.path('evil.sh'), colibri.path('markers')];
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> '${markers}'\n`, { mode: 0o755 });
  const hooks = colibri.path('evil-hooks');
  for (const hook of ['reference-transaction', 'post-index-change', 'fsmonitor-watchman', 'pre-auto-gc'])
    evilAt(join(hooks, hook));
  evilAt(colibri.path('bin', 'git-remote-evil'));
  mkdirSync(workspace);
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  await mustRun('call', 'task_create', '{"title":"a","project":"p"}');
  await mustRun('anchor', '--git');
});

afterAll(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

function git(...args: string[]): string {
  const who = ['-c', 'user.name=ada', '-c', 'user.email=ada@localhost'];
  const env = { PATH: process.env.PATH ?? '', HOME: colibri.path('home') };
  const { status, stdout, stderr } = spawnSync('git', ['-C', workspace, ...who, ...args], {
    encoding: 'utf8',
    env,
  });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

function evilAt(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  cpSync(evil, path);
  chmodSync(path, 0o755);
}

const run = (args: readonly string[], env: Record<string, string> = {}, cwd = workspace) =>
  runColibri(colibri, args, { cwd, env: { COLIBRI_DB_PATH: dbPath, ...env } });

async function mustRun(...args: string[]): Promise<void> {
  const { code, stderr } = await run(args);
  if (code !== 0) throw new Error(`colibri ${args.join(' ')}: ${stderr}`);
}

interface Verdict {
  readonly ok: boolean;
  readonly anchored_by: readonly string[];
  readonly remarks: readonly string[];
}

/** Which kinds of anchors were found, pushed or not. */
async function verified(env?: Record<string, string>): Promise<Verdict> {
  const verdict = JSON.parse((await run(['verify', '--json'], env)).stdout) as Verdict & {
    anchors: { kind: string }[];
  };
  return { ...verdict, anchored_by: [...new Set(verdict.anchors.map(({ kind }) => kind))] };
}

/** What ran since the last time. */
function takeMarks(): string {
  const marks = existsSync(markers) ? readFileSync(markers, 'utf8') : '';
  rmSync(markers, { force: true });
  return marks;
}

type Keys = Readonly<Record<string, string>>;

/** Configurations, each with keys that name a program. What matters less shares one. */
function configurations(): Readonly<Record<string, Keys>> {
  const shell = `!${evil}`;
  return {
    hooks: { 'core.hooksPath': colibri.path('evil-hooks') },
    'a file system monitor': { 'core.fsmonitor': evil },
    'a pager': { 'core.pager': evil, 'pager.rev-list': evil, 'pager.cat-file': evil },
    editors: { 'core.editor': evil, 'sequence.editor': evil },
    'an ssh command': { 'core.sshCommand': evil },
    'a proxy': { 'core.gitProxy': evil },
    'a prompt': { 'core.askPass': evil },
    'references of alternates': { 'core.alternateRefsCommand': evil },
    'a credential helper': { 'credential.helper': shell },
    aliases: { 'alias.cat-file': shell, 'alias.rev-parse': shell, 'alias.var': shell },
    diffs: { 'diff.external': evil, 'diff.evil.command': evil, 'diff.evil.textconv': evil },
    filters: { 'filter.evil.clean': evil, 'filter.evil.smudge': evil, 'filter.evil.process': evil },
    merges: { 'merge.evil.driver': evil, 'mergetool.evil.cmd': evil, 'difftool.evil.cmd': evil },
    signatures: { 'gpg.program': evil, 'gpg.x509.program': evil },
    'signatures by ssh': { 'gpg.ssh.program': evil, 'gpg.ssh.defaultKeyCommand': evil },
    trailers: { 'trailer.evil.command': evil, 'interactive.diffFilter': evil },
    programs: { 'browser.evil.cmd': evil, 'man.evil.cmd': evil, 'sendemail.sendmailCmd': evil },
    'the far end': { 'remote.evil.uploadpack': evil, 'remote.evil.receivepack': evil },
    'another transport': { 'remote.evil.vcs': 'evil' },
    'another address': { 'url.ext::evil.insteadOf': 'file://' },
    packing: { 'uploadpack.packObjectsHook': evil },
    'an included file': { 'include.path': colibri.path('evil-config') },
  };
}

const allKeys = () => Object.assign({}, ...Object.values(configurations())) as Keys;

const asConfig = (key: string, value: string) => {
  const parts = key.split('.');
  const [section, name] = [parts[0], parts.at(-1)];
  const inner = parts.slice(1, -1).join('.');
  return `[${section}${inner === '' ? '' : ` "${inner}"`}]\n\t${name} = ${JSON.stringify(value)}\n`;
};

const inConfig = (keys: Keys) =>
  Object.entries(keys)
    .map(([key, value]) => asConfig(key, value))
    .join('');
/** Those that only choose the program, or make git want one. */
const WANTED = inConfig({ 'commit.gpgSign': 'true', 'core.logAllRefUpdates': 'always' });
/** A partial clone: git fetches what is missing, in whichever way the remote is configured. */
const partial = (url: string) =>
  `[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[remote "evil"]\n\tpromisor = true\n\turl = ${url}\n`;

/** The configurations, each with the address that its keys are about. */
const ADDRESSES: Readonly<Record<string, string>> = {
  ...{ 'an ssh command': 'ssh://evil/evil', 'a prompt': 'ssh://evil/evil', 'a proxy': 'git://evil/evil' },
  ...{ 'a credential helper': 'https://evil.invalid/', 'the far end': 'file:///evil', hooks: 'file:///evil' },
  ...{ 'a file system monitor': '', 'a pager': '', editors: '', 'references of alternates': '', aliases: '' },
  ...{
    diffs: '',
    filters: '',
    merges: '',
    signatures: '',
    'signatures by ssh': '',
    trailers: '',
    packing: '',
  },
  ...{
    programs: '',
    'another transport': 'evil',
    'another address': 'file:///evil',
    'an included file': 'evil',
  },
};
/** Where git on its own is seen to run the program: these traps work. */
const TRAPS = ['an ssh command', 'a proxy', 'the far end', 'another transport', 'an included file'];
const MISSING = '1234567890'.repeat(4);

describe('H1: no program that a repository names is run', () => {
  test.each(Object.keys(ADDRESSES))(
    proving('programs.powerless', 'for its keys for %s, where git would fetch a commit that is missing'),
    async (name) => {
      const [config, ref] = [join(workspace, '.git', 'config'), join(workspace, '.git', REF)];
      const [before, tip] = [readFileSync(config, 'utf8'), readFileSync(ref, 'utf8')];
      const { 'include.path': _, ...included } = allKeys();
      writeFileSync(colibri.path('evil-config'), inConfig(included));
      const keys = inConfig(configurations()[name] ?? {});
      appendFileSync(config, `${WANTED}${partial(ADDRESSES[name] || 'file:///evil')}${keys}`);
      writeFileSync(ref, `${MISSING}\n`);
      const marked = fetchMissing();

      const { ok, remarks } = await verified(withEvil());

      writeFileSync(config, before);
      writeFileSync(ref, tip);
      expect(takeMarks()).toBe('');
      expect({ ok, remarks }).toEqual({ ok: true, remarks: [expect.stringContaining('no longer exists')] });
      if (TRAPS.includes(name)) expect(marked).toContain('evil');
    },
  );

  test(
    proving('programs.powerless', 'with all of them at once, and the checkpoint is committed and found'),
    async () => {
      const config = join(workspace, '.git', 'config');
      const before = readFileSync(config, 'utf8');
      const { 'include.path': _, ...keys } = allKeys();
      appendFileSync(config, `${WANTED}${partial('file:///evil')}${inConfig(keys)}`);
      await mustRun('call', 'server_ping');

      const anchored = await run(['anchor', '--git'], withEvil());
      const { ok, anchored_by, remarks } = await verified(withEvil());

      writeFileSync(config, before);
      expect(takeMarks()).toBe('');
      expect(anchored).toMatchObject({ code: 0, stderr: '' });
      expect({ ok, anchored_by, remarks }).toEqual({ ok: true, anchored_by: ['git'], remarks: [] });
    },
  );

  /** Git on its own asks the remote for what is missing. Returns what that ran. */
  function fetchMissing(): string {
    const env = { ...withEvil(), HOME: colibri.path('home') };
    spawnSync('git', ['-C', workspace, 'cat-file', '-e', MISSING], { env });
    return takeMarks();
  }

  /** A path with a program for a transport that only this repository knows. */
  function withEvil() {
    return { PATH: `${process.env.PATH}:${colibri.path('bin')}` };
  }

  /** Each puts a repository in the place of an honest one, in which the newest checkpoint is missing. Returns its git folder. */
  const LAYOUTS: Readonly<Record<string, () => string>> = {
    'a loose reference': () => join(workspace, '.git'),
    'packed references': () => {
      const folder = join(workspace, '.git');
      rmSync(join(folder, REF));
      writeFileSync(join(folder, 'packed-refs'), `${MISSING} ${REF}\n${MISSING} refs/heads/main\n`);
      return folder;
    },
    'objects in another repository': () => {
      const other = colibri.path('other.git');
      cpSync(join(workspace, '.git'), other, { recursive: true });
      appendFileSync(join(other, 'config'), hostileConfig());
      writeFileSync(join(workspace, '.git', 'objects', 'info', 'alternates'), `${other}/objects\n`);
      return join(workspace, '.git');
    },
    'a file that points elsewhere': () => elsewhere(colibri.path('elsewhere')),
    'a submodule': () => {
      mkdirSync(colibri.path('.git', 'modules'), { recursive: true });
      return elsewhere(colibri.path('.git', 'modules', 'workspace'));
    },
    'a further worktree': () => {
      const common = elsewhere(colibri.path('main.git'));
      const own = join(common, 'worktrees', 'workspace');
      mkdirSync(own, { recursive: true });
      writeFileSync(join(own, 'commondir'), '../..\n');
      writeFileSync(join(own, 'gitdir'), `${join(workspace, '.git')}\n`);
      writeFileSync(join(own, 'HEAD'), 'ref: refs/heads/main\n');
      writeFileSync(join(workspace, '.git'), `gitdir: ${own}\n`);
      return common;
    },
  };
  const hostileConfig = () => `${WANTED}${inConfig(allKeys())}${partial('file:///evil')}`;

  function elsewhere(folder: string): string {
    renameSync(join(workspace, '.git'), folder);
    writeFileSync(join(workspace, '.git'), `gitdir: ${folder}\n`);
    return folder;
  }

  /** How a partial clone is asked for what is missing. */
  const REMOTES: readonly (readonly [url: string, without: RegExp])[] = [
    ['file:///evil', /^(?:remote\.evil\.vcs|url|include)/],
    ['ssh://evil/evil', /^(?:remote\.evil\.(?:vcs|uploadpack)|url|include)/],
    ['anything', /^(?:url|include)/],
  ];

  test.each(Object.keys(LAYOUTS))(
    proving('programs.powerless', 'by any command, with %s whose newest commit is missing'),
    async (layout) => {
      const honest = colibri.path('honest');
      cpSync(join(workspace, '.git'), honest, { recursive: true });
      const folder = LAYOUTS[layout]?.() ?? '';
      if (layout !== 'packed references') {
        writeFileSync(join(folder, REF), `${MISSING}\n`);
        writeFileSync(join(folder, 'refs', 'heads', 'main'), `${MISSING}\n`);
      }
      const config = readFileSync(join(folder, 'config'), 'utf8');
      const env = withEvil();
      const [url, without] = REMOTES[Object.keys(LAYOUTS).indexOf(layout) % REMOTES.length] ?? ['', /^$/];
      const keys = Object.entries(allKeys()).filter(([key]) => !without.test(key));
      const text = `${WANTED}${inConfig(Object.fromEntries(keys))}${partial(url)}`;
      writeFileSync(join(folder, 'config'), `${config}${text}`);
      const marked = fetchMissing();

      const vault = colibri.path('vault');
      mkdirSync(vault, { recursive: true });
      const outcomes = await Promise.all(
        [
          ['verify'],
          ['log'],
          ['show', 'T-0001'],
          ['board'],
          ['doctor'],
          ['init', '--client', 'cursor'],
          ['export', '-o', colibri.path('bundle')],
          ['prove', 'T-0001', '-o', colibri.path('proof.json')],
          ['report', '-o', colibri.path('report.html')],
          ['obsidian', '--vault', vault],
          ['anchor', '--git'],
        ].map(async (args) => [args[0], (await run(args, env)).code]),
      );
      const bundle = await run(['verify', colibri.path('bundle')], env);
      const server = await colibri.start({
        folder: workspace,
        env: { COLIBRI_DB_PATH: dbPath, CLAUDE_PROJECT_DIR: workspace, ...env },
      });
      await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'where am I?' });
      const trail = await server.call('thought_record_list', { task_id: 'T-0001' });
      await server.closeInput();

      expect(takeMarks()).toBe('');
      expect(marked).toContain('evil');
      expect(outcomes.filter(([name, code]) => code !== (name === 'anchor' ? 1 : 0))).toEqual([]);
      expect(bundle.code).toBe(0);
      expect(JSON.stringify(trail.envelope)).toContain(MISSING);
      for (const made of ['bundle', 'proof.json', 'report.html'])
        rmSync(colibri.path(made), { recursive: true });
      rmSync(join(workspace, '.git'), { recursive: true });
      renameSync(honest, join(workspace, '.git'));
      await mustRun('anchor', '--git');
    },
  );

  test(
    proving(
      'programs.located',
      'a program in the current folder, or where npm puts those of the project, is not taken for git',
    ),
    async () => {
      const bin = join(workspace, 'node_modules', '.bin');
      for (const folder of [workspace, bin])
        for (const name of ['git', 'openssl']) evilAt(join(folder, name));

      const verdicts: Verdict[] = [];
      for (const first of ['', '.', './', 'node_modules/.bin', bin])
        verdicts.push(await verified({ PATH: `${first}:${process.env.PATH}` }));

      expect(takeMarks()).toBe('');
      expect(verdicts.map(({ anchored_by }) => anchored_by)).toEqual(verdicts.map(() => ['git']));
      for (const name of ['git', 'openssl', 'node_modules'])
        rmSync(join(workspace, name), { recursive: true });
    },
  );

  test(
    proving(
      'programs.environment',
      'variables that lead git elsewhere or name a program for it are not passed on',
    ),
    async () => {
      evilAt(colibri.path('exec', 'git-rev-parse'));
      const trace = colibri.path('trace');

      const { anchored_by } = await verified({
        GIT_DIR: '/nowhere',
        GIT_WORK_TREE: '/nowhere',
        GIT_OBJECT_DIRECTORY: '/nowhere',
        GIT_EXEC_PATH: colibri.path('exec'),
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'core.bare',
        GIT_CONFIG_VALUE_0: 'nonsense',
        GIT_TRACE: trace,
      });

      expect(anchored_by).toEqual(['git']);
      expect(takeMarks()).toBe('');
      expect(existsSync(trace)).toBe(false);
    },
  );

  test(
    proving(
      'programs.bounded',
      'a pipe in the place of the configuration is waited for only so long, and told',
    ),
    async () => {
      const config = join(workspace, '.git', 'config');
      renameSync(config, `${config}.honest`);
      spawnSync('mkfifo', [config]);

      const { ok, remarks } = await verified();

      renameSync(`${config}.honest`, config);
      expect(ok).toBe(true);
      expect(remarks).toEqual([expect.stringMatching(/git were not checked: git did not answer within/)]);
    },
  );

  test(
    proving('programs.powerless', 'a repository that says its files are elsewhere hides no checkpoint'),
    async () => {
      const [config, elsewhere] = [join(workspace, '.git', 'config'), colibri.path('another')];
      const before = readFileSync(config, 'utf8');
      mkdirSync(elsewhere);
      const logs = colibri.path('config', 'colibri', 'logs');
      const remembered = join(logs, readdirSync(logs)[0] ?? '', 'anchors.json');
      renameSync(remembered, colibri.path('remembered'));
      const verdicts: Verdict[] = [];
      for (const keys of [
        { 'core.worktree': elsewhere },
        { 'core.worktree': '/nowhere' },
        { 'core.worktree': elsewhere, 'core.bare': 'true' },
      ]) {
        writeFileSync(config, `${before}${inConfig(keys)}`);
        verdicts.push(await verified());
      }
      writeFileSync(config, 'no configuration');
      const unread = await verified();
      writeFileSync(config, before);
      renameSync(colibri.path('remembered'), remembered);

      expect(verdicts.map(({ anchored_by }) => anchored_by)).toEqual(verdicts.map(() => ['git']));
      expect(unread.remarks).toContainEqual(expect.stringMatching(/git were not checked: .*bad config/s));
    },
  );

  test(
    proving('programs.bounded', 'what a repository says of other parents is not even opened'),
    async () => {
      const grafts = join(workspace, '.git', 'info', 'grafts');
      mkdirSync(dirname(grafts), { recursive: true });
      spawnSync('mkfifo', [grafts]);

      const { anchored_by, remarks } = await verified();

      rmSync(grafts);
      expect({ anchored_by, remarks }).toEqual({ anchored_by: ['git'], remarks: [] });
    },
  );

  test(
    proving('programs.bounded', 'a list of other repositories that would fill the memory of git is told'),
    async () => {
      const alternates = join(workspace, '.git', 'objects', 'info', 'alternates');
      writeFileSync(alternates, '');
      // It takes no room on the disk. A device, which never ends, would be read in the same way.
      truncateSync(alternates, 600 * 1_048_576);

      const { ok, remarks } = await verified();

      rmSync(alternates);
      expect(ok).toBe(true);
      expect(remarks).toEqual([
        expect.stringMatching(/git were not checked: git failed: .*attempting to allocate/s),
      ]);
    },
  );

  test(
    proving(
      'programs.links',
      'git writes through no link, and a reference to a branch does not move the branch',
    ),
    async () => {
      const victim = colibri.path('precious');
      writeFileSync(victim, 'precious\n');
      const log = join(workspace, '.git', 'logs', REF);
      mkdirSync(dirname(log), { recursive: true });
      rmSync(log, { force: true });
      git('config', 'core.logAllRefUpdates', 'always');
      symlinkSync(victim, log);
      await mustRun('call', 'server_ping');

      const refused = await run(['anchor', '--git']);
      rmSync(log);
      linkSync(victim, log);
      const second = await run(['anchor', '--git']);
      rmSync(log);
      const tip = git('rev-parse', REF);
      git('branch', 'own', tip);
      git('symbolic-ref', REF, 'refs/heads/own');
      const kept = await run(['anchor', '--git']);

      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('is a symbolic link') });
      expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining('a second name') });
      expect(readFileSync(victim, 'utf8')).toBe('precious\n');
      expect(kept.code).toBe(0);
      expect([git('rev-parse', 'own'), git('rev-parse', `${REF}^`)]).toEqual([tip, tip]);
    },
  );

  test(proving('programs.links', 'git writes through no link among the folders of its objects'), async () => {
    const outside = colibri.path('outside');
    mkdirSync(outside);
    const objects = join(workspace, '.git', 'objects');
    const folders = Array.from({ length: 256 }, (_, i) => join(objects, i.toString(16).padStart(2, '0')));
    const linked = folders.filter((folder) => !existsSync(folder));
    for (const folder of linked) symlinkSync(outside, folder);
    const reftable = join(workspace, '.git', 'reftable');
    await mustRun('call', 'server_ping');

    const refused = await run(['anchor', '--git']);
    for (const folder of linked) rmSync(folder);
    symlinkSync(outside, reftable);
    const again = await run(['anchor', '--git']);
    rmSync(reftable);

    for (const one of [refused, again])
      expect(one).toMatchObject({ code: 1, stderr: expect.stringContaining('is a symbolic link') });
    expect(readdirSync(outside)).toEqual([]);
  });

  test(
    proving(
      'programs.powerless',
      'nothing is committed where the repository’s own configuration holds hooks',
    ),
    async () => {
      const config = join(workspace, '.git', 'config');
      const before = readFileSync(config, 'utf8');
      const hooks = inConfig({ 'hook.evil.event': 'reference-transaction', 'hook.evil.command': evil });
      const included = colibri.path('hooks-config');
      writeFileSync(included, hooks);
      const tip = git('rev-parse', REF);
      await mustRun('call', 'server_ping');

      const refused: unknown[] = [];
      for (const text of [hooks, inConfig({ 'include.path': included })]) {
        writeFileSync(config, `${before}${text}`);
        refused.push(await run(['anchor', '--git']));
      }
      const [after, marks] = [git('rev-parse', REF), takeMarks()];
      writeFileSync(config, before);
      // The user's own hooks are the user's, and do not run either.
      writeFileSync(colibri.path('home', '.gitconfig'), hooks);
      const kept = await run(['anchor', '--git']);
      rmSync(colibri.path('home', '.gitconfig'));

      const sentence = expect.stringContaining('configures hooks');
      expect(refused).toEqual(refused.map(() => expect.objectContaining({ code: 1, stderr: sentence })));
      expect([after, marks]).toEqual([tip, '']);
      expect([kept.code, takeMarks()]).toEqual([0, '']);
    },
  );

  test(
    proving('programs.links', 'a checkpoint that goes into another repository says which one'),
    async () => {
      const [own, kept] = [join(workspace, '.git'), colibri.path('kept')];
      const other = colibri.path('other-repository');
      git('init', '-q', other);
      await mustRun('call', 'server_ping');
      const here = await run(['anchor', '--git']);
      renameSync(own, kept);
      writeFileSync(own, `gitdir: ${join(other, '.git')}\n`);

      const byFile = await run(['anchor', '--git']);
      rmSync(own);
      mkdirSync(own);
      writeFileSync(join(own, 'HEAD'), 'ref: refs/heads/main\n');
      writeFileSync(join(own, 'commondir'), `${join(other, '.git')}\n`);
      const byFolder = await run(['anchor', '--git', '--json']);
      rmSync(own, { recursive: true });
      renameSync(kept, own);

      expect(here.stdout).not.toContain(' in ');
      expect(byFile.stdout).toContain(`${REF} in ${realpathSync(other)}.\n`);
      expect(JSON.parse(byFolder.stdout)).toMatchObject({ repository: realpathSync(other), already: true });
    },
  );

  test.runIf(process.getuid?.() === 0)(
    proving(
      'programs.safe-directory',
      'a repository of another user is named, with what to do; nothing is called missing',
    ),
    async () => {
      chownSync(join(workspace, '.git'), 4711, 4711);
      chownSync(workspace, 4711, 4711);

      const { remarks } = await verified();
      const anchored = await run(['anchor', '--git']);

      const sentence = expect.stringMatching(
        /belongs to another user\. If you trust it, run: git config --global --add safe\.directory/,
      );
      expect(remarks).toEqual([sentence]);
      expect(anchored).toMatchObject({ code: 1, stderr: sentence });
      chownSync(join(workspace, '.git'), 0, 0);
      chownSync(workspace, 0, 0);
    },
  );
});
