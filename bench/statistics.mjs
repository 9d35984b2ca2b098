/** The value below which `share` of the samples lie. */
export function quantile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export const p50 = (samples) => quantile(samples.flat(), 0.5);
export const p99 = (samples) => quantile(samples.flat(), 0.99);

/** Milliseconds of each of `count` runs of `work`, one after the other. */
export async function timed(count, work) {
  const samples = [];
  for (let i = 0; i < count; i += 1) {
    const before = performance.now();
    await work(i);
    samples.push(performance.now() - before);
  }
  return samples;
}

/**
 * Runs the contenders in turns and keeps each round by itself. A noisy neighbour disturbs all of them alike, and every
 * other round goes backwards, so that none always follows the same one.
 */
export async function inTurns(rounds, contenders) {
  const names = Object.keys(contenders);
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed())
      samples[name].push([await contenders[name](round)].flat());
  }
  return samples;
}

/**
 * The median over the rounds of what `compare` makes of the medians of one round, with the middle half of the rounds
 * around it. Noise lasts longer than a round: it moves both sides of one quotient, not one side of the only quotient.
 */
export function byRound(samples, compare) {
  const rounds = Object.values(samples)[0].map((_, round) =>
    compare(Object.fromEntries(Object.entries(samples).map(([name, list]) => [name, p50(list[round])]))),
  );
  return { value: p50(rounds), spread: [quantile(rounds, 0.25), quantile(rounds, 0.75)] };
}
