import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { CLIENTS, type Client, startFor } from '../../src/cli/clients.ts';
import { snippetFor } from '../../src/cli/init.ts';
import { readJson, withoutValue, withValue } from '../../src/cli/json-text.ts';
import { withoutTable, withTable } from '../../src/cli/toml-text.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { SERVER_FILE } from '../driver/server-process.ts';

const texts = z.array(z.string());
const variables = z.record(z.string(), z.string());
const servers = <S extends z.ZodType>(entry: S) => z.record(z.string(), entry);

const claude = z.strictObject({
  type: z.literal('stdio').optional(),
  command: z.string(),
  args: texts,
  env: variables,
});

/**
 * What each client takes as a server with a command, in the words of its own documentation or source. A strict object: a client
 * that refuses what it does not know would refuse the whole file.
 */
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  // code.claude.com/docs/en/mcp
  'claude-code': z.looseObject({ mcpServers: servers(claude) }),
  // modelcontextprotocol.io/docs/develop/connect-local-servers
  'claude-desktop': z.looseObject({ mcpServers: servers(claude.omit({ type: true })) }),
  // cursor.com/docs/context/mcp: also the variables ${env:…}, ${userHome} and ${workspaceFolder}
  cursor: z.looseObject({ mcpServers: servers(claude.extend({ envFile: z.string().optional() })) }),
  // The schema of mcp.json in VS Code: contrib/mcp/common/mcpConfiguration.ts
  vscode: z.strictObject({
    inputs: z.array(z.unknown()).optional(),
    servers: servers(
      claude.extend({ type: z.literal('stdio'), cwd: z.string().optional(), envFile: z.string().optional() }),
    ),
  }),
  // codex-rs/core/config.schema.json, RawMcpServerConfig
  codex: z.looseObject({
    mcp_servers: servers(
      z.strictObject({
        ...{
          command: z.string(),
          args: texts.optional(),
          env: variables.optional(),
          cwd: z.string().optional(),
        },
        ...{ enabled: z.boolean().optional(), startup_timeout_sec: z.number().optional() },
        tool_timeout_sec: z.number().optional(),
      }),
    ),
  }),
  // schemas/settings.schema.json of Gemini CLI, MCPServerConfig
  'gemini-cli': z.looseObject({
    mcpServers: servers(
      z.strictObject({
        ...{
          command: z.string(),
          args: texts.optional(),
          env: variables.optional(),
          cwd: z.string().optional(),
        },
        ...{ timeout: z.number().optional(), trust: z.boolean().optional() },
      }),
    ),
  }),
  // opencode.ai/config.json, McpLocalConfig
  opencode: z.looseObject({
    mcp: servers(
      z.strictObject({
        ...{ type: z.literal('local'), command: texts.min(1), environment: variables.optional() },
        ...{ enabled: z.boolean().optional(), timeout: z.number().optional() },
      }),
    ),
  }),
  // docs.windsurf.com/windsurf/cascade/mcp
  windsurf: z.looseObject({ mcpServers: servers(claude.extend({ disabled: z.boolean().optional() })) }),
  // ContextServerSettingsContent in Zed's settings_content
  zed: z.looseObject({
    context_servers: servers(
      z.strictObject({
        ...{ command: z.string(), args: texts, env: variables.optional() },
        ...{
          enabled: z.boolean().optional(),
          remote: z.boolean().optional(),
          timeout: z.number().optional(),
        },
      }),
    ),
  }),
};

/** What a person may have there already. */
const BEFORE: Readonly<Record<Client['format'], (key: string) => string>> = {
  json: (key) => `{\n    "${key}": {\n        "other": { "command": "x", "args": [], "env": {} }\n    }\n}\n`,
  jsonc: (key) =>
    `// mine\n{\n\t"${key}": {\n\t\t/* { */ "other": ${other(key)}, // last, "colibri": not here\n\t},\n}\n`,
  toml: () =>
    '# mine\nmodel = "o" # [mcp_servers.colibri]\nnotes = """\n[mcp_servers.colibri]\n"""\n\n[mcp_servers.other]\ncommand = "x"\n\n[profiles.fast]\nlist = [\n  "[a]",\n]\n',
};

const other = (key: string) =>
  key === 'mcp'
    ? '{ "type": "local", "command": ["x"] }'
    : `{ ${key === 'servers' ? '"type": "stdio", ' : ''}"command": "x", "args": [], "env": {} }`;

