import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';

const HOSTILE = '```dataviewjs\nalert(1)\n```\n<script>x</script> `$= dv` <% tp %> [[T-0002]] ![[x]] %%c%%';

let colibri: Playground;
let vault: string;

beforeEach(async () => {
  colibri = new Playground();
  vault = colibri.path('vault');
  mkdirSync(vault);
  const server = await colibri.start();
  await server.call('task_create', { title: 'First: "quoted"', project: 'con', labels: ['a b'] });
  await server.call('task_create', {
    title: HOSTILE.slice(0, 200),
    project: 'con',
    depends_on: ['T-0001'],
    description: HOSTILE,
  });
  await server.call('task_create', {
    title: 'Child',
    project: 'con',
    parent_id: 'T-0001',
    proof_grade: true,
  });
  await server.call('audit_session_start', { task_id: 'T-0003', auditor_id: 'an auditor' });
  await server.call('thought_record', { task_id: 'T-0003', type: 'decision', content: HOSTILE });
  await server.call('merkle_finalize', { session_id: 'A-0001' });
  await server.closeInput();
});

afterEach(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

const exportNotes = () => runColibri(colibri, ['obsidian', '--vault', vault, '--json']);
const note = (path: string) => readFileSync(join(vault, 'Colibri', path), 'utf8');

function frontMatterOf(text: string): Record<string, unknown> {
  return load(text.split('\n---\n')[0]?.slice(4) ?? '') as Record<string, unknown>;
}

describe('colibri obsidian', () => {
  test('writes a note per task and session with front matter a query can use', async () => {
    const { code } = await exportNotes();

    expect(code).toBe(0);
    expect(readdirSync(join(vault, 'Colibri', 'Tasks')).sort()).toEqual([
      'T-0001.md',
      'T-0002.md',
      'T-0003.md',
    ]);
    expect(readdirSync(join(vault, 'Colibri', 'Sessions'))).toEqual(['A-0001.md']);
    expect(frontMatterOf(note('Tasks/T-0001.md'))).toMatchObject({
      id: 'T-0001',
      aliases: ['First: "quoted"'],
      status: 'backlog',
      labels: ['a b'],
      intact: true,
    });
    expect(frontMatterOf(note('Tasks/T-0002.md'))).toMatchObject({ depends_on: ['[[T-0001]]'] });
    expect(frontMatterOf(note('Tasks/T-0003.md'))).toMatchObject({ parent: '[[T-0001]]' });
    // P4: who opened it is the caller, not the auditor it is for.
    expect(note('Sessions/A-0001.md')).toMatch(/ opened by contract-test for an auditor at /);
    expect(note('Sessions/A-0001.md')).toMatch(/root `[0-9a-f]{64}`/);
  });

  test('shows hostile text without any of its syntax left alive', async () => {
    await exportNotes();

    for (const path of ['Tasks/T-0002.md', 'Tasks/T-0003.md']) {
      const body = note(path).split('\n---\n').slice(1).join('\n---\n');
      expect(body).not.toMatch(/^>?\s*```dataviewjs/m);
      expect(body).not.toContain('<script>');
      expect(body).not.toContain('`$=');
      expect(body).not.toContain('<%');
      expect(body).not.toContain('![[');
    }
  });

  test('changes nothing when it runs a second time', async () => {
    await exportNotes();
    const before = statSync(join(vault, 'Colibri', 'Tasks', 'T-0001.md')).mtimeMs;

    const second = JSON.parse((await exportNotes()).stdout) as { written: string[]; unchanged: number };

    expect(second.written).toEqual([]);
    expect(second.unchanged).toBe(4);
    expect(statSync(join(vault, 'Colibri', 'Tasks', 'T-0001.md')).mtimeMs).toBe(before);
  });

  test('keeps and names a note somebody edited, and updates the others', async () => {
    await exportNotes();
    const path = join(vault, 'Colibri', 'Tasks', 'T-0001.md');
    writeFileSync(path, `${readFileSync(path, 'utf8')}\nmy own words\n`);
    const server = await colibri.start();
    for (const task_id of ['T-0001', 'T-0002']) await server.call('task_update', { task_id, status: 'todo' });
    await server.closeInput();

    const report = JSON.parse((await exportNotes()).stdout) as { written: string[]; kept: string[] };

    expect(report.kept).toEqual(['Tasks/T-0001.md']);
    expect(report.written).toContain('Tasks/T-0002.md');
    expect(readFileSync(path, 'utf8')).toContain('my own words');
  });

  test('never touches a note it did not write, nor follows a link in its place', async () => {
    const outside = colibri.path('outside.md');
    writeFileSync(outside, 'precious');
    mkdirSync(join(vault, 'Colibri', 'Tasks'), { recursive: true });
    writeFileSync(join(vault, 'Colibri', 'Tasks', 'T-0001.md'), 'mine');
    symlinkSync(outside, join(vault, 'Colibri', 'Tasks', 'T-0002.md'));

    const report = JSON.parse((await exportNotes()).stdout) as { kept: string[] };

    expect(report.kept.sort()).toEqual(['Tasks/T-0001.md', 'Tasks/T-0002.md']);
    expect(note('Tasks/T-0001.md')).toBe('mine');
    expect(readFileSync(outside, 'utf8')).toBe('precious');
  });

  test('deletes a stale note only while it is exactly as written, and never outside its folder', async () => {
    await exportNotes();
    const manifest = join(vault, 'Colibri', '.colibri-notes.json');
    const known = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, string>;
    writeFileSync(join(vault, 'victim.md'), '');
    const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    writeFileSync(join(vault, 'Colibri', 'old.md'), '');
    writeFileSync(manifest, JSON.stringify({ ...known, 'old.md': empty, '../victim.md': empty }));

    const report = JSON.parse((await exportNotes()).stdout) as { deleted: string[] };

    expect(report.deleted).toEqual(['old.md']);
    expect(readFileSync(join(vault, 'victim.md'), 'utf8')).toBe('');
  });

  test('writes a note again that was deleted', async () => {
    await exportNotes();
    unlinkSync(join(vault, 'Colibri', 'Tasks', 'T-0003.md'));

    const report = JSON.parse((await exportNotes()).stdout) as { written: string[] };

    expect(report.written).toEqual(['Tasks/T-0003.md']);
  });

  test('says what is missing when the vault is not there', async () => {
    const { code, stderr } = await runColibri(colibri, ['obsidian', '--vault', colibri.path('nowhere')]);

    expect(code).toBe(2);
    expect(stderr).toContain('is not a folder');
  });
});
