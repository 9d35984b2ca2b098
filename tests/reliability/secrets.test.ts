import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startColibri } from '../driver/command-line.ts';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { allSecrets, type Secret } from '../driver/secrets.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { type JsonSchema, type ListedTool, listedTools } from '../driver/surface.ts';
import { FULL, figure } from '../driver/tier.ts';
import { battery } from './battery.ts';

/** Sent along with each secret and kept: where this is not found, nothing was looked at. */
const CANARY = 'canary-of-the-battery';

battery(
  'R37',
  'no known secret is found in the raw bytes of anything Colibri wrote, whichever field or error it came through',
  async (colibri) => {
    const random = seededRandom('R37');
    const secrets = allSecrets(random);
    const [actor, branch, skill, agent] = secrets.filter(({ kind }) => kind === 'GitHub token');
    plantSkill(colibri, skill?.text ?? '');
    plantRepository(colibri, branch?.text ?? '');
    const env = { CLAUDE_PROJECT_DIR: colibri.path('source'), COLIBRI_LOG_LEVEL: 'debug' };
    const server = await colibri.start({ env, clientName: `${CANARY} ${actor?.text}` });
    const tools = listedTools(await server.request('tools/list'));

    let sent = 0;
    await openTask(server);
    for (const tool of tools) {
      // In the quick tier a sixth of the secrets goes through every field, and one of them also in every wrong form.
      const inAllForms = random.pick(secrets);
      for (const secret of secrets.filter((one) => FULL || one === inAllForms || random.oneIn(6))) {
        const all = FULL || secret === inAllForms;
        const calls = [...placements(tool, `${CANARY} ${secret.text}`, all)];
        await Promise.all(calls.map((args) => server.call(tool.name, args)));
        sent += calls.length;
      }
    }
    for (const secret of secrets) sent += await takeErrorPaths(server, secret.text);
    const named = await colibri.start({ env: { ...env, COLIBRI_AGENT_ID: agent?.text } });
    await named.call('task_create', { title: 'by an agent with a strange name', project: 'demo' });

    // The log is still apart from the database here; then again when it is merged.
    const running = [...filesOf(colibri), ['stderr', Buffer.from(server.stderr)] as const];
    expect(holding(running, [CANARY])).toContain('data/colibri.db-wal');
    expect(leaks(running, secrets)).toEqual([]);
    await server.closeInput();
    await named.closeInput();
    const printed = await readEverything(colibri);
    const written = [...filesOf(colibri), ...printed, ['stderr', Buffer.from(server.stderr)] as const];
    const found = holding(written, [CANARY]);

    figure('R37', { kinds: new Set(secrets.map(({ kind }) => kind)).size, secrets: secrets.length, sent });
    expect(leaks(written, secrets)).toEqual([]);
    expect(found).toEqual(
      expect.arrayContaining(['data/colibri.db', 'bundle/log.jsonl', 'bundle/payloads.jsonl', 'colibri log']),
    );
    expect((await startColibri(colibri, ['verify'])).code).toBe(0);
  },
);

battery('R37', 'a caller is told what was taken out, and where', async (colibri) => {
  const secrets = allSecrets(seededRandom('R37'));
  const server = await colibri.start();
  for (const { kind, text } of secrets) {
    const { message, envelope } = await server.call('task_create', {
      title: 'a task',
      project: 'demo',
      description: text,
    });
    const { _meta, content } = message.result as {
      _meta: Record<string, unknown>;
      content: { text: string }[];
    };

    expect(_meta['colibri/redacted']).toEqual([`description: ${kind} redacted`]);
    expect(content[1]?.text).toContain(`description: ${kind} redacted`);
    const { task_id } = envelope?.data ?? {};
    const kept = await server.call('task_get', { task_id });
    expect(kept.envelope?.data?.description).toContain(`[redacted: ${kind}]`);
    expect(kept.message.result?.content).toHaveLength(1);
  }
  await server.closeInput();

  const notes = colibri.readAudit().rows.flatMap(({ repaired }) => repaired);
  expect(notes).toEqual(secrets.map(({ kind }) => `description: ${kind} redacted`));
});

battery('R37', 'a secret in a setting is not repeated when the setting is refused', async (colibri) => {
  const random = seededRandom('R37');
  const secrets = allSecrets(random).filter(({ text }) => !text.includes('\n'));
  for (const { text, secret } of Array.from({ length: 3 }, () => random.pick(secrets))) {
    for (const env of [{ COLIBRI_MODE: text }, { AMS_TOKEN: text }, { COLIBRI_PROJECT: `${text} ` }]) {
      const server = colibri.spawn({ env });
      expect((await server.waitForExit()).code).toBe(1);
      expect(server.stderr).toContain(Object.keys(env)[0]);
      expect(leaks([['stderr', Buffer.from(server.stderr)]], [{ kind: '', text, secret }])).toEqual([]);
    }
  }
});

