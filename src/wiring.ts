import type { CatalogueDeps } from './catalogue.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { createSkillRegistry } from './domains/skills/index.ts';
import type { SystemFacts } from './domains/system/index.ts';
import { readGitEvidence } from './integrations/git.ts';
import { redactText } from './secrets.ts';
import { verifyChain } from './verify/chain.ts';

/** Gives the domains what they need from the rest of the house. */
export function wireCatalogue(
  config: Config,
  clock: Clock,
  facts: Omit<SystemFacts, 'skills' | 'now'>,
): CatalogueDeps {
  const skills = createSkillRegistry({ roots: config.skillsDirs, workspace: config.workspace, clock });
  return {
    system: {
      ...facts,
      now: () => clock.now(),
      skills: async () => {
        const { skills: found, skipped } = await skills.list();
        return { loaded: found.length, skipped };
      },
    },
    tasks: { project: config.project, projects: config.projects, workflow: config.workflow },
    trail: {
      gitEvidence: () => gitEvidence(config),
      verifyChain: (tx, subject, options) => verifyChain(tx, subject, { ...options, clock }),
    },
    proof: { skillsInForce: () => skills.inForce() },
    skills,
  };
}

/** Where no project was found, a repository above the stand-in folder is not the one worked on. */
async function gitEvidence({ workspace, isProject }: Config) {
  const evidence = isProject ? await readGitEvidence(workspace) : undefined;
  // A branch may be called anything.
  return evidence?.branch === undefined ? evidence : { ...evidence, branch: redactText(evidence.branch) };
}
