import { type ProofDeps, proofTools } from './domains/proof/index.ts';
import { type SkillRegistry, skillTools } from './domains/skills/index.ts';
import { type SystemFacts, systemTools } from './domains/system/index.ts';
import { type TaskSettings, taskTools } from './domains/tasks/index.ts';
import { type TrailDeps, trailTools } from './domains/trail/index.ts';
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

/** How a model should work here, in a few sentences. */
export const INSTRUCTIONS = [
  'Colibri is a governed place to work: tasks, a decision trail and proofs. Every call is recorded.',
  'Take a task from task_next_actions and claim it with task_update (status in_progress); if that is refused, another agent holds it: take the next one.',
  'Record why you do things with thought_record while you work; a task cannot be finished without at least one thought.',
  'For a proof_grade task open a session with audit_session_start first, and seal it with merkle_finalize before you set it to done.',
  'An answer with ok false, or data.ok false, says what to do next.',
].join(' ');
