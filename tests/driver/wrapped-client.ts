import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Playground } from './playground.ts';
import { NODE, until } from './server-process.ts';

/** A client in a process of its own, so that it can be killed. */
export interface WrappedClient {
  /** What the client started: the server, or a wrapper around it. */
  readonly childPid: number;
  readonly serverPid: number;
  killHard(): void;
}

/** Starts the command with pipes, speaks to it, keeps the pipes open and reads what comes. */
const CLIENT = `
  const { spawn } = require('node:child_process');
  const child = spawn(process.argv[1], process.argv.slice(2), { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdout.once('data', () => process.stdout.write(child.pid + '\\n'));
  child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'server_ping' } }) + '\\n');
  setInterval(() => {}, 1000);
`;

export async function startClient(colibri: Playground, command: readonly string[]): Promise<WrappedClient> {
  const client = spawn(NODE, ['-e', CLIENT, ...command], {
    cwd: colibri.folder,
    env: { ...colibri.environment, PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  client.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const killHard = () => {
    if (client.exitCode === null && client.signalCode === null) client.kill('SIGKILL');
  };
  colibri.onDispose(killHard);
  await until(
    () => said.includes('\n'),
    30_000,
    () => 'the server never answered its client',
  );
  const childPid = Number(said);
  const serverPid = youngestOf(childPid);
  colibri.onDispose(() => existsSync(`/proc/${serverPid}`) && process.kill(serverPid, 'SIGKILL'));
  return { childPid, serverPid, killHard };
}

/** Resolves when there is no such process. */
export async function gone(pid: number, msMax: number): Promise<void> {
  await until(
    () => !existsSync(`/proc/${pid}`),
    msMax,
    () => `process ${pid} is still there after ${msMax} ms`,
  );
}

/** The last of a line of single children: behind any wrapper, the server. */
function youngestOf(pid: number): number {
  const child = readdirSync('/proc').find((entry) => /^\d+$/.test(entry) && parentOf(entry) === pid);
  return child === undefined ? pid : youngestOf(Number(child));
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
