import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createSkillRegistry } from '../../domains/skills/registry.ts';

const REPOSITORY = join(import.meta.dirname, '..', '..', '..');

const TOOLS = [
  ...['task_create', 'task_get', 'task_update', 'task_list', 'task_next_actions'],
  ...['thought_record', 'thought_record_list', 'audit_verify_chain'],
  ...['audit_session_start', 'merkle_finalize', 'merkle_root'],
  ...['skill_list', 'server_ping', 'server_health'],
];

describe('the skill this repository ships', () => {
  test('is loaded by Colibri without a word', async () => {
    const root = join(REPOSITORY, '.agents', 'skills');

    const { skills, skipped } = await createSkillRegistry({ roots: [root], workspace: REPOSITORY }).list();

    expect(skills).toMatchObject([
      { name: 'colibri', path: '.agents/skills/colibri/SKILL.md', version: '1.0.0' },
    ]);
    expect(skills[0]?.capabilities).toEqual(['task-pipeline', 'decision-trail', 'proof-sessions']);
    expect(skipped).toEqual([]);
  });

  test('keeps to the lengths of the public format and names all fourteen tools', () => {
    const text = readFileSync(join(REPOSITORY, '.agents', 'skills', 'colibri', 'SKILL.md'), 'utf8');

    expect(text.split('\n').length).toBeLessThan(500);
    for (const tool of TOOLS) expect(text).toContain(`\`${tool}\``);
  });
});
