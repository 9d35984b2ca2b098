import { join, relative, resolve, sep } from 'node:path';
import { isInside, look, lookFor, type Refusal, realPath } from './disk.ts';

/** A folder that skills are looked for in: as configured, and where it really is. */
export interface Root {
  readonly path: string;
  readonly real: string;
}

/**
 * The roots that exist, each real folder once; the others with the reason, unless there is simply nothing.
 *
 * A repository is strangers' text too: a root inside the workspace must really lie inside it, or a link in a cloned
 * repository would open any folder of its reader.
 */
export function resolveRoots(
  paths: readonly string[],
  workspace: string,
  skip: (path: string, reason: string) => void,
): readonly Root[] {
  const roots: Root[] = [];
  for (const configured of paths) {
    const path = resolve(workspace, configured);
    const real = resolveRoot(path, workspace);
    if (real === undefined) continue;
    if (typeof real !== 'string') skip(path, real.reason);
    else if (!roots.some((root) => root.real === real)) roots.push({ path, real });
  }
  return roots;
}

function resolveRoot(path: string, workspace: string): string | Refusal | undefined {
  const real = realPath(path);
  if (real === undefined)
    return look(path) === undefined ? undefined : { reason: 'a symbolic link that leads nowhere' };
  if (typeof real !== 'string') return real;
  const home = realPath(workspace);
  if (isInside(path, workspace) && !(typeof home === 'string' && isInside(real, home))) {
    return {
      reason: 'a symbolic link out of the workspace; name its target in COLIBRI_SKILLS_DIR to use it',
    };
  }
  return lookFor('folder', real) === undefined ? { reason: 'not a folder' } : real;
}

/** A real path below a root as people know it: from the workspace where it lies in there, whole otherwise. */
export function shownPath(path: string, roots: readonly Root[], workspace: string): string {
  const root = roots.find(({ real }) => isInside(path, real));
  const configured = root === undefined ? path : join(root.path, relative(root.real, path));
  const inside = isInside(configured, workspace) ? relative(workspace, configured) : '';
  const shown = inside === '' ? configured : inside;
  return (sep === '/' ? shown : shown.replaceAll(sep, '/')).toWellFormed();
}
