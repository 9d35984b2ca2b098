import { spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { build } from 'esbuild';
import { bundleOptions } from '../../scripts/build.mjs';
import { HOST_FILE } from './hosted-command.ts';

/** Before the suite: bundles what runs commands of the command line without starting it each time, and finds Python. */
export async function setup(): Promise<void> {
  await build({ ...bundleOptions, entryPoints: ['tests/driver/command-host.ts'], outfile: HOST_FILE });
  findPython();
}

/** Puts the folder of the real python3 first: a version manager puts a script in its place, which takes longer than Python. */
function findPython(): void {
  const { status, stdout } = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], {
    encoding: 'utf8',
  });
  if (status === 0) process.env.PATH = [dirname(stdout.trim()), process.env.PATH].join(delimiter);
}
