import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { HostedCommand } from './command-host.ts';
import type { CommandOptions, CommandResult } from './command-line.ts';
import type { Playground } from './playground.ts';
import { NODE } from './server-process.ts';

export const HOST_FILE = fileURLToPath(new URL('../../dist/command-host.mjs', import.meta.url));

/** More would only wait for each other. */
const HOSTS_MAX = 3;

const idle: ChildProcess[] = [];
const waiting: ((host: ChildProcess) => void)[] = [];
let started = 0;

/**
 * Runs a command of the `colibri` command line in a process that has loaded it already: for what a command finds and prints,
 * where its process is not the point. Starting that costs ten times as much as most commands. Commands at the same time are
 * in different processes.
 */
export async function hostedColibri(
  colibri: Playground,
  args: readonly string[],
  { cwd = colibri.folder, env = {}, input = '' }: Pick<CommandOptions, 'cwd' | 'env' | 'input'> = {},
): Promise<CommandResult> {
  const host = await takeHost();
  const command: HostedCommand = { args, cwd, env: { ...colibri.environment, ...env }, input };
  let isDone = false;
  // One that hangs must not outlive the test that found it.
  colibri.onDispose(() => isDone || host.kill('SIGKILL'));
  try {
    return await new Promise<CommandResult>((resolve, reject) => {
      const onExit = () => reject(new Error(`colibri ${args.join(' ')}: its process ended`));
      host.once('exit', onExit).once('message', (message) => {
        host.off('exit', onExit);
        resolve(message as CommandResult);
      });
      host.send(command);
    });
  } finally {
    isDone = true;
    giveBack(host);
  }
}

async function takeHost(): Promise<ChildProcess> {
  const free = idle.pop() ?? (started < HOSTS_MAX ? startHost() : undefined);
  return free ?? (await new Promise((resolve) => waiting.push(resolve)));
}

function giveBack(host: ChildProcess): void {
  const isGone = host.exitCode !== null || host.signalCode !== null;
  if (isGone) started -= 1;
  const next = waiting.shift();
  if (next !== undefined) next(isGone ? startHost() : host);
  else if (!isGone) idle.push(host);
}

/** It ends with this process, and does not keep it. */
function startHost(): ChildProcess {
  started += 1;
  const host = fork(HOST_FILE, {
    execPath: NODE,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  host.unref();
  host.channel?.unref();
  return host;
}
