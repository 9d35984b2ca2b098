import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_list', 'task_next_actions');
const noSkills = await toolsMissing('skill_list');

const TASK = { title: 'a task', project: 'demo' };

/** A refused value, and a word of what is allowed instead. */
const REFUSED: readonly [variable: string, value: string, allowed: RegExp][] = [
  ['COLIBRI_MODE', 'full', /FULL.*READONLY.*TEST.*MINIMAL/],
  ['COLIBRI_MODE', 'ADMIN', /FULL.*READONLY.*TEST.*MINIMAL/],
  ['COLIBRI_PROJECT', 'Not A Slug', /a-z|slug/],
  ['COLIBRI_PROJECTS', 'fine,NOT', /a-z|slug/],
  ['COLIBRI_WORKFLOW', 'scrum', /kanban.*pipeline/],
  ['COLIBRI_AGENT_ID', '   ', /128/],
  ['COLIBRI_AGENT_ID', 'x'.repeat(129), /128/],
  ['COLIBRI_STARTUP_TIMEOUT_MS', '0', /milliseconds/],
  ['COLIBRI_STARTUP_TIMEOUT_MS', '1.5', /milliseconds/],
  ['COLIBRI_STARTUP_TIMEOUT_MS', 'soon', /milliseconds/],
  ['COLIBRI_LOG_LEVEL', 'verbose', /error.*warn.*info.*debug/],
];

proves(
  ['config.refusal', 'config.mode'],
  'an invalid value is exit 1 and named with what it was and what is allowed',
  async ({ colibri }) => {
    for (const [variable, value, allowed] of REFUSED) {
      const server = colibri.spawn({ env: { [variable]: value } });

      expect(await server.waitForExit()).toEqual({ code: 1, signal: null });
      expect(server.stderr).toContain(variable);
      expect(server.stderr).toContain(value);
      expect(server.stderr).toMatch(allowed);
      expect(server.messages).toEqual([]);
    }
    expect(existsSync(dirname(colibri.dbPath))).toBe(false);
  },
);

proves('config.refusal', 'all wrong values are named at once', async ({ colibri }) => {
  const server = colibri.spawn({ env: { COLIBRI_MODE: 'X', COLIBRI_WORKFLOW: 'Y', COLIBRI_LOG_LEVEL: 'Z' } });

  expect((await server.waitForExit()).code).toBe(1);
  for (const variable of ['COLIBRI_MODE', 'COLIBRI_WORKFLOW', 'COLIBRI_LOG_LEVEL']) {
    expect(server.stderr).toContain(variable);
  }
});

proves('config.ams', 'a set AMS_* variable is exit 1 and named with its value', async ({ colibri }) => {
  for (const [variable, value] of [
    ['AMS_MODE', 'FULL'],
    ['AMS_DB_PATH', '/somewhere/else.db'],
  ] as const) {
    const server = colibri.spawn({ env: { [variable]: value } });

    expect(await server.waitForExit()).toEqual({ code: 1, signal: null });
    expect(server.stderr).toMatch(new RegExp(`${variable}.*COLIBRI_`, 's'));
    expect(server.stderr).toContain(value);
  }
});

proves(
  'config.variables-only',
  'a name that only looks like a setting is ignored with a warning',
  async ({ colibri }) => {
    const server = await colibri.start({
      env: { COLIBRI_MOD: 'MINIMAL', MODE: 'MINIMAL', DB_PATH: '/nowhere' },
    });

    const { envelope } = await server.call('server_health');

    expect(envelope?.data).toMatchObject({ mode: 'FULL', db: { path: colibri.shownPath } });
    expect(server.stderr).toMatch(/COLIBRI_MOD .*COLIBRI_MODE/);
  },
);

proves('config.frozen', 'what was read from the environment cannot be changed', ({ colibri }) => {
  const config = readConfig({ COLIBRI_MODE: 'TEST', HOME: colibri.folder }, colibri.folder);

  expect(Object.isFrozen(config)).toBe(true);
  expect(config.mode).toBe('TEST');
});

proves('config.db-path', 'a relative database path starts at the workspace', async ({ colibri }) => {
  const server = await colibri.start({
    env: { COLIBRI_DB_PATH: join('deep', 'er', 'my.db'), CLAUDE_PROJECT_DIR: colibri.path('work') },
  });

  await server.call('server_ping');

  expect(existsSync(colibri.path('work', 'deep', 'er', 'my.db'))).toBe(true);
});

