import { ColibriError } from '../../errors.ts';
import { formatId, TASKS } from '../../log/tables.ts';
import { ask, type Steps } from '../rule.ts';

/**
 * A task waits for its children and for what it depends on. Refuses what would make `task` wait for itself, and spells
 * the cycle out. Walks breadth first, one level a step, so that the cycle named is the shortest. `via` names a task
 * between `task` and its dependencies that does not exist yet.
 */
export function* assertNoCycle(task: number, dependsOn: readonly number[], via?: string): Steps<void> {
  const cameFrom = new Map<number, number>(dependsOn.map((id) => [id, task]));
  let level: readonly number[] = dependsOn;
  while (level.length > 0) {
    if (cameFrom.has(task)) throw cycleError(task, cameFrom, via);
    const { awaited } = yield* ask({ awaited: ['awaitedBy', level] });
    const next: number[] = [];
    for (const id of level) {
      for (const other of awaited.get(id) ?? []) {
        if (cameFrom.has(other)) continue;
        cameFrom.set(other, id);
        next.push(other);
      }
    }
    level = next;
  }
}

function cycleError(task: number, cameFrom: ReadonlyMap<number, number>, via?: string): ColibriError {
  const path = [task];
  for (let id = cameFrom.get(task); id !== undefined && id !== task; id = cameFrom.get(id)) path.unshift(id);
  const cycle = [task, ...path].map((id) => formatId(TASKS, id));
  if (via !== undefined) cycle.splice(1, 0, via);
  return new ColibriError(
    'ERR_CIRCULAR_DEPENDENCY',
    `${cycle[0]} would wait for itself: ${cycle.join(' waits for ')}. Leave one of these dependencies out.`,
    { cycle },
  );
}