let colibri: Playground;
let workspace: string;
beforeEach(() => {
  colibri = new Playground();
  workspace = colibri.path('project');
  mkdirSync(join(workspace, '.git'), { recursive: true });
});
afterEach(() => colibri.dispose());

const init = (...args: string[]) => runColibri(colibri, ['init', ...args], { cwd: workspace });

function fileOf(client: Client): string {
  const home = colibri.environment.HOME ?? '';
  const settings = colibri.environment.XDG_CONFIG_HOME ?? join(home, '.config');
  const [file = ''] = client.files({ home, settings });
  return client.of === 'user' ? file : join(workspace, file);
}

function valueIn(client: Client, text: string): Record<string, Record<string, unknown>> {
  return (client.format === 'toml' ? readToml(text) : readJson(text, client.format === 'jsonc')) as never;
}

/** By a reader that is not ours. */
function readToml(text: string): unknown {
  const script =
    'import json,sys,tomllib; json.dump(tomllib.loads(sys.stdin.buffer.read().decode()), sys.stdout)';
  const { stdout, stderr } = spawnSync('python3', ['-c', script], { input: text, encoding: 'utf8' });
  if (stdout === '') throw new Error(`not TOML: ${stderr.slice(-300)}\n${text}`);
  return JSON.parse(stdout);
}

const EVERY = CLIENTS.map(({ name }) => name).join(',');

describe('init --client, for every client', () => {
  test('writes a file that the client’s own schema takes, which starts this server', async () => {
    const { code, stdout } = await init('--client', EVERY);
    const printed = await init('--client', EVERY, '--print', '--json');
    const snippets = JSON.parse(printed.stdout) as { client: string; snippet: string }[];

    expect(code).toBe(0);
    expect(stdout).toContain('works only on this machine');
    for (const client of CLIENTS) {
      const schema = SCHEMAS[client.name];
      const value = valueIn(client, readFileSync(fileOf(client), 'utf8'));
      const { snippet = '' } = snippets.find((given) => given.client === client.name) ?? {};
      expect(schema?.safeParse(value).error?.issues ?? [], client.name).toEqual([]);
      expect(schema?.safeParse({ [client.key]: { colibri: { comand: 'x' } } }).success).toBe(false);
      expect(JSON.stringify(value[client.key]?.colibri)).toContain(JSON.stringify(SERVER_FILE));
      expect(JSON.stringify(value)).toContain(`"COLIBRI_AGENT_ID":"${client.name}"`);
      expect(valueIn(client, snippet)).toEqual(value);
    }
  });

  test('merges, keeps a copy, changes nothing the second time, and takes only its entry out again', async () => {
    const beforeOf = (client: Client) => BEFORE[client.format](client.key);
    for (const client of CLIENTS) {
      mkdirSync(dirname(fileOf(client)), { recursive: true });
      writeFileSync(fileOf(client), beforeOf(client), { mode: 0o640 });
    }
    const files = () => CLIENTS.map((client) => readFileSync(fileOf(client), 'utf8'));
    const backups = () => CLIENTS.map((client) => readFileSync(backupOf(client), 'utf8'));

    const first = await init('--client', EVERY);
    const [after, kept] = [files(), backups()];
    const second = await init('--client', EVERY);
    const [afterSecond, keptSecond] = [files(), backups()];
    const removed = await init('--client', EVERY, '--remove');

    expect([first.code, second.code, removed.code]).toEqual([0, 0, 0]);
    expect([afterSecond, keptSecond]).toEqual([after, kept]);
    expect(kept).toEqual(CLIENTS.map(beforeOf));
    for (const [i, client] of CLIENTS.entries()) {
      const value = valueIn(client, after[i] ?? '');
      expect(SCHEMAS[client.name]?.safeParse(value).error?.issues ?? [], client.name).toEqual([]);
      expect(Object.keys(value[client.key] ?? {}).sort()).toEqual(['colibri', 'other']);
      if (client.format === 'jsonc') expect(after[i]).toContain('// last, "colibri": not here');
      expect(valueIn(client, files()[i] ?? '')).toEqual(valueIn(client, beforeOf(client)));
      expect([fileOf(client), backupOf(client)].map((path) => statSync(path).mode & 0o777)).toEqual([
        0o640, 0o600,
      ]);
    }
  });

  test('a file that it made is gone when its entry is taken out, with its folder', async () => {
    await init('--client', EVERY);
    const { stdout } = await init('--client', EVERY, '--remove');

    expect(stdout.match(/contained nothing else and was deleted/g)).toHaveLength(CLIENTS.length);
    expect(stdout).toContain('stay, with a copy of each changed file. Keep them or delete them.');
    expect(CLIENTS.map(fileOf).filter((path) => existsSync(path))).toEqual([]);
    expect(readdirSync(workspace).sort()).toEqual(['.colibri', '.git']);
  });
});

