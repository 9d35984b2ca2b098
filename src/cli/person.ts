import { type Config, loginName } from '../config.ts';
import { LIMITS } from '../limits.ts';
import { ProgramError, run } from '../trust/programs.ts';

/**
 * Who calls from the command line: the name that was set, else the name that the user told git, else the login. Only the
 * user's own configuration of git is asked, never the repository's: that may be anybody's, and would name the caller.
 */
export function personOf({ agentId }: Pick<Config, 'agentId'>): string {
  return agentId ?? usable(gitUserName()) ?? usable(loginName()) ?? 'unknown';
}

function gitUserName(): string {
  try {
    // Programs are started at the root of the file system, so no repository is in sight.
    return run('git', ['config', '--get', 'user.name']).text;
  } catch (error) {
    // Without git, nobody told it a name.
    if (error instanceof ProgramError) return '';
    throw error;
  }
}

/** A name as an actor may have it, or undefined where nothing is left of it. */
function usable(name: string): string | undefined {
  const clean = name.toWellFormed().replace(/\p{Cc}/gu, '');
  return [...clean.trim()].slice(0, LIMITS.actorCharsMax).join('') || undefined;
}
