import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { startColibri } from '../driver/command-line.ts';
import { seededRandom } from '../driver/random.ts';
import { figure, tier } from '../driver/tier.ts';
import { battery, noPython } from './battery.ts';
import { Recorder } from './recorder.ts';

const FLIPS = tier(40, 5_000);
const FLIPPER = fileURLToPath(new URL('flip-bytes.py', import.meta.url));
const VERIFIER = fileURLToPath(new URL('../../docs/verify-bundle.py', import.meta.url));

interface Outcome {
  readonly original: boolean;
  readonly again: boolean;
  readonly tried: number;
  readonly forged: number;
  readonly missed: readonly string[];
}

battery(
  'R21',
  `an exported bundle with any of ${FLIPS} bits flipped is refused by a verifier in another language, which accepts the original`,
  async (colibri) => {
    const { seed } = seededRandom('R21');
    const server = await colibri.start();
    const recorder = new Recorder(server);
    for (let i = 0; i < 4; i += 1) await recorder.chapter(`chapter ${i}`);
    await server.closeInput();
    const bundle = colibri.path('bundle');
    await startColibri(colibri, ['export', '-o', bundle]);

    const { stdout } = await promisify(execFile)('python3', [
      FLIPPER,
      VERIFIER,
      bundle,
      String(FLIPS),
      String(seed),
    ]);

    const { missed, ...facts } = JSON.parse(stdout) as Outcome;
    figure('R21', { flips: facts.tried, sums_made_to_fit: facts.forged, missed: missed.length });
    expect(facts).toMatchObject({ original: true, again: true, tried: FLIPS });
    expect(missed).toEqual([]);
  },
  { unless: noPython },
);
