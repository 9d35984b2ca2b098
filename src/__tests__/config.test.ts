import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join, parse } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Config, type Environment, LOG_LEVELS, readConfig, VARIABLES } from '../config.ts';
import { ColibriError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { MODES } from '../modes.ts';
import { scratchFolder } from './storage/scratch.ts';

const ROOT = parse(process.cwd()).root;
const read = (env: Environment) => readConfig(env, ROOT);

function refusalOf(env: Environment): ColibriError {
  try {
    read(env);
  } catch (error) {
    if (error instanceof ColibriError) return error;
  }
  throw new Error(`it was not refused: ${JSON.stringify(env)}`);
}

function complaintsAbout(env: Environment): readonly string[] {
  const { code, message, details } = refusalOf(env);
  // A wrong mode alone has a code of its own.
  const onlyMode = Object.keys(env).join() === 'COLIBRI_MODE';
  expect(code).toBe(onlyMode ? 'ERR_INVALID_MODE' : 'ERR_CONFIG_INVALID');
  expect(message).toBe((details.complaints as string[]).join('\n'));
  return details.complaints as string[];
}

describe('without any variable', () => {
  test('everything has its default', () => {
    const folder = scratchFolder();
    mkdirSync(join(folder, '.git'));

    expect(readConfig({ HOME: '/home/ada' }, folder)).toMatchObject({
      mode: 'FULL',
      workspace: folder,
      dbPath: join(folder, '.colibri', 'colibri.db'),
      project: undefined,
      projects: undefined,
      workflow: 'kanban',
      agentId: undefined,
      isProject: true,
      skillsDirs: [join(folder, '.agents', 'skills'), join(folder, '.claude', 'skills')],
      startupTimeoutMs: 30_000,
      logLevel: 'info',
      warnings: [],
    });
  });

  test('an empty text is the same as no variable', () => {
    const blank = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, '']));

    expect(read({ HOME: '/home/a', ...blank })).toEqual(read({ HOME: '/home/a' }));
  });
});

describe('a valid value', () => {
  type Accepted = [name: string, value: string, read: Partial<Config>];

  test.each<Accepted>([
    ...MODES.map((mode): Accepted => ['COLIBRI_MODE', mode, { mode }]),
    ['COLIBRI_DB_PATH', '/data/work.db', { dbPath: '/data/work.db' }],
    ['COLIBRI_PROJECT', 'a', { project: 'a' }],
    ['COLIBRI_PROJECT', `${'z9-'.repeat(21)}0`, { project: `${'z9-'.repeat(21)}0` }],
    ['COLIBRI_PROJECTS', 'one', { projects: ['one'] }],
    ['COLIBRI_PROJECTS', 'one, two ,3', { projects: ['one', 'two', '3'] }],
    ['COLIBRI_WORKFLOW', 'kanban', { workflow: 'kanban' }],
    ['COLIBRI_WORKFLOW', 'pipeline', { workflow: 'pipeline' }],
    ['COLIBRI_AGENT_ID', 'Ada 🐦', { agentId: 'Ada 🐦' }],
    ['COLIBRI_AGENT_ID', 'x'.repeat(LIMITS.actorCharsMax), { agentId: 'x'.repeat(LIMITS.actorCharsMax) }],
    ['COLIBRI_SKILLS_DIR', '/skills', { skillsDirs: ['/skills'] }],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '1', { startupTimeoutMs: 1 }],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '600000', { startupTimeoutMs: 600_000 }],
    ...LOG_LEVELS.map((logLevel): Accepted => ['COLIBRI_LOG_LEVEL', logLevel, { logLevel }]),
  ])('of %s is taken: %s', (name, value, expected) => {
    expect(read({ [name]: value })).toMatchObject(expected);
  });

  test('of a path is taken from the workspace when it is relative', () => {
    const folder = scratchFolder();

    const config = readConfig(
      {
        CLAUDE_PROJECT_DIR: folder,
        COLIBRI_DB_PATH: 'data/work.db',
        COLIBRI_SKILLS_DIR: ['skills', '/shared', ''].join(delimiter),
      },
      ROOT,
    );

    expect(config.dbPath).toBe(join(folder, 'data', 'work.db'));
    expect(config.skillsDirs).toEqual([join(folder, 'skills'), '/shared']);
  });

  test('of COLIBRI_PROJECT may be one that COLIBRI_PROJECTS lists', () => {
    expect(read({ COLIBRI_PROJECT: 'two', COLIBRI_PROJECTS: 'one,two' }).project).toBe('two');
  });
});

