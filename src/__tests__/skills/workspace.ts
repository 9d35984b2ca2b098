import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../clock.ts';
import { createSkillRegistry, type SkillRegistry } from '../../domains/skills/registry.ts';

export interface Workspace {
  readonly path: string;
  /** Writes a file below the workspace, with its folders. */
  write(path: string, content: string | Uint8Array): void;
  /** Writes `.agents/skills/<name>/SKILL.md`. */
  skill(name: string, content?: string | Uint8Array): void;
  registry(roots?: readonly string[], clock?: Pick<Clock, 'monotonic'>): SkillRegistry;
}

/** A real folder of its own, gone when the test is over. */
export function makeWorkspace(): Workspace {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'colibri-skills-')));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const write: Workspace['write'] = (place, content) => {
    mkdirSync(dirname(join(path, place)), { recursive: true });
    writeFileSync(join(path, place), content);
  };
  return {
    path,
    write,
    skill: (name, content = skillText(name)) => write(join('.agents', 'skills', name, 'SKILL.md'), content),
    registry: (roots = ['.agents/skills', '.claude/skills'], clock = systemClock) =>
      createSkillRegistry({ roots: roots.map((root) => join(path, root)), workspace: path, clock }),
  };
}

export function skillText(name: string, description = `Does what ${name} does.`, more = ''): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n`;
}

/** A real named pipe: whoever opens it the plain way waits for ever. */
export function makePipe(path: string): void {
  if (spawnSync('sh', ['-c', 'mkfifo "$1"', 'sh', path]).status !== 0) throw new Error(`no pipe at ${path}`);
}
