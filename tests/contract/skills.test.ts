import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';

interface Listed {
  readonly skills: readonly { readonly name: string; readonly digest: string }[];
  readonly skipped?: readonly { readonly path: string; readonly reason: string }[];
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
    const list = async () => (await server.call('skill_list', {})).envelope?.data as unknown as Listed;

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
