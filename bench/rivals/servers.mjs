// One entry a server: what is installed, how it is started, what a write is, and how to read back what is stored.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER } from '../build.mjs';

const inPackage =
  (...path) =>
  (installed) => [process.execPath, join(installed, 'node_modules', ...path)];
const textOf = (result) => result?.content?.[0]?.text ?? '';

/**
 * `place` has three folders: `home`, `work` (the project) and `data`. A write is acknowledged when its answer says so,
 * not only when it is no error: some servers answer errors as results.
 */
export const SERVERS = [
  {
    name: 'Colibri',
    store: 'SQLite, WAL',
    command: () => [process.execPath, SERVER],
    env: ({ data }) => ({ COLIBRI_DB_PATH: join(data, 'colibri.db'), COLIBRI_LOG_LEVEL: 'error' }),
    write: ({ name, text }) => ['task_create', { title: name, project: 'bench', description: text }],
    accepted: (result) => typeof result?.task_id === 'string',
    async stored(client) {
      const names = [];
      for (let total = 1; names.length < total; ) {
        const page = await client.call('task_list', { limit: 500, offset: names.length, sort_order: 'asc' });
        names.push(...page.tasks.map(({ title }) => title));
        total = page.tasks.length === 0 ? 0 : page.total_count;
      }
      return names;
    },
  },
  {
    name: 'server-memory',
    package: '@modelcontextprotocol/server-memory',
    version: '2026.8.31',
    store: 'one JSON Lines file, rewritten whole',
    command: inPackage('@modelcontextprotocol', 'server-memory', 'dist', 'index.js'),
    env: ({ data }) => ({ MEMORY_FILE_PATH: join(data, 'memory.jsonl') }),
    write: ({ name, text }) => [
      'create_entities',
      { entities: [{ name, entityType: 'task', observations: [text] }] },
    ],
    accepted: (result, { name }) => textOf(result).includes(name),
    stored: async (client) =>
      JSON.parse(textOf(await client.call('read_graph', {}))).entities.map(({ name }) => name),
  },
  {
    name: 'memory-keeper',
    package: 'mcp-memory-keeper',
    version: '0.14.1',
    store: 'SQLite, WAL',
    command: inPackage('mcp-memory-keeper', 'dist', 'index.js'),
    env: ({ data }) => ({ DATA_DIR: data }),
    write: ({ name, text }) => ['context_save', { key: name, value: text }],
    accepted: (result, { name }) => textOf(result).startsWith(`Saved: ${name}`),
    async stored(client) {
      const names = [];
      for (let offset = 0; offset !== null; ) {
        const page = JSON.parse(
          textOf(await client.call('context_get', { sort: 'key_asc', limit: 100, offset })),
        );
        names.push(...page.items.map(({ key }) => key));
        offset = page.items.length === 0 || !page.pagination.hasMore ? null : page.pagination.nextOffset;
      }
      return names;
    },
  },
  {
    name: 'Shrimp',
    package: 'mcp-shrimp-task-manager',
    version: '1.0.21',
    store: 'one JSON file, rewritten whole',
    command: inPackage('mcp-shrimp-task-manager', 'dist', 'index.js'),
    env: ({ data }) => ({ DATA_DIR: data, TEMPLATES_USE: 'en', ENABLE_GUI: 'false' }),
    write: ({ name, text }) => [
      'split_tasks',
      {
        updateMode: 'append',
        tasksRaw: JSON.stringify([{ name, description: text, implementationGuide: 'Do it.' }]),
        globalAnalysisResult: 'bench',
      },
    ],
    accepted: (result, { name }) => textOf(result).includes(name) && textOf(result).includes('**ID:**'),
    async stored(client) {
      const list = textOf(await client.call('list_tasks', { status: 'all' }));
      if (list.startsWith('Error')) throw new Error(list);
      return [...list.matchAll(/^### (.+)$/gm)].map(([, name]) => name);
    },
  },
  {
    name: 'Task Master',
    package: 'task-master-ai',
    version: '0.43.1',
    setting: 'with all its 44 tools; the 7 of its default cannot create a task',
    store: 'one JSON file, rewritten whole',
    command: inPackage('task-master-ai', 'dist', 'mcp-server.js'),
    env: () => ({ TASK_MASTER_TOOLS: 'all' }),
    write: ({ name, text }, { work }) => ['add_task', { projectRoot: work, title: name, description: text }],
    accepted: (result) => textOf(result).includes('Successfully added'),
    stored: async (client, { work }) =>
      JSON.parse(textOf(await client.call('get_tasks', { projectRoot: work }))).data.tasks.map(
        ({ title }) => title,
      ),
  },
  {
    name: 'Backlog.md',
    package: 'backlog.md',
    version: '1.52.0',
    setting: 'on files only, without git; its program is started without the wrapper of npm',
    store: 'one Markdown file a task',
    command: (installed) => [backlogProgram(installed), 'mcp', 'start'],
    prepare: (installed) => [
      backlogProgram(installed),
      ...['init', 'bench', '--no-git', '--defaults', '--integration-mode', 'mcp'],
    ],
    env: () => ({}),
    write: ({ name, text }) => ['task_create', { title: name, description: text }],
    accepted: (result) => textOf(result).startsWith('File: '),
    // Its list ends at 1,000; the files are the store.
    async stored(_client, { work }) {
      const folder = join(work, 'backlog', 'tasks');
      return readdirSync(folder).flatMap((file) => {
        const found = /^title: (.+)$/m.exec(readFileSync(join(folder, file), 'utf8'));
        return found === null ? [] : [found[1].replace(/^['"]|['"]$/g, '')];
      });
    },
  },
];

function backlogProgram(installed) {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  return join(
    installed,
    'node_modules',
    `backlog.md-${os}-${process.arch}`,
    os === 'windows' ? 'backlog.exe' : 'backlog',
  );
}
