/** A seeded stream of numbers: the same seed, the same test. */
export interface Random {
  readonly seed: number;
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number;
  pick<T>(items: readonly T[]): T;
  /** True once in `n` times. */
  oneIn(n: number): boolean;
}

/** From COLIBRI_TEST_SEED where set, so that a failure can be repeated. Always printed. */
export function seededRandom(what: string): Random {
  const seed = Number(process.env.COLIBRI_TEST_SEED ?? (Date.now() ^ process.pid) >>> 0);
  console.error(`${what}: COLIBRI_TEST_SEED=${seed}`);
  return randomFrom(seed);
}

/** The stream of one seed, for a test that draws its seeds itself. */
export function randomFrom(seed: number): Random {
  const next = mulberry32(seed);
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return {
    seed,
    between,
    pick: <T>(items: readonly T[]) => items[between(0, items.length - 1)] as T,
    oneIn: (n) => between(1, n) === 1,
  };
}

function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
