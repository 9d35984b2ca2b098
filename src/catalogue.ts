import type { Booted } from './boot.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { type ProofDeps, proofTools } from './domains/proof/tools.ts';
import { createSkillRegistry, type SkillRegistry } from './domains/skills/registry.ts';
import { skillTools } from './domains/skills/tools.ts';
import { type SystemFacts, systemTools } from './domains/system/tools.ts';
import { type TaskSettings, taskTools } from './domains/tasks/tools.ts';
import { type TrailDeps, trailTools } from './domains/trail/tools.ts';
import { oncePerTurn, readGitEvidence } from './integrations/git.ts';
import type { BatchFigures } from './middleware/compose.ts';
import { capabilitiesFor, type RuntimeMode } from './modes.ts';
import { redactText } from './secrets.ts';
import type { Tool } from './tool.ts';

/** What the domains need from the composition root. */
export interface CatalogueDeps {
  readonly system: SystemFacts;
  readonly tasks: TaskSettings;
  readonly trail: TrailDeps;
  readonly proof: ProofDeps;
  readonly skills: SkillRegistry;
}

/** The closed surface, in the order clients see it. */
export function catalogue(deps: CatalogueDeps): readonly Tool[] {
  return [
    ...taskTools(deps.tasks),
    ...trailTools(deps.trail),
    ...proofTools(deps.proof),
    ...skillTools(deps.skills),
    ...systemTools(deps.system),
  ];
}

/** The closed surface as a process has it. What boot ended with is asked for at each call: calls may come before. */
export function wiredTools(
  config: Config,
  clock: Clock,
  version: string,
  booted: () => Booted | undefined = () => undefined,
  batches: BatchFigures = { calls: 0, commits: 0, largest: 0, longest_wait_ms: 0 },
): readonly Tool[] {
  const { mode, workspace } = config;
  const began = clock.monotonic();
  const skills = createSkillRegistry({ roots: config.skillsDirs, workspace, clock });
  const tools = catalogue({
    system: {
      version,
      mode,
      uptimeMs: () => clock.monotonic() - began,
      now: () => clock.now(),
      storage: () => booted()?.opened?.facts,
      degraded: () => booted()?.degraded,
      log: () => booted()?.signer?.state(),
      signers: async (tx) => await booted()?.signer?.signers(tx),
      toolNames: () => tools.filter(capabilitiesFor(mode).admits).map(({ name }) => name),
      batches: () => ({ ...batches }),
      skills: () => skills.list(),
    },
    tasks: config,
    trail: {
      gitEvidence: oncePerTurn(() => gitEvidence(config)),
      async verifyChain(tx, subject, options) {
        // Loaded only where something is verified: a start need not wait for it.
        const { verifyChain } = await import('./verify/chain.ts');
        return await verifyChain(tx, subject, { ...options, clock });
      },
    },
    proof: { skillsInForce: () => skills.inForce() },
    skills,
  });
  return tools;
}

/** Where no project was found, a repository above the per-user folder is not the one worked on. */
async function gitEvidence({ workspace, isProject }: Config) {
  const evidence = isProject ? await readGitEvidence(workspace) : undefined;
  // A branch may be called anything.
  return evidence?.branch === undefined ? evidence : { ...evidence, branch: redactText(evidence.branch) };
}

/** How a model should work here, in a few sentences. The skill and the guides teach the same loop, and a test follows it. */
const INSTRUCTIONS = [
  'Colibri keeps tasks, the reasons for decisions, and proofs of both. Every call is recorded.',
  'Start with task_next_actions. If yours lists tasks, continue them. Otherwise claim the first of next_actions with task_update (status in_progress; for a pipeline task, which shows its status, GATHER). Otherwise take over one of abandoned (takeover: true). Otherwise make the call in hint: a new task is in backlog and must be set to todo before it can be claimed. If it names no call, there is nothing to do: stop.',
  'If a claim is refused, the message names the step that comes first, or the holder; if someone holds the task, take another one.',
  'While you work, record your reasons with thought_record; a task cannot be finished without at least one thought. Then set it to review and to done; a pipeline task goes step by step to DONE.',
  'For a proof_grade task, first open a session with audit_session_start (auditor_id names who will check the work, such as your user), and seal it with merkle_finalize before you set done.',
  'Success is {"ok":true,"data":…}. An error is {"ok":false,"error":…}, or {"ok":true,"data":{"ok":false,"error":…}} from the rules of tasks and proofs; its message says what to do next.',
].join(' ');

/** Where a mode does not admit the tools of that loop. */
const INSTRUCTIONS_OF: Readonly<Partial<Record<RuntimeMode, string>>> = {
  READONLY:
    'Colibri keeps tasks, the reasons for decisions, and proofs of both. This server was started to read only (mode READONLY): task_list, task_get, thought_record_list and audit_verify_chain show what there is, and nothing can be changed. Every call is recorded.',
  MINIMAL:
    'This Colibri server was started without a database (mode MINIMAL): it only tells whether it runs, with server_ping and server_health. Tasks and reasons are kept in mode FULL.',
};

export function instructionsFor(mode: RuntimeMode): string {
  return INSTRUCTIONS_OF[mode] ?? INSTRUCTIONS;
}