describe('a value just outside', () => {
  test.each([
    'postgres://ada:opensesame@db.example.org/team',
    'POSTGRESQL://db.example.org/team',
    'file:///tmp/x',
  ])(
    'of COLIBRI_DB_PATH: a URL is not made a folder, is not repeated, and the right variable is named',
    (url) => {
      const complaint =
        'COLIBRI_DB_PATH is a URL; allowed: a path. Name a database on a server with COLIBRI_DATABASE_URL.';

      expect(() => read({ COLIBRI_DB_PATH: url })).toThrow(complaint);
    },
  );

  test.each<readonly [name: string, value: string, allowed: string]>([
    ...['full', 'Full', 'FULL ', ' FULL', 'FULL,TEST', 'READ_ONLY', 'constructor'].map(
      (mode) => ['COLIBRI_MODE', mode, 'FULL, READONLY, TEST, MINIMAL'] as const,
    ),
    ['COLIBRI_PROJECT', 'Upper', 'a project name'],
    ['COLIBRI_PROJECT', 'under_score', 'a project name'],
    ['COLIBRI_PROJECT', 'a'.repeat(65), 'a project name'],
    ['COLIBRI_PROJECT', 'a\n', 'a project name'],
    ['COLIBRI_PROJECTS', 'one,,two', 'project names'],
    ['COLIBRI_PROJECTS', ',', 'project names'],
    ['COLIBRI_PROJECTS', 'one two', 'project names'],
    ['COLIBRI_WORKFLOW', 'Kanban', 'kanban, pipeline'],
    ['COLIBRI_AGENT_ID', ' \t', '1 to 128 characters'],
    ['COLIBRI_AGENT_ID', 'x'.repeat(LIMITS.actorCharsMax + 1), '1 to 128 characters'],
    ['COLIBRI_AGENT_ID', 'half \ud83d', '1 to 128 characters'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '0', '1 to 600000'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '600001', '1 to 600000'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '-1', '1 to 600000'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '1.5', '1 to 600000'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', '1e3', '1 to 600000'],
    ['COLIBRI_STARTUP_TIMEOUT_MS', ' 5', '1 to 600000'],
    ['COLIBRI_LOG_LEVEL', 'trace', 'error, warn, info, debug'],
  ])('of %s is refused with what it was and what is allowed: %j', (name, value, allowed) => {
    const complaints = complaintsAbout({ [name]: value });

    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toContain(`${name} is ${JSON.stringify(value)}`);
    expect(complaints[0]).toContain(allowed);
  });

  test('of COLIBRI_PROJECT is one that COLIBRI_PROJECTS does not list', () => {
    expect(complaintsAbout({ COLIBRI_PROJECT: 'three', COLIBRI_PROJECTS: 'one,two' })).toEqual([
      'COLIBRI_PROJECT is "three", which COLIBRI_PROJECTS (one,two) does not list.',
    ]);
  });
});

describe('a refusal', () => {
  test('names every wrong variable at once', () => {
    const complaints = complaintsAbout({
      AMS_DB: 'x',
      AMS_MODE: 'FULL',
      COLIBRI_MODE: 'SOMETIMES',
      COLIBRI_PROJECT: 'NO',
      COLIBRI_PROJECTS: 'NO',
      COLIBRI_WORKFLOW: 'scrum',
      COLIBRI_AGENT_ID: ' ',
      COLIBRI_STARTUP_TIMEOUT_MS: 'soon',
      COLIBRI_LOG_LEVEL: 'loud',
    });

    expect(complaints.map((complaint) => complaint.split(' ')[0]).sort()).toEqual([
      'AMS_DB',
      'AMS_MODE',
      'COLIBRI_AGENT_ID',
      'COLIBRI_LOG_LEVEL',
      'COLIBRI_MODE',
      'COLIBRI_PROJECT',
      'COLIBRI_PROJECTS',
      'COLIBRI_STARTUP_TIMEOUT_MS',
      'COLIBRI_WORKFLOW',
    ]);
  });

  test.each(['AMS_MODE', 'AMS_DB_PATH', 'AMS_', 'AMS_ANYTHING'])('is what a set %s leads to', (name) => {
    const [complaint, ...more] = complaintsAbout({ [name]: '1' });

    expect(more).toEqual([]);
    expect(complaint).toContain(`${name} is "1"`);
    expect(complaint).toContain('COLIBRI_*');
  });

  test('is not what a name that only looks like another product’s leads to', () => {
    expect(read({ AMSTERDAM: 'x', MY_AMS_MODE: 'x', AMS_MODE: undefined }).mode).toBe('FULL');
  });
});

describe('an unknown COLIBRI_ name', () => {
  test.each([
    ['COLIBRI_MODES', 'COLIBRI_MODE'],
    ['COLIBRI_DBPATH', 'COLIBRI_DB_PATH'],
    ['COLIBRI_LOGLEVEL', 'COLIBRI_LOG_LEVEL'],
    ['COLIBRI_AGENT', 'COLIBRI_AGENT_ID'],
  ])('is warned of, with the setting that was meant: %s', (name, meant) => {
    expect(read({ [name]: 'x' }).warnings).toEqual([
      `${name} is not a setting of Colibri and was ignored. Did you mean ${meant}?`,
    ]);
  });

  test('that resembles nothing is warned of without a guess', () => {
    expect(read({ COLIBRI_WWWWWWWWWWWWWWWWWWWWWW: 'x' }).warnings).toEqual([
      'COLIBRI_WWWWWWWWWWWWWWWWWWWWWW is not a setting of Colibri and was ignored.',
    ]);
  });

  test('that belongs to the tests, or to somebody else, is not warned of', () => {
    expect(read({ COLIBRI_TEST_SEED: '1', COLIBRIX: '1', PATH: '/bin' }).warnings).toEqual([]);
  });
});

describe('the workspace', () => {
  test('is COLIBRI_WORKSPACE before anything a client sets, and must be an absolute path', () => {
    const env = { COLIBRI_WORKSPACE: '/named', CLAUDE_PROJECT_DIR: '/the/project', HOME: '/home/ada' };

    expect(readConfig(env, '/')).toMatchObject({
      ...{ workspace: '/named', isProject: true },
      dbPath: '/named/.colibri/colibri.db',
    });
    expect(readConfig({ ...env, COLIBRI_WORKSPACE: '' }, '/').workspace).toBe('/the/project');
    expect(() => readConfig({ ...env, COLIBRI_WORKSPACE: `\${workspaceFolder}` }, '/')).toThrow(
      `COLIBRI_WORKSPACE is "\${workspaceFolder}"; allowed: an absolute path.`,
    );
  });

  test('is CLAUDE_PROJECT_DIR where a client sets it, whatever lies around', () => {
    const folder = scratchFolder();
    mkdirSync(join(folder, '.git'));

    expect(readConfig({ CLAUDE_PROJECT_DIR: '/the/project' }, folder).workspace).toBe('/the/project');
  });

  test.each(['', 'relative/path', '$WORKSPACE'])('is not a CLAUDE_PROJECT_DIR of %j', (named) => {
    const folder = scratchFolder();
    mkdirSync(join(folder, '.git'));

    expect(readConfig({ CLAUDE_PROJECT_DIR: named }, folder).workspace).toBe(folder);
  });

  test.each(['.colibri', '.git'])('is the nearest folder at or above that holds %s', (mark) => {
    const outer = scratchFolder();
    const inner = join(outer, 'inner');
    const deep = join(inner, 'a', 'b');
    mkdirSync(deep, { recursive: true });
    mkdirSync(join(outer, mark));
    mkdirSync(join(inner, mark));

    expect(readConfig({}, deep).workspace).toBe(inner);
    expect(readConfig({}, inner).workspace).toBe(inner);
    expect(readConfig({}, outer).workspace).toBe(outer);
  });

  test('is found by a .git file too, as a worktree has one', () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, '.git'), 'gitdir: elsewhere');
    mkdirSync(join(folder, 'src'));

    expect(readConfig({}, join(folder, 'src')).workspace).toBe(folder);
  });

  test.runIf(process.platform === 'linux')('is the per-user data folder where nothing marks one', () => {
    expect(read({ HOME: '/home/ada' }).workspace).toBe('/home/ada/.local/share/colibri');
    expect(read({ HOME: '/home/ada', XDG_DATA_HOME: '/data' }).workspace).toBe('/data/colibri');
    expect(read({ HOME: '/home/ada', XDG_DATA_HOME: 'relative' }).workspace).toBe(
      '/home/ada/.local/share/colibri',
    );
  });

  test.runIf(process.platform === 'linux')('is absolute even when HOME is empty', () => {
    expect(read({ HOME: '' }).workspace).toBe(join(homedir(), '.local', 'share', 'colibri'));
  });
});

describe('the folder for keys', () => {
  test.runIf(process.platform === 'linux')('is per user and never inside the workspace', () => {
    expect(read({ HOME: '/home/ada', CLAUDE_PROJECT_DIR: '/work' }).configDir).toBe(
      '/home/ada/.config/colibri',
    );
    expect(read({ HOME: '/home/ada', XDG_CONFIG_HOME: '/settings' }).configDir).toBe('/settings/colibri');
  });

  test('is absolute', () => {
    expect(isAbsolute(read({}).configDir)).toBe(true);
  });
});

describe('the configuration', () => {
  test('is frozen, its lists too', () => {
    const config = read({ COLIBRI_PROJECTS: 'one', COLIBRI_MODES: 'x' });

    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.projects)).toBe(true);
    expect(Object.isFrozen(config.skillsDirs)).toBe(true);
    expect(Object.isFrozen(config.warnings)).toBe(true);
  });

  test('does not change when the environment does', () => {
    const env: Record<string, string> = { COLIBRI_AGENT_ID: 'first' };
    const config = read(env);

    env.COLIBRI_AGENT_ID = 'second';

    expect(config.agentId).toBe('first');
  });
});
