import { Readable, Writable } from 'node:stream';
import { main } from '../../src/cli/main.ts';
import type { CommandResult } from './command-line.ts';

// A process that runs one command after the other: each has the arguments, the folder, the environment and the standard
// streams it would have in a process of its own, and saves the start of that. Bundled into dist by the set-up of the suite.

/** A command as it would be started. */
export interface HostedCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
}

process.on('message', async (command: HostedCommand) => {
  const result = await run(command);
  process.send?.(result);
});
process.once('disconnect', () => process.exit());

async function run({ args, cwd, env, input }: HostedCommand): Promise<CommandResult> {
  const chunks = { stdout: '', stderr: '' };
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  const streams = {
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    stdout: collecting((text) => (chunks.stdout += text)),
    stderr: collecting((text) => (chunks.stderr += text)),
  };
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { value, configurable: true });
  process.exitCode = undefined;
  const code = await main(args);
  const result = { code: Number(process.exitCode ?? code), ...chunks };
  process.exitCode = undefined;
  return result;
}

function collecting(keep: (text: string) => void): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      keep(chunk.toString());
      done();
    },
  });
}