function backupOf(client: Client): string {
  const folder =
    client.of === 'user'
      ? join(colibri.environment.XDG_CONFIG_HOME ?? '', 'colibri')
      : join(workspace, '.colibri');
  return join(folder, 'backup', `${client.name}-${basename(fileOf(client))}`);
}

describe('init', () => {
  test('writes for several clients at once, or for none where one of them cannot be', async () => {
    writeFileSync(join(workspace, 'opencode.json'), '{ "mcp": [] }');

    const none = await init('--client', 'cursor,opencode');
    const isWritten = existsSync(join(workspace, '.cursor'));
    const both = await init('--client', 'cursor, codex');

    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"mcp" in a form that Colibri does not change'),
    });
    expect(isWritten).toBe(false);
    expect(both.code).toBe(0);
    expect(existsSync(join(workspace, '.codex', 'config.toml'))).toBe(true);
  });

  test('keeps what a person added to the entry, and brings the rest up to date', async () => {
    const old = { command: 'node', args: ['/gone.js'], env: { COLIBRI_PROJECT: 'web' }, timeout: 5 };
    writeFileSync(join(workspace, '.mcp.json'), JSON.stringify({ mcpServers: { colibri: old } }));

    await init();

    expect(JSON.parse(readFileSync(join(workspace, '.mcp.json'), 'utf8'))).toEqual({
      mcpServers: {
        colibri: {
          ...{ command: 'node', args: [SERVER_FILE], timeout: 5 },
          env: { COLIBRI_AGENT_ID: 'claude-code', COLIBRI_PROJECT: 'web' },
        },
      },
    });
  });

  test('leaves a file that it cannot understand as it is', async () => {
    const cases = [
      ['claude-code', '.mcp.json', '{ // comments are not for this client\n}'],
      ['claude-code', '.mcp.json', '{ "mcpServers": 5 }'],
      ['vscode', '.vscode/mcp.json', '{ "servers": '],
      ['codex', '.codex/config.toml', 'mcp_servers = { colibri = { command = "x" } }\n'],
      ['codex', '.codex/config.toml', '[mcp_servers]\ncolibri.command = "x"\n'],
      ['codex', '.codex/config.toml', 'text = "never closed\n'],
      ['codex', '.codex/config.toml', 'not TOML at all\n'],
    ] as const;
    for (const [name, file, text] of cases) {
      mkdirSync(dirname(join(workspace, file)), { recursive: true });
      writeFileSync(join(workspace, file), text);

      const { code, stderr } = await init('--client', name);

      expect([file, code, stderr]).toEqual([file, 2, expect.stringContaining(join(workspace, file))]);
      expect(readFileSync(join(workspace, file), 'utf8')).toBe(text);
    }
    expect(existsSync(join(workspace, '.colibri'))).toBe(false);
  });

  test('H5: writes nothing through a link in the place of a client’s folder', async () => {
    const elsewhere = colibri.path('elsewhere');
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, join(workspace, '.cursor'));

    const { code, stderr } = await init('--client', 'cursor');

    expect([code, stderr]).toEqual([2, expect.stringContaining('.cursor is a symbolic link')]);
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  test('S3: an entry for what npm installed names the package, not a path', () => {
    for (const client of CLIENTS) {
      expect(snippetFor(client)).toMatch(/"npx"[\s\S]*"-y"[\s\S]*"colibri-mcp"/);
      expect(SCHEMAS[client.name]?.safeParse(valueIn(client, snippetFor(client))).success).toBe(true);
      expect(startFor(client, undefined, 'win32')).toMatchObject({
        command: 'cmd',
        args: ['/c', 'npx', '-y', 'colibri-mcp'],
      });
    }
  });
});

