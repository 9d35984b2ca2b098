import { build } from 'esbuild';
import { bundleOptions } from '../../scripts/build.mjs';
import { HOST_FILE } from './hosted-command.ts';

/** Before the suite: bundles what runs commands of the command line without starting it each time. */
export async function setup(): Promise<void> {
  await build({ ...bundleOptions, entryPoints: ['tests/driver/command-host.ts'], outfile: HOST_FILE });
}
