import { cpSync } from 'node:fs';
import { join, sep } from 'node:path';
import { sha256Hex } from '../integrity/digest.ts';
import { chainHash, GENESIS } from '../log/row.ts';
import { makePrivateFolder, makeTemporaryFolder } from '../private-files.ts';
import { textOf } from '../report/telling.ts';
import { loadDriver, type SqliteConnection, type SqliteDriver } from '../storage/sqlite/driver.ts';
import { runOwn } from '../trust/programs.ts';
import { isObject, type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { members } from '../verify/sources/forms.ts';
import { command, EXIT } from './command.ts';
import type { Output } from './output.ts';

/** One governed task end to end over real stdio, then two ways to tamper with a copy, each found. */
export const demo = command({
  name: 'demo',
  usage: '',
  summary: 'run one task from start to finish, then tamper with copies and show that it is found',
  details: 'Uses a temporary folder and its own key, not your data. Exit 1 if anything goes wrong.',
  async run({ out }) {
    const driver = await loadDriver();
    const run = startRun(out, driver);
    const { folder, steps } = run;
    const report = join(folder, 'report.html');
    workOnTask(run);
    checkWork(run);
    showFound(run, 'altered', 'a thought is edited afterwards', (db) => db.exec(EDIT_THOUGHT));
    showFound(run, 'rewritten', 'history is rewritten and every hash recomputed', rewriteHistory);
    run.title('A person opens the report');
    run.command(['report', '-o', report], 'colibri report writes one file for any browser');
    const ok = steps.every(({ fine }) => fine);
    const conclude = () => {
      out.line();
      if (!ok) out.line(out.paint('red', 'Something went wrong.'));
      out.verbatim(`Open it: ${report}`);
    };
    return out.data({ ok, folder, report, steps }, conclude, ok);
  },
});

type DemoRun = ReturnType<typeof startRun>;

/** The folder of the run, the programs it starts there, and what it has shown so far. */
function startRun(out: Output, driver: SqliteDriver) {
  const folder = makeTemporaryFolder('demo');
  const dbAt = join(folder, 'data', 'colibri.db');
  /** What should have happened, and whether it did. */
  const steps: { part: string; fine: boolean; text: string; detail: string }[] = [];
  const print = (text?: string, hang?: number) => out.json || out.line(text, hang);
  let part = '';

  function title(text: string): void {
    part = text;
    print();
    print(out.paint('bold', text));
  }

  function step(fine: boolean, text: string, detail = ''): void {
    const short = detail.replaceAll(`${folder}${sep}`, '');
    steps.push({ part, fine, text, detail: short });
    const mark = fine ? out.paint('green', '✓') : out.paint('red', '✗');
    print(`  ${mark} ${text}${short === '' ? '' : `  ${out.paint('dim', short)}`}`, 6);
  }

  /** Runs a program of this installation, as a person or a client would. */
  function start(name: string, args: readonly string[], dbPath = dbAt, input = '') {
    const home = join(folder, 'home');
    makePrivateFolder(home);
    const env = {
      ...{ HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, APPDATA: home, LOCALAPPDATA: home },
      CLAUDE_PROJECT_DIR: folder,
      COLIBRI_DB_PATH: dbPath,
      COLIBRI_LOG_LEVEL: 'error',
    };
    return runOwn(name, args, env, input);
  }

  /** A command that must succeed, as a step. */
  const command = (args: readonly string[], text: string, detail = '') =>
    step(start('cli.js', args).status === 0, text, detail);

  /** Sends these requests to a server, as a client would, and answers what it says to each. */
  function talk(requests: readonly { readonly method: string; readonly params: object }[]): JsonObject[] {
    const lines = requests.map((request, id) => `${JSON.stringify({ jsonrpc: '2.0', id, ...request })}\n`);
    const answers = start('server.js', [], dbAt, lines.join('')).text.split('\n').map(members);
    return lines.map((_, id) => answers.find((answer) => answer.id === id) ?? {});
  }

  return { driver, folder, steps, title, step, start, command, talk };
}

const task_id = 'T-0001';
const session_id = 'A-0001';
const WHY = 'Rotate the staging key first: it has one consumer, so a mistake stays small.';

/** What the agent calls, what that shows, and the code it must be refused with. */
const WORK: readonly (readonly [text: string, tool: string, args: JsonObject, refusedWith?: string])[] = [
  [
    'creates T-0001, proof-grade',
    'task_create',
    { title: 'Rotate the signing keys', project: 'demo', priority: 'high', proof_grade: true },
  ],
  ['plans it', 'task_update', { task_id, status: 'todo' }],
  ['claims it', 'task_update', { task_id, status: 'in_progress' }],
  ['a second claim is refused', 'task_update', { task_id, status: 'in_progress' }, 'ERR_INVALID_TRANSITION'],
  [
    'opens session A-0001',
    'audit_session_start',
    { task_id, auditor_id: 'demo-auditor', reason: 'quarterly rotation' },
  ],
  ['records why', 'thought_record', { task_id, type: 'decision', content: WHY }],
  ['asks for review', 'task_update', { task_id, status: 'review', progress: 90 }],
  ['“done” before the seal is refused', 'task_update', { task_id, status: 'done' }, 'ERR_PROOF_REQUIRED'],
  ['seals the session', 'merkle_finalize', { session_id }],
  ['“done” is now accepted', 'task_update', { task_id, status: 'done' }],
  ['the session verifies', 'audit_verify_chain', { session_id }],
];

function workOnTask(run: DemoRun): void {
  run.title('An agent works on a proof-grade task');
  const clientInfo = { name: 'demo-agent', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const calls = WORK.map(([, name, args]) => ({ method: 'tools/call', params: { name, arguments: args } }));
  const [, ...answers] = run.talk([{ method: 'initialize', params }, ...calls]);
  for (const [i, [text, , , refusedWith]] of WORK.entries()) {
    const envelope = objectIn(objectIn(answers[i]?.result)?.structuredContent) ?? NO_ANSWER;
    const data = objectIn(envelope.data);
    // A refusal comes in either pattern.
    const { code, message } = objectIn(envelope.error ?? data?.error) ?? {};
    const isRefused = refusedWith !== undefined && `${code} ${message}`.includes(refusedWith);
    if (refusedWith === undefined) run.step(code === undefined, text, textOf(code ?? data?.merkle_root));
    else run.step(isRefused, text, textOf(message ?? 'was not refused'));
  }
}

const NO_ANSWER: JsonObject = { error: { code: 'there was no answer' } };

function checkWork(run: DemoRun): void {
  run.title('A person checks it without trusting the agent');
  const { status, text: json } = run.start('cli.js', ['verify', '--json']);
  const found = members(json);
  const reach = (name: string) => `${name} through ${found[`${name}_through`]}`;
  const ranges = ['intact', 'replayed', 'checkpointed'].map(reach).join(', ');
  run.step(status === 0, 'colibri verify finds nothing wrong', ranges);
  const bundle = join(run.folder, 'bundle');
  run.command(['export', '-o', bundle], 'colibri export writes a bundle that anyone can check', bundle);
  run.command(['verify', bundle], 'the bundle verifies on its own');
  const certificate = join(run.folder, 'T-0001.json');
  const text = 'colibri prove writes the task’s completion certificate';
  run.command(['prove', task_id, '-o', certificate], text, certificate);
  run.command(['verify', certificate], 'the certificate verifies on its own');
}

/** Changes a copy of the file, as anybody can who can write to it. The verifier must find that. */
function showFound(run: DemoRun, finding: string, title: string, apply: (db: SqliteConnection) => void) {
  run.title(`Someone tampers with a copy: ${title}`);
  const copy = join(run.folder, finding);
  makePrivateFolder(copy);
  cpSync(join(run.folder, 'data'), copy, { recursive: true });
  const dbPath = join(copy, 'colibri.db');
  const db = run.driver.open(dbPath, { readOnly: false });
  // Anybody who can write to the file can drop its triggers and put them back: they prove nothing.
  const triggers = rowsOf(db, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'");
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  apply(db);
  for (const { sql } of triggers) db.exec(String(sql));
  db.close();
  const { status, text } = run.start('cli.js', ['verify', '--json'], dbPath);
  const found = members(text).findings;
  const findings = Array.isArray(found) ? found.filter(isObject) : [];
  const named = findings.find(({ kind }) => kind === finding);
  const more = findings.length > 1 ? `, among ${findings.length} findings` : '';
  const isFound = status === EXIT.found && named !== undefined;
  run.step(isFound, `found: ${finding}${more}`, textOf(named?.message ?? 'was not found'));
}

const EDIT_THOUGHT = `UPDATE texts SET text = 'All tests passed.'
  WHERE digest = (SELECT content FROM thoughts WHERE id = 1)`;

/** Every later hash is recomputed, so the hash chain holds again. Only a signed head shows the difference. */
function rewriteHistory(db: SqliteConnection): void {
  const update = db.prepare('UPDATE actions SET text = ?, content = ?, chain = ? WHERE position = ?');
  let link = GENESIS;
  for (const { position, text } of rowsOf(db, 'SELECT position, text FROM actions ORDER BY position')) {
    const changed = String(text).replaceAll('"actor":"demo-agent"', '"actor":"someone-else"');
    const content = sha256Hex(changed);
    link = chainHash(content, link);
    update.run(changed, Buffer.from(content, 'hex'), Buffer.from(link, 'hex'), Number(position));
  }
}

function rowsOf(db: SqliteConnection, sql: string): JsonObject[] {
  const rows = db.prepare(sql).all();
  return rows.map((row) => ({ ...row }));
}
