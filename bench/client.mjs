// A client as thin as possible, so that what is measured is the server.
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVER } from './build.mjs';
import { killGroup, makeScratch, removeScratch, watchGroup } from './scratch.mjs';

const CLOSE_MS_MAX = 10_000;

/** Starts a server and speaks lines to it. It leads a process group of its own, so that all of it can be killed. */
export function start({ command, args = [], env = {}, cwd, stderr = 'inherit' }) {
  const started = performance.now();
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: env.HOME ?? tmpdir(), ...env },
    stdio: ['pipe', 'pipe', stderr],
    detached: true,
  });
  watchGroup(child);
  const waiting = new Map();
  const exited = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('exit', (code, signal) => resolve(`ended with ${signal ?? code}`));
  });
  exited.then((how) => {
    for (const { reject } of waiting.values()) reject(new Error(`the server ${how}`));
    waiting.clear();
  });
  // Whoever is killed while being written to must not end the benchmark.
  child.stdin.on('error', () => undefined);
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let [id, rest] = [0, ''];
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) receive(line);
  });
  const receive = (line) => {
    const message = parse(line);
    if (message?.method !== undefined && message.id !== undefined) return send(answerTo(message));
    waiting.get(message?.id)?.resolve(message);
    waiting.delete(message?.id);
  };
  const request = (method, params) =>
    new Promise((resolve, reject) => {
      id += 1;
      waiting.set(id, { resolve, reject });
      send({ id, method, params });
    });
  const kill = () => {
    killGroup(child.pid);
    return exited;
  };
  return {
    child,
    started,
    request,
    async initialize() {
      const answer = await request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'bench', version: '1' },
      });
      send({ method: 'notifications/initialized' });
      return answer;
    },
    /** The result of a tool; throws where the server says that it failed. */
    async call(name, args) {
      const { result, error } = await request('tools/call', { name, arguments: args });
      const envelope = result?.structuredContent;
      if (error !== undefined || result?.isError || envelope?.ok === false || envelope?.data?.ok === false)
        throw new Error(`${name}: ${JSON.stringify(error ?? envelope ?? result).slice(0, 300)}`);
      return envelope?.data ?? result;
    },
    kill,
    /** Closes its stdin, as a client does that leaves, and waits for it to end. */
    async close() {
      const timer = setTimeout(kill, CLOSE_MS_MAX);
      child.stdin.end();
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Starts a script on this Node. */
export function connect(script, { env = {}, args = [] } = {}) {
  return start({
    command: process.execPath,
    args: [script, ...args],
    env: { COLIBRI_LOG_LEVEL: 'error', ...env },
  });
}

/** A start, a call and a stop: the log has begun, and its key lies in the per-user folder. */
export async function startOnce(env) {
  const client = connect(SERVER, { env });
  await client.initialize();
  await client.call('server_ping', {});
  await client.close();
}

/** A folder that is gone afterwards, and the environment that keeps a server inside it. */
export async function inScratch(work) {
  const folder = makeScratch();
  try {
    return await work(folder, environmentIn(folder));
  } finally {
    removeScratch(folder);
  }
}

export function environmentIn(folder) {
  return {
    COLIBRI_DB_PATH: join(folder, 'colibri.db'),
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
  };
}

/** Some servers write other things to stdout as well. */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Some servers ask back. */
function answerTo({ id, method }) {
  if (method === 'ping') return { id, result: {} };
  if (method === 'roots/list') return { id, result: { roots: [] } };
  return { id, error: { code: -32601, message: 'The benchmark does not answer this.' } };
}
