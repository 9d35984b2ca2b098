// Writes what other programs read of this project, each with the version of package.json: server.json for the MCP registry, the
// manifest of the MCPB bundle and the Claude Code plugin. `--check` writes nothing and exits 1 where a file is out of date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { loadSource, root } from './reference/source.mjs';

const { CLIENTS, startFor, VARIABLES, catalogue } = await loadSource();
// Only their names and sentences are wanted.
const tools = catalogue({ tasks: {}, trail: {}, proof: {}, skills: {}, system: {} });
const manifest = JSON.parse(read('package.json'));
const { name, version, description, license, keywords, mcpName } = manifest;
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '');
const claudeCode = CLIENTS.find((client) => client.name === 'claude-code');
/** The very version, so that skill, hooks and server are of one piece. */
const npx = ['-y', `${name}@${version}`];
const sentence = 'A task board for AI agents that records every call and its reasons, for anyone to check.';
const author = { name: 'Colibri contributors', url: repository };

const files = {
  'server.json': {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: mcpName,
    title: 'Colibri',
    description: sentence,
    version,
    repository: { url: repository, source: 'github' },
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        transport: { type: 'stdio' },
        environmentVariables: Object.entries(VARIABLES).map(([variable, { means, otherwise }]) => ({
          name: variable,
          description: `${means}; by default: ${otherwise}`,
          isRequired: false,
          // The address of a database may hold a password.
          isSecret: variable.endsWith('_URL'),
        })),
      },
    ],
  },
  'mcpb/manifest.json': {
    manifest_version: '0.3',
    name,
    display_name: 'Colibri',
    version,
    description: sentence,
    long_description: description,
    author,
    repository: { type: 'git', url: `${repository}.git` },
    homepage: repository,
    license,
    keywords,
    server: {
      type: 'node',
      entry_point: 'dist/server.js',
      mcp_config: {
        command: 'node',
        args: [`\${__dirname}/dist/server.js`],
        env: { COLIBRI_AGENT_ID: 'claude-desktop', COLIBRI_WORKSPACE: `\${user_config.workspace}` },
      },
    },
    user_config: {
      workspace: {
        type: 'directory',
        title: 'Project folder',
        description: 'The project folder. If you leave it empty, the log is in your data folder.',
        required: false,
        // A client leaves what has no value as it is written; an empty text counts as not set.
        default: '',
      },
    },
    tools: tools.map((tool) => ({ name: tool.name, description: tool.summary })),
    compatibility: {
      platforms: ['darwin', 'win32', 'linux'],
      runtimes: { node: manifest.engines.node },
    },
  },
  '.claude-plugin/marketplace.json': {
    name: 'colibri',
    description: sentence,
    owner: author,
    plugins: [{ name: 'colibri', source: './plugin', description: sentence }],
  },
  'plugin/.claude-plugin/plugin.json': {
    name: 'colibri',
    version,
    description: sentence,
    author,
    homepage: repository,
    repository,
    license,
    keywords,
  },
  'plugin/.mcp.json': {
    mcpServers: { colibri: { command: 'npx', args: npx, env: startFor(claudeCode, undefined, 'linux').env } },
  },
  'plugin/hooks/hooks.json': {
    description: 'Reminds the agent at the end of its turn of the tasks it holds.',
    hooks: {
      Stop: [
        {
          hooks: [
            { type: 'command', command: `npx ${npx.join(' ')} remind --agent claude-code`, timeout: 30 },
          ],
        },
      ],
    },
  },
  'plugin/skills/colibri/SKILL.md': read('.agents/skills/colibri/SKILL.md'),
};

const stale = Object.entries(files)
  .map(([path, content]) => [
    path,
    typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`,
  ])
  .filter(([path, text]) => readIfThere(path) !== text);
if (process.argv.includes('--check')) {
  if (stale.length > 0) {
    console.error(`out of date: ${stale.map(([path]) => path).join(', ')}. Run: npm run formats`);
    process.exitCode = 1;
  }
} else
  for (const [path, text] of stale) {
    mkdirSync(dirname(`${root}${path}`), { recursive: true });
    writeFileSync(`${root}${path}`, text);
    console.log(`wrote ${path}`);
  }

function read(path) {
  return readFileSync(`${root}${path}`, 'utf8');
}

function readIfThere(path) {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}