test('S7: colibri serve-mcp serves, as colibri does without arguments, and ends with its input; a container starts it', async () => {
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'server_ping' } })}\n`;

  for (const args of [['serve-mcp'], []]) {
    const { code, stdout } = await runColibri(colibri, args, { input });

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id: 1, result: { structuredContent: { ok: true } } });
  }
  const container = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  expect(container).toContain('\nENTRYPOINT ["colibri"]\nCMD ["serve-mcp"]\n');
});

describe('a change of a text', () => {
  const names = fc.constantFrom('a', 'b', 'servers', 'colibri', '', 'ü"\\');
  const objects = fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 });
  const style = fc.constantFrom(undefined, 2, '\t');

  test('of JSON sets one member and keeps all others (random; the seed is printed)', () => {
    fc.assert(
      fc.property(
        objects,
        names,
        names,
        fc.jsonValue({ maxDepth: 2 }),
        style,
        fc.boolean(),
        (value, a, b, set, space, isCrlf) => {
          const text = JSON.stringify(value, null, space).replaceAll('\n', isCrlf ? '\r\n' : '\n');
          const inner = value[a];
          const isInside = typeof inner === 'object' && inner !== null && !Array.isArray(inner);

          const changed = withValue(text, [a, b], set);

          const expected = { ...value, [a]: { ...(isInside ? inner : {}), [b]: set } };
          expect(JSON.parse(changed)).toEqual(JSON.parse(JSON.stringify(expected)));
          const { [b]: _, ...rest } = expected[a] as Record<string, unknown>;
          expect(JSON.parse(withoutValue(changed, [a, b]))).toEqual(
            JSON.parse(JSON.stringify({ ...value, [a]: rest })),
          );
          if (text.includes('\r\n')) expect(changed.replaceAll('\r\n', '')).not.toContain('\n');
        },
      ),
    );
  });

  test('of JSON with comments and trailing commas keeps each of them', () => {
    const text = '\uFEFF// first\n{ "s": { "x": "//no", /* in, } */ "y": [1, 2,], }, // end\n}\n// after';

    const changed = withValue(text, ['s', 'colibri'], { command: 'c' });

    expect(readJson(changed, true)).toEqual({ s: { x: '//no', y: [1, 2], colibri: { command: 'c' } } });
    for (const kept of ['// first', '/* in, } */', '"y": [1, 2,]', '// end', '// after'])
      expect(changed).toContain(kept);
    expect(readJson(withoutValue(changed, ['s', 'colibri']), true)).toEqual(readJson(text, true));
    expect(readJson(withValue('// only this\n', ['s'], 1), true)).toEqual({ s: 1 });
  });

  test('of TOML sets the keys of one table and keeps those of others', () => {
    const entry = { command: 'npx', args: ['-y', 'a"b\\'], env: { A: '1' } };
    const table = ['mcp_servers', 'colibri'];
    const cases = {
      '': {},
      'x = 1': { x: 1 },
      '[mcp_servers.colibri]\r\ncommand = "old"\r\nargs = [\r\n  "]", # [x]\r\n]\r\nlimit = 5\r\n': {},
      '[mcp_servers.colibri.env]\nB = "2"\n[z]\ny = 1\n': { z: { y: 1 } },
      '[mcp_servers."colibri"]\n[mcp_servers.colibri.env]\nA = "mine"\n': {},
      "[[list]]\nt = '''\n[mcp_servers.colibri]'''\n[[list]]\n": {
        list: [{ t: '[mcp_servers.colibri]' }, {}],
      },
    };
    for (const [text, others] of Object.entries(cases)) {
      const changed = withTable(text, table, entry) ?? '';
      const again = withTable(changed, table, entry);
      const value = readToml(changed) as { mcp_servers: { colibri: Record<string, unknown> } };
      const { mcp_servers: _, ...rest } = value as Record<string, unknown>;

      expect(value.mcp_servers.colibri).toMatchObject({ command: 'npx', args: entry.args });
      expect([again, rest]).toEqual([changed, others]);
      if (text.includes('limit')) expect(value.mcp_servers.colibri.limit).toBe(5);
      if (text.includes('mine')) expect(value.mcp_servers.colibri.env).toEqual({ A: 'mine' });
      expect(readToml(withoutTable(changed, table))).toEqual(others);
    }
  });
});
