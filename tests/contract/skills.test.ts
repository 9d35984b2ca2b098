import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { load } from 'js-yaml';
import { expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';

interface Listed {
  readonly skills: readonly {
    readonly name: string;
    readonly description: string;
    readonly digest: string;
  }[];
  readonly skipped?: readonly { readonly path: string; readonly reason: string }[];
}

async function listed(server: ServerProcess): Promise<Listed> {
  const { envelope } = await server.call('skill_list', {});
  return envelope?.data as unknown as Listed;
}

test('skills are listed from the disk as it is now; what is passed over is named with its reason, also by health', async () => {
  const colibri = new Playground();
  const skill = (path: string, text: string) => {
    mkdirSync(dirname(colibri.path(path)), { recursive: true });
    writeFileSync(colibri.path(path), text);
  };
  try {
    skill('.agents/skills/good/SKILL.md', '---\nname: good\ndescription: Does good.\n---\n# Good\n');
    skill('.agents/skills/mute/SKILL.md', '---\nname: mute\n---\n');
    skill('.claude/skills/good/SKILL.md', '---\nname: good\ndescription: Shadowed.\n---\n');
    skill('outside/SKILL.md', '---\nname: outside\ndescription: Not ours.\n---\n');
    symlinkSync(colibri.path('outside'), colibri.path('.agents/skills/outside'));
    const server = await colibri.start({ env: { CLAUDE_PROJECT_DIR: colibri.folder } });
    const list = () => listed(server);

    const first = await list();
    const { envelope } = await server.call('server_health');
    writeFileSync(colibri.path('.agents/skills/good/notes.md'), 'more');
    const second = await list();
    await server.call('task_create', { title: 'a', project: 'demo' });
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'x' });
    await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' });

    expect(first.skills.map(({ name }) => name)).toEqual(['good']);
    const passed = first.skipped?.map(({ path, reason }) => `${path}: ${reason}`).join('\n') ?? '';
    expect(passed).toMatch(/mute.*description/);
    expect(passed).toMatch(/\.claude.*good/);
    expect(passed).toMatch(/outside/);
    expect(envelope?.data).toMatchObject({
      skills: { loaded: 1, skipped: first.skipped?.length, reasons: first.skipped },
    });
    expect(second.skills[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(second.skills[0]?.digest).not.toBe(first.skills[0]?.digest);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});

test('K1: a name and a description are answered as a YAML parser reads them, and shown on one line', async () => {
  const colibri = new Playground();
  const yaml =
    'name: "Two\\nlines\\t/ and \\e[31mmore "\ndescription: |\n  First: one.\n\n    Second.\nlicense: MIT\n';
  mkdirSync(colibri.path('.agents/skills/odd'), { recursive: true });
  mkdirSync(colibri.path('vault'));
  writeFileSync(colibri.path('.agents/skills/odd/SKILL.md'), `---\n${yaml}---\n# Odd\n`);
  try {
    const server = await colibri.start({ env: { CLAUDE_PROJECT_DIR: colibri.folder } });
    const { name, description } = load(yaml) as Record<string, string>;
    const { skills } = await listed(server);
    const session = { task_id: 'T-0001', session_id: 'A-0001' };
    await server.call('task_create', { title: 'a', project: 'demo' });
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'x' });
    await server.call('thought_record', { ...session, type: 'plan', content: 'c' });
    await server.call('merkle_finalize', { session_id: 'A-0001' });
    await runColibri(colibri, ['prove', 'T-0001', '-o', colibri.path('proof')]);
    const said = async (...args: string[]) => (await runColibri(colibri, args)).stdout;
    const certificate = await said('show', colibri.path('proof'));
    await said('obsidian', '--vault', colibri.path('vault'));
    const note = readFileSync(colibri.path('vault/Colibri/Sessions/A-0001.md'), 'utf8');
    await said('export', '-o', colibri.path('bundle.zip'));
    const python = new URL('../../docs/verify-bundle.py', import.meta.url).pathname;

    expect(skills).toMatchObject([{ name, description }]);
    expect(await said('show', 'A-0001', '--json')).toContain(JSON.stringify(name));
    expect(certificate).toMatch(/^ +Two lines.*more .*[0-9a-f]{12}/m);
    expect(note).toMatch(/^- Two lines.*more .*[0-9a-f]{64}`$/m);
    expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 0 });
    execFileSync('python3', [python, colibri.path('bundle.zip')]);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});

test('K5: the Python in the reference recomputes the digest that a listing shows', async () => {
  const page = readFileSync(new URL('../../docs/reference/skills.md', import.meta.url), 'utf8');
  const script = /```python\n(.*?)```/s.exec(page)?.[1] ?? '';
  const colibri = new Playground();
  const put = (path: string, text: string) => {
    mkdirSync(dirname(colibri.path(path)), { recursive: true });
    writeFileSync(colibri.path(path), text);
  };
  try {
    put('.agents/skills/odd/SKILL.md', '---\nname: odd\ndescription: Has odd files.\n---\n');
    for (const name of [
      'a/b',
      'a-b',
      'ünï/😀',
      'ünï/\uffee',
      'back\\slash',
      'new\nline',
      '.git/x',
      'node_modules/y',
    ])
      put(`.agents/skills/odd/${name}`, `content of ${name}`);
    symlinkSync('/etc/hostname', colibri.path('.agents/skills/odd/link'));
    const server = await colibri.start({ env: { CLAUDE_PROJECT_DIR: colibri.folder } });

    const { skills } = await listed(server);
    const said = execFileSync('python3', ['-', colibri.path('.agents/skills/odd')], {
      input: script,
      encoding: 'utf8',
    });

    expect(said.trim()).toBe(skills[0]?.digest);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});

test('C5, K2: skills in the home folder count only when named; doctor names everything that is skipped', async () => {
  const colibri = new Playground();
  const put = (path: string, text: string) => {
    mkdirSync(dirname(colibri.path(path)), { recursive: true });
    writeFileSync(colibri.path(path), text);
  };
  try {
    put('home/.agents/skills/mine/SKILL.md', '---\nname: mine\ndescription: Mine.\n---\n');
    put('home/.claude/skills/mine/SKILL.md', '---\nname: mine\ndescription: Mine.\n---\n');
    put('work/.agents/skills/ours/SKILL.md', '---\nname: ours\ndescription: Ours.\nx: [@a, b]\n---\n');
    put('work/.agents/skills/ours/inner/SKILL.md', '---\nname: inner\ndescription: Hidden.\n---\n');
    for (let i = 0; i < 200; i += 1) put(`work/.agents/skills/broken-${i}/SKILL.md`, '# nothing');
    const env = { CLAUDE_PROJECT_DIR: colibri.path('work'), HOME: colibri.path('home') };
    const names = async (more: Record<string, string>) => {
      const server = await colibri.start({ env: { ...env, ...more } });
      const { skills } = await listed(server);
      await server.closeInput();
      return skills.map(({ name }) => name);
    };

    expect(await names({})).toEqual(['ours']);
    expect(await names({ COLIBRI_SKILLS_DIR: colibri.path('home/.agents/skills') })).toEqual(['mine']);
    const { stdout } = await runColibri(colibri, ['doctor', '--json'], { env });

    const found = (JSON.parse(stdout) as { what: string; found: string }[]).filter(
      ({ what }) => what === 'skills',
    );
    expect(found[0]?.found).toMatch(/^1 in force/);
    expect(found.filter(({ found }) => /broken-\d+\/SKILL\.md: no front matter/.test(found))).toHaveLength(
      200,
    );
    expect(found.some(({ found }) => /ours\/SKILL\.md: in force, but not all/.test(found))).toBe(true);
    expect(found.some(({ found }) => /inner\/SKILL\.md: part of the skill/.test(found))).toBe(true);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});
