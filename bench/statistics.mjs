/** The value below which `share` of the samples lie. */
function quantile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export const p50 = (samples) => quantile(samples, 0.5);
export const p99 = (samples) => quantile(samples, 0.99);

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

/** Runs the contenders in turns, so that a noisy neighbour disturbs all of them alike. */
export async function inTurns(rounds, contenders) {
  const samples = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of Object.entries(contenders)) samples[name].push(...[await run(round)].flat());
  }
  return samples;
}
