import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../config.ts';
import { type Command, EXIT } from './command.ts';
import { type Answer, DemoClient } from './demo/client.ts';
import { TAMPERINGS, tamper } from './demo/tampering.ts';
import type { Output } from './output.ts';
import { displayWidth } from './text.ts';

/** One governed task from beginning to end over real stdio, then four ways to cheat, each caught by name. */
export const demo: Command = {
  name: 'demo',
  usage: '',
  summary: 'run one governed task end to end, then tamper with copies and show each caught',
  details:
    'Works in a temporary folder with a key of its own; nothing of yours is touched. Exit 1 if anything did not go as told.',
  options: {},
  positionals: [0, 0],
  async run({ out }) {
    const stage = new Stage(out);
    await workOnTask(stage);
    await provePaths(stage);
    for (const tampering of TAMPERINGS) await showCaught(stage, tampering);
    await report(stage);
    const fine = stage.steps.every((step) => step.fine);
    out.data({ ok: fine, folder: stage.folder, report: stage.reportPath, steps: stage.steps }, () => {
      out.line();
      if (!fine) out.line(out.paint('red', 'Something did not go as it should.'));
      out.verbatim(`Open it: ${stage.reportPath}`);
    });
    return fine ? EXIT.fine : EXIT.found;
  },
};

/** What should have happened, and whether it did. */
interface Step {
  readonly part: string;
  readonly fine: boolean;
  readonly text: string;
  readonly detail: string;
}

/** The folder, the environment and the words of the demo. */
class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'colibri-demo-'));
  readonly dbPath = join(this.folder, 'data', 'colibri.db');
  readonly reportPath = join(this.folder, 'report.html');
  readonly steps: Step[] = [];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly #out: Output;
  #part = '';

  constructor(out: Output) {
    this.#out = out;
    const home = join(this.folder, 'home');
    mkdirSync(home);
    this.env = childEnvironment({
      HOME: home,
      XDG_CONFIG_HOME: home,
      XDG_DATA_HOME: home,
      APPDATA: home,
      LOCALAPPDATA: home,
      CLAUDE_PROJECT_DIR: this.folder,
      COLIBRI_DB_PATH: this.dbPath,
    });
  }

  title(text: string): void {
    this.#part = text;
    if (this.#out.json) return;
    this.#out.line();
    this.#out.line(this.#out.paint('bold', text));
  }

  /** A step and what came of it, which goes below where it does not fit beside. */
  step(fine: boolean, text: string, detail = ''): void {
    const short = detail.replaceAll(`${this.folder}${sep}`, '');
    this.steps.push({ part: this.#part, fine, text, detail: short });
    if (this.#out.json) return;
    const mark = fine ? this.#out.paint('green', '✓') : this.#out.paint('red', '✗');
    const fits = displayWidth(`  ✓ ${text}  ${short}`) <= this.#out.wrapWidth;
    this.#out.line(`  ${mark} ${text}${fits && short !== '' ? `  ${this.#out.paint('dim', short)}` : ''}`, 4);
    if (!fits) this.#out.line(this.#out.paint('dim', `      ${short}`), 6);
  }

  /** Runs this very program as a person would. */
  colibri(args: readonly string[], dbPath = this.dbPath): Promise<{ code: number; stdout: string }> {
    const cli = fileURLToPath(new URL('cli.js', import.meta.url));
    const env = { ...this.env, COLIBRI_DB_PATH: dbPath };
    return new Promise((resolve) => {
      execFile(process.execPath, [cli, ...args], { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout });
      });
    });
  }
}

async function workOnTask(stage: Stage): Promise<void> {
  stage.title('An agent works on a proof-grade task');
  const agent = new DemoClient(stage.env);
  await agent.start('demo-agent');
  const told = (answer: Answer, text: string, detail = '') =>
    stage.step(answer.ok, text, answer.refused?.code ?? detail);
  const refusedWith = (answer: Answer, code: string, text: string) =>
    stage.step(
      answer.refused?.code === code || answer.refused?.message.startsWith(code) === true,
      text,
      answer.refused?.message ?? 'was not refused',
    );

  told(
    await agent.call('task_create', {
      title: 'Rotate the signing keys',
      project: 'demo',
      priority: 'high',
      proof_grade: true,
    }),
    'creates T-0001, proof-grade',
  );
  told(await agent.call('task_update', { task_id: 'T-0001', status: 'todo' }), 'plans it');
  told(await agent.call('task_update', { task_id: 'T-0001', status: 'in_progress' }), 'claims it');
  refusedWith(
    await agent.call('task_update', { task_id: 'T-0001', status: 'in_progress' }),
    'ERR_INVALID_TRANSITION',
    'a second claim is refused',
  );
  refusedWith(
    await agent.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'Without a session.' }),
    'ERR_SESSION_REQUIRED',
    'no thought outside a proof session',
  );
  told(
    await agent.call('audit_session_start', {
      task_id: 'T-0001',
      auditor_id: 'demo-auditor',
      reason: 'quarterly rotation',
    }),
    'opens session A-0001',
  );
  told(
    await agent.call('thought_record', {
      task_id: 'T-0001',
      type: 'decision',
      content: 'Rotate the staging key first: it has one consumer, so a mistake stays small.',
    }),
    'records why',
  );
  told(
    await agent.call('thought_record', {
      task_id: 'T-0001',
      type: 'risk',
      content: 'The old key must stay valid for an hour, or running jobs fail.',
    }),
    'records a risk',
  );
  told(
    await agent.call('task_update', { task_id: 'T-0001', status: 'review', progress: 90 }),
    'asks for review',
  );
  refusedWith(
    await agent.call('task_update', { task_id: 'T-0001', status: 'done' }),
    'ERR_PROOF_REQUIRED',
    '“done” too early is refused by the gate',
  );
  const sealed = await agent.call('merkle_finalize', { session_id: 'A-0001' });
  told(
    sealed,
    'seals the session',
    `${sealed.data.leaf_count} records, root ${String(sealed.data.merkle_root).slice(0, 16)}…`,
  );
  told(await agent.call('task_update', { task_id: 'T-0001', status: 'done' }), 'now “done” is accepted');
  const chain = await agent.call('audit_verify_chain', { session_id: 'A-0001' });
  stage.step(
    chain.data.chain_valid === true,
    'the session verifies',
    `${chain.data.total_records} records, score ${chain.data.integrity_score}`,
  );
  await agent.stop();
}

