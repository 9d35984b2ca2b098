// A client as thin as possible, so that what is measured is the server.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Starts `script` and speaks lines to it. */
export function connect(script, { env = {}, args = [] } = {}) {
  const started = performance.now();
  const child = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env.PATH, HOME: env.HOME ?? tmpdir(), COLIBRI_LOG_LEVEL: 'error', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting = new Map();
  let [id, rest] = [0, ''];
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  const request = (method, params) =>
    new Promise((resolve) => {
      id += 1;
      waiting.set(id, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  return {
    child,
    started,
    request,
    initialize: () =>
      request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'bench', version: '1' },
      }),
    async call(name, args) {
      const { result, error } = await request('tools/call', { name, arguments: args });
      const envelope = result?.structuredContent;
      if (error !== undefined || envelope?.ok === false || envelope?.data?.ok === false) {
        throw new Error(`${name}: ${JSON.stringify(error ?? envelope)}`);
      }
      return envelope?.data;
    },
    close: () =>
      new Promise((resolve) => {
        child.once('exit', resolve);
        child.stdin.end();
      }),
  };
}

/** A start, a call and a stop: the log has begun, and its key lies in the per-user folder. */
export async function startOnce(env) {
  const client = connect(fileURLToPath(new URL('../dist/server.js', import.meta.url)), { env });
  await client.initialize();
  await client.call('server_ping', {});
  await client.close();
}

/** A folder that is gone afterwards, and the environment that keeps a server inside it. */
export async function inScratch(work) {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-bench-'));
  try {
    return await work(folder, {
      COLIBRI_DB_PATH: join(folder, 'colibri.db'),
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
