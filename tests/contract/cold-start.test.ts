import { expect, test } from 'vitest';
import { buildBareServer, SERVER } from '../../bench/build.mjs';
import { coldStartSamples } from '../../bench/cold-start.mjs';

interface Start {
  readonly initialized: number;
}

const RATIO_MAX = 1.3;
const TRIES = 4;

/**
 * A ratio within one run, not a wall time, and of the fastest start of each side: noise only ever makes a start slower.
 * A busy machine may still disturb one side of a short run, so a miss is measured again.
 */
test('the bundle answers initialize at most 1.3 times as late as a bare server bundled alike', {
  timeout: 120_000,
}, async () => {
  const bare = await buildBareServer();
  const ratios: number[] = [];
  for (let i = 0; i < TRIES && (ratios.at(-1) ?? Number.POSITIVE_INFINITY) > RATIO_MAX; i += 1) {
    const samples = (await coldStartSamples({ rounds: 8, server: SERVER, bare })) as unknown as Record<
      'bare' | 'colibri',
      Start[]
    >;
    const fastest = (side: readonly Start[]) => Math.min(...side.map((sample) => sample.initialized));
    ratios.push(fastest(samples.colibri) / fastest(samples.bare));
  }

  expect(
    Math.min(...ratios),
    `ratios measured: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`,
  ).toBeLessThanOrEqual(RATIO_MAX);
});
