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

/** One governed task end to end over real stdio, then four ways to tamper with a copy, each found. */
export const demo: Command = {
  name: 'demo',
  usage: '',
  summary: 'run one governed task end to end, then tamper with copies and show that it is found',
  details:
    'Works in a temporary folder with its own key; your data is not touched. Exit 1 if anything goes wrong.',
  options: {},
  positionals: [0, 0],
  async run({ out }) {
    const run = new DemoRun(out);
    await workOnTask(run);
    await provePaths(run);
    for (const tampering of TAMPERINGS) await showFound(run, tampering);
    await report(run);
    const fine = run.steps.every((step) => step.fine);
    out.data({ ok: fine, folder: run.folder, report: run.reportPath, steps: run.steps }, () => {
      out.line();
      if (!fine) out.line(out.paint('red', 'Something went wrong.'));
      out.verbatim(`Open it: ${run.reportPath}`);
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

/** The folder, the environment and the output of the run. */
class DemoRun {
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

  /** A step and its result, on one line where both fit. */
  step(fine: boolean, text: string, detail = ''): void {
    const short = detail.replaceAll(`${this.folder}${sep}`, '');
    this.steps.push({ part: this.#part, fine, text, detail: short });
    if (this.#out.json) return;
    const mark = fine ? this.#out.paint('green', '✓') : this.#out.paint('red', '✗');
    const fits = displayWidth(`  ✓ ${text}  ${short}`) <= this.#out.wrapWidth;
    this.#out.line(`  ${mark} ${text}${fits && short !== '' ? `  ${this.#out.paint('dim', short)}` : ''}`, 4);
    if (!fits) this.#out.line(this.#out.paint('dim', `      ${short}`), 6);
  }

  /** Runs this program as a person would. */
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

async function workOnTask(run: DemoRun): Promise<void> {
  run.title('An agent works on a proof-grade task');
  const agent = new DemoClient(run.env);
  await agent.start('demo-agent');
  const succeeded = (answer: Answer, text: string, detail = '') =>
    run.step(answer.ok, text, answer.refused?.code ?? detail);
  const refusedWith = (answer: Answer, code: string, text: string) =>
    run.step(
      answer.refused?.code === code || answer.refused?.message.startsWith(code) === true,
      text,
      answer.refused?.message ?? 'was not refused',
    );

  succeeded(
    await agent.call('task_create', {
      title: 'Rotate the signing keys',
      project: 'demo',
      priority: 'high',
      proof_grade: true,
    }),
    'creates T-0001, proof-grade',
  );
  succeeded(await agent.call('task_update', { task_id: 'T-0001', status: 'todo' }), 'plans it');
  succeeded(await agent.call('task_update', { task_id: 'T-0001', status: 'in_progress' }), 'claims it');
  refusedWith(
    await agent.call('task_update', { task_id: 'T-0001', status: 'in_progress' }),
    'ERR_INVALID_TRANSITION',
    'a second claim is refused',
  );
  refusedWith(
    await agent.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'Without a session.' }),
    'ERR_SESSION_REQUIRED',
    'a thought without a proof session is refused',
  );
  succeeded(
    await agent.call('audit_session_start', {
      task_id: 'T-0001',
      auditor_id: 'demo-auditor',
      reason: 'quarterly rotation',
    }),
    'opens session A-0001',
  );
  succeeded(
    await agent.call('thought_record', {
      task_id: 'T-0001',
      type: 'decision',
      content: 'Rotate the staging key first: it has one consumer, so a mistake stays small.',
    }),
    'records why',
  );
  succeeded(
    await agent.call('thought_record', {
      task_id: 'T-0001',
      type: 'risk',
      content: 'The old key must stay valid for an hour, or running jobs fail.',
    }),
    'records a risk',
  );
  succeeded(
    await agent.call('task_update', { task_id: 'T-0001', status: 'review', progress: 90 }),
    'asks for review',
  );
  refusedWith(
    await agent.call('task_update', { task_id: 'T-0001', status: 'done' }),
    'ERR_PROOF_REQUIRED',
    '“done” before the seal is refused',
  );
  const sealed = await agent.call('merkle_finalize', { session_id: 'A-0001' });
  succeeded(
    sealed,
    'seals the session',
    `${sealed.data.leaf_count} records, root ${String(sealed.data.merkle_root).slice(0, 16)}…`,
  );
  succeeded(await agent.call('task_update', { task_id: 'T-0001', status: 'done' }), 'now “done” is accepted');
  const chain = await agent.call('audit_verify_chain', { session_id: 'A-0001' });
  run.step(
    chain.data.chain_valid === true,
    'the session verifies',
    `${chain.data.total_records} records, score ${chain.data.integrity_score}`,
  );
  await agent.stop();
}

async function provePaths(run: DemoRun): Promise<void> {
  run.title('A person checks it without trusting the agent');
  const verdict = await run.colibri(['verify', '--json']);
  const found = JSON.parse(verdict.stdout) as {
    intact_through?: number;
    replayed_through?: number;
    checkpointed_through?: number;
  };
  run.step(
    verdict.code === 0,
    'colibri verify finds nothing wrong',
    `intact through ${found.intact_through}, replayed through ${found.replayed_through}, checkpointed through ${found.checkpointed_through}`,
  );
  const bundle = join(run.folder, 'bundle');
  run.step(
    (await run.colibri(['export', '-o', bundle])).code === 0,
    'colibri export writes a bundle that anyone can check',
    bundle,
  );
  run.step((await run.colibri(['verify', bundle])).code === 0, 'the bundle verifies by itself');
  const certificate = join(run.folder, 'T-0001.json');
  run.step(
    (await run.colibri(['prove', 'T-0001', '-o', certificate])).code === 0,
    'colibri prove writes the task’s completion certificate',
    certificate,
  );
  run.step((await run.colibri(['verify', certificate])).code === 0, 'the certificate verifies by itself');
}

async function showFound(run: DemoRun, tampering: (typeof TAMPERINGS)[number]): Promise<void> {
  run.title(`Somebody tampers with a copy: ${tampering.title}`);
  const copy = join(run.folder, `tampered-${TAMPERINGS.indexOf(tampering) + 1}`);
  cpSync(join(run.folder, 'data'), copy, { recursive: true });
  const dbPath = join(copy, 'colibri.db');
  await tamper(dbPath, tampering);
  const { code, stdout } = await run.colibri(['verify', '--json'], dbPath);
  const { findings = [] } = JSON.parse(stdout) as { findings?: { kind: string; message: string }[] };
  const named = findings.find(({ kind }) => kind === tampering.finding);
  const others = findings.length - 1;
  run.step(
    code === EXIT.found && named !== undefined,
    `found: ${tampering.finding}${others > 0 ? `, and ${others} more finding${others === 1 ? '' : 's'}` : ''}`,
    named?.message ?? 'was not found',
  );
}

async function report(run: DemoRun): Promise<void> {
  run.title('A person looks at it');
  run.step(
    (await run.colibri(['report', '-o', run.reportPath])).code === 0,
    'colibri report writes one file for any browser',
  );
}