proves(
  ['workspace.client', 'config.db-path'],
  'the client’s project folder is the workspace, before any other',
  async ({ colibri }) => {
    mkdirSync(colibri.path('here', '.git'), { recursive: true });
    const server = await colibri.start({
      folder: colibri.path('here'),
      env: { COLIBRI_DB_PATH: undefined, CLAUDE_PROJECT_DIR: colibri.path('there') },
    });

    await server.call('server_ping');

    expect(existsSync(colibri.path('there', '.colibri', 'colibri.db'))).toBe(true);
    expect(existsSync(colibri.path('here', '.colibri'))).toBe(false);
  },
);

proves(
  'workspace.nearest',
  'the nearest folder with .git or .colibri above the working directory is the workspace',
  async ({ colibri }) => {
    mkdirSync(colibri.path('repository', '.git'), { recursive: true });
    mkdirSync(colibri.path('repository', 'part', '.colibri'), { recursive: true });
    mkdirSync(colibri.path('repository', 'part', 'deep'), { recursive: true });
    mkdirSync(colibri.path('repository', 'other', 'deep'), { recursive: true });

    for (const [start, workspace] of [
      ['part/deep', 'part'],
      ['other/deep', ''],
    ] as const) {
      const server = await colibri.start({
        folder: colibri.path('repository', start),
        env: { COLIBRI_DB_PATH: undefined },
      });
      const { envelope } = await server.call('server_health');
      expect(envelope?.data?.db).toMatchObject({
        path: join(colibri.path('repository'), workspace, '.colibri', 'colibri.db'),
      });
    }
  },
);

proves(
  'workspace.user-folder',
  'started in / the server keeps to the user’s data folder',
  async ({ colibri }) => {
    const server = await colibri.start({ folder: '/', env: { COLIBRI_DB_PATH: undefined } });

    const { envelope } = await server.call('server_health');

    const path = (envelope?.data?.db as { path: string } | undefined)?.path ?? '';
    expect(path.startsWith(colibri.folder)).toBe(true);
    expect(existsSync(path)).toBe(true);
  },
);

proves(
  'workspace.gitignore',
  '.colibri keeps itself out of git, and leaves a .gitignore of the user alone',
  async ({ colibri }) => {
    mkdirSync(colibri.path('kept', '.colibri'), { recursive: true });
    writeFileSync(colibri.path('kept', '.colibri', '.gitignore'), '# mine\n');

    for (const workspace of ['fresh', 'kept']) {
      const env = { COLIBRI_DB_PATH: undefined, CLAUDE_PROJECT_DIR: colibri.path(workspace) };
      await (await colibri.start({ env })).call('server_ping');
    }

    expect(readFileSync(colibri.path('fresh', '.colibri', '.gitignore'), 'utf8')).toBe('*\n');
    expect(readFileSync(colibri.path('kept', '.colibri', '.gitignore'), 'utf8')).toBe('# mine\n');
  },
);

for (const umask of ['000', '022', '077']) {
  proves(
    'files.private',
    `under umask ${umask} each folder is 0700 and every file 0600`,
    async ({ colibri }) => {
      const server = await colibri.start({
        wrapper: ['/bin/sh', '-c', `umask ${umask}; exec "$@"`, 'sh'],
        env: { COLIBRI_DB_PATH: undefined, CLAUDE_PROJECT_DIR: colibri.path('work') },
      });
      await server.call('server_ping');
      const running = modesUnder(colibri.path('work', '.colibri'));
      await server.closeInput();
      const stopped = {
        ...modesUnder(colibri.path('work', '.colibri')),
        ...modesUnder(colibri.path('config')),
      };

      expect(modeOf(colibri.path('work', '.colibri'))).toBe('700');
      expect(Object.keys(running)).toEqual(
        expect.arrayContaining(['colibri.db', 'colibri.db-wal', 'colibri.db-shm', '.gitignore']),
      );
      expect(
        Object.entries({ ...running, ...stopped }).filter(
          ([, mode]) => !['file 600', 'folder 700'].includes(mode),
        ),
      ).toEqual([]);
    },
  );
}

proves('files.private', 'a database that others could read is closed to them', async ({ colibri }) => {
  const first = await colibri.start();
  await first.call('server_ping');
  await first.closeInput();
  chmodSync(colibri.dbPath, 0o644);

  const second = await colibri.start({ wrapper: ['/bin/sh', '-c', 'umask 022; exec "$@"', 'sh'] });
  await second.call('server_ping');

  expect(['', '-wal', '-shm'].map((end) => modeOf(colibri.dbPath + end))).toEqual(['600', '600', '600']);
});