async function openTask(server: ServerProcess): Promise<void> {
  await server.call('task_create', { title: 'a task', project: 'demo' });
  await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'checker' });
}

/** The call with the text in one field after the other; with `all`, also in forms that are repaired or refused there. */
function* placements(tool: ListedTool, text: string, all: boolean): Generator<Record<string, unknown>> {
  const fields = Object.entries(tool.inputSchema.properties ?? {});
  const base = Object.fromEntries(fields.flatMap(([name]) => (name in GOOD ? [[name, GOOD[name]]] : [])));
  const allowed = Object.fromEntries(
    Object.entries(base).filter(([name]) => tool.inputSchema.required?.includes(name)),
  );
  for (const [name, schema] of fields)
    for (const value of valuesFor(schema, text).slice(0, all ? undefined : 1))
      yield { ...allowed, [name]: value };
}

const GOOD: Readonly<Record<string, unknown>> = {
  title: 'a task',
  project: 'demo',
  task_id: 'T-0001',
  session_id: 'A-0001',
  type: 'plan',
  content: 'a thought',
  auditor_id: 'checker',
};

function valuesFor({ type }: JsonSchema, text: string): unknown[] {
  if (type === 'array') return [[text], text, JSON.stringify([text])];
  if (type === 'object') return [{ a: [text] }, { [text]: { [text]: 1 } }, JSON.stringify({ a: text })];
  return [text, { [text]: text }];
}

/** Everything that is refused or answered with an error, and everything the protocol layer may complain of. */
async function takeErrorPaths(server: ServerProcess, text: string): Promise<number> {
  await server.call(text, { a: text });
  await server.call(`no_such_tool_${text}`);
  await server.call('task_get', { [text]: text });
  await server.call('task_get', [text]);
  await server.call('task_get', text);
  await server.call('task_get', JSON.stringify({ task_id: text }));
  await server.call('merkle_root', { session_id: text });
  await server.request(text, { [text]: text });
  await server.request('tools/list', { cursor: text });
  server.notify(text, { reason: text });
  await server.sendLine(`{"jsonrpc":"2.0","method":"${text.replaceAll('\n', ' ').replaceAll('\\', '')}`);
  return 11;
}

function plantSkill(colibri: Playground, text: string): void {
  const folder = colibri.path('source', '.agents', 'skills', 'a-skill');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'SKILL.md'), `---\nname: "${text}"\ndescription: "use ${text}"\n---\n`);
}

function plantRepository(colibri: Playground, branch: string): void {
  const git = (...args: string[]) =>
    spawnSync('git', ['-C', colibri.path('source'), '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
  git('init', '-q', '-b', branch);
  git('commit', '-q', '--allow-empty', '-m', 'first');
}

/** What people and auditors are handed. */
async function readEverything(colibri: Playground): Promise<[string, Buffer][]> {
  const commands = [
    ['log', '--all', '-n', '100000'],
    ['log', '--all', '--json', '-n', '100000'],
    ['board'],
    ['show', 'T-0001'],
    ['export', '-o', colibri.path('bundle')],
    ['export', '-o', colibri.path('bundle.zip')],
    ['report', '-o', colibri.path('report.html')],
    ['prove', 'T-0001', '-o', colibri.path('task.tlog-proof')],
    ['obsidian', '--vault', colibri.path('vault')],
    ['checkpoint'],
    ['doctor'],
  ];
  const printed: [string, Buffer][] = [];
  mkdirSync(colibri.path('vault', '.obsidian'), { recursive: true });
  for (const args of commands) {
    const { stdout, stderr } = await startColibri(colibri, args);
    printed.push([`colibri ${args[0]}`, Buffer.from(stdout + stderr)]);
  }
  return printed;
}

/** Every file of the playground but the ones the secrets were put into on purpose. */
function filesOf(colibri: Playground): [string, Buffer][] {
  return readdirSync(colibri.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(colibri.path('source')))
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((path) => [path.slice(colibri.folder.length + 1), readFileSync(path)]);
}

type Bytes = readonly (readonly [place: string, bytes: Buffer])[];

function holding(places: Bytes, needles: readonly string[]): string[] {
  return places
    .filter(([, bytes]) => needles.some((needle) => bytes.includes(needle)))
    .map(([place]) => place);
}

/** Any long piece of a secret counts, however the rest was cut, folded or escaped. */
function leaks(places: Bytes, secrets: readonly Secret[]): string[] {
  return secrets.flatMap(({ kind, secret }) =>
    holding(places, secret.match(/[A-Za-z0-9+/]{14,}/g) ?? [secret]).map((place) => `${kind} in ${place}`),
  );
}