async function provePaths(stage: Stage): Promise<void> {
  stage.title('A person checks it without trusting the agent');
  const verdict = await stage.colibri(['verify', '--json']);
  const found = JSON.parse(verdict.stdout) as { intact_through?: number; checkpointed_through?: number };
  stage.step(
    verdict.code === 0,
    'colibri verify finds nothing wrong',
    `intact through ${found.intact_through}, checkpointed through ${found.checkpointed_through}`,
  );
  const bundle = join(stage.folder, 'bundle');
  stage.step(
    (await stage.colibri(['export', '-o', bundle])).code === 0,
    'colibri export writes a bundle for strangers',
    bundle,
  );
  stage.step((await stage.colibri(['verify', bundle])).code === 0, 'the bundle verifies by itself');
  const certificate = join(stage.folder, 'T-0001.json');
  stage.step(
    (await stage.colibri(['prove', 'T-0001', '-o', certificate])).code === 0,
    'colibri prove writes the task’s completion certificate',
    certificate,
  );
  stage.step((await stage.colibri(['verify', certificate])).code === 0, 'the certificate verifies by itself');
}

async function showCaught(stage: Stage, tampering: (typeof TAMPERINGS)[number]): Promise<void> {
  stage.title(`Somebody cheats: ${tampering.title}`);
  const copy = join(stage.folder, `tampered-${TAMPERINGS.indexOf(tampering) + 1}`);
  cpSync(join(stage.folder, 'data'), copy, { recursive: true });
  const dbPath = join(copy, 'colibri.db');
  await tamper(dbPath, tampering);
  const { code, stdout } = await stage.colibri(['verify', '--json'], dbPath);
  const { findings = [] } = JSON.parse(stdout) as { findings?: { kind: string; message: string }[] };
  const named = findings.find(({ kind }) => kind === tampering.finding);
  const others = findings.length - 1;
  stage.step(
    code === EXIT.found && named !== undefined,
    `caught: ${tampering.finding}${others > 0 ? `, and ${others} more finding${others === 1 ? '' : 's'}` : ''}`,
    named?.message ?? 'was not found',
  );
}

async function report(stage: Stage): Promise<void> {
  stage.title('A person looks at it');
  stage.step(
    (await stage.colibri(['report', '-o', stage.reportPath])).code === 0,
    'colibri report writes one file for any browser',
  );
}