proves(
  'config.log-level',
  'error says nothing when nothing is wrong, debug no less than info',
  async ({ colibri }) => {
    const lines: number[] = [];
    for (const level of ['error', 'info', 'debug']) {
      const server = await colibri.start({ env: { COLIBRI_LOG_LEVEL: level } });
      await server.call('server_ping');
      await server.closeInput();
      lines.push(server.stderr.split('\n').length - 1);
    }

    const [error, info, debug] = lines as [number, number, number];
    expect(error).toBe(0);
    expect(info).toBeGreaterThan(0);
    expect(debug).toBeGreaterThanOrEqual(info);
  },
);

proves(
  'config.workflow',
  'COLIBRI_WORKFLOW is the workflow of a task that names none, kanban when unset',
  async ({ colibri }) => {
    const [unset, pipeline] = [
      await colibri.start(),
      await colibri.start({ env: { COLIBRI_WORKFLOW: 'pipeline' } }),
    ];

    expect((await unset.call('task_create', TASK)).envelope?.data).toMatchObject({
      workflow: 'kanban',
      status: 'backlog',
    });
    expect((await pipeline.call('task_create', TASK)).envelope?.data).toMatchObject({
      workflow: 'pipeline',
      status: 'INIT',
    });
    expect(
      (await pipeline.call('task_create', { ...TASK, workflow: 'kanban' })).envelope?.data,
    ).toMatchObject({ workflow: 'kanban' });
  },
  { unless: noTasks },
);

proves(
  'config.project',
  'COLIBRI_PROJECT is used where a call may leave the project out',
  async ({ colibri }) => {
    const server = await colibri.start({ env: { COLIBRI_PROJECT: 'mine' } });
    await server.call('task_create', { ...TASK, project: 'mine' });
    await server.call('task_create', { ...TASK, project: 'theirs' });

    expect((await server.call('task_list', {})).envelope?.data).toMatchObject({
      total_count: 1,
      tasks: [{ project: 'mine' }],
    });
    expect((await server.call('task_list', { project: 'theirs' })).envelope?.data).toMatchObject({
      total_count: 1,
    });
    expect((await server.call('task_next_actions', {})).envelope?.data).toMatchObject({ project: 'mine' });
  },
  { unless: noTasks },
);

proves(
  'config.projects',
  'with COLIBRI_PROJECTS a task in another project is refused',
  async ({ colibri }) => {
    const server = await colibri.start({ env: { COLIBRI_PROJECTS: 'mine, ours' } });

    expect((await server.call('task_create', { ...TASK, project: 'ours' })).error).toBeUndefined();
    expect((await server.call('task_create', { ...TASK, project: 'theirs' })).error).toMatchObject({
      code: 'ERR_PROJECT_NOT_FOUND',
      message: expect.stringMatching(/mine.*ours/),
    });
  },
  { unless: noTasks },
);

proves(
  'config.projects',
  'an active project that is not listed is a refusal to start',
  async ({ colibri }) => {
    const server = colibri.spawn({ env: { COLIBRI_PROJECTS: 'mine,ours', COLIBRI_PROJECT: 'theirs' } });

    expect((await server.waitForExit()).code).toBe(1);
    expect(server.stderr).toMatch(/COLIBRI_PROJECT.*theirs/);
  },
);

proves(
  ['config.skills-dir', 'boot.skills'],
  'skills come from COLIBRI_SKILLS_DIR, else from .agents/skills, before the first call',
  async ({ colibri }) => {
    for (const [folder, name] of [
      ['elsewhere', 'far-skill'],
      [join('.agents', 'skills'), 'near-skill'],
      [join('..', 'home', '.agents', 'skills'), 'home-skill'],
    ] as const) {
      const place = colibri.path('work', folder, name);
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, 'SKILL.md'), `---\nname: ${name}\ndescription: does ${name}\n---\nbody\n`);
    }
    const env = { CLAUDE_PROJECT_DIR: colibri.path('work'), HOME: colibri.path('home') };
    const near = await colibri.start({ env });
    const far = await colibri.start({ env: { ...env, COLIBRI_SKILLS_DIR: 'elsewhere' } });

    expect((await near.call('skill_list', {})).envelope?.data?.skills).toMatchObject([
      { name: 'near-skill' },
    ]);
    expect((await far.call('skill_list', {})).envelope?.data?.skills).toMatchObject([{ name: 'far-skill' }]);
  },
  { unless: noSkills },
);

/** Each file and folder below a folder, with its kind and mode. */
function modesUnder(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries.map((entry) => [
      entry.name,
      `${entry.isDirectory() ? 'folder' : 'file'} ${modeOf(join(entry.parentPath, entry.name))}`,
    ]),
  );
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
