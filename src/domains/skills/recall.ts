import type { Seen } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';

/** What was once read from disk, by path. Each scan hands what it still needed on to the next. */
export interface Recall<T> {
  find(path: string, seen: Seen): T | undefined;
  keep(path: string, seen: Seen, value: T): void;
  readonly kept: Kept<T>;
}

export type Kept<T> = ReadonlyMap<string, { readonly stamp: string; readonly value: T }>;

/**
 * Remembers a value for as long as the path keeps its stamp. What changed within the last moments before `nowMs` is
 * not kept: a second change in the same tick of the file system's clock would leave the same stamp.
 */
export function createRecall<T>(past: Kept<T>, nowMs: number): Recall<T> {
  const kept = new Map<string, { readonly stamp: string; readonly value: T }>();
  return {
    kept,
    find(path, { stamp }) {
      const known = past.get(path) ?? kept.get(path);
      if (known?.stamp !== stamp) return undefined;
      kept.set(path, known);
      return known.value;
    },
    keep(path, { stamp, changedMs }, value) {
      if (changedMs < nowMs - SKILL_LIMITS.settleMs) kept.set(path, { stamp, value });
    },
  };
}
