import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeScratch, removeScratch } from '../scratch.mjs';
import { onEmptyStore } from './desk.mjs';

const ATTACH_MS_MAX = 5_000;

/**
 * How often a server asks the disk to keep what it wrote, for one write: what is not synced can be lost in a power cut
 * after it was acknowledged. Undefined where there is no strace, or no leave to use it.
 */
export async function syncsPerWrite(desk, { count }) {
  return await onEmptyStore(desk, async ({ open, write }) => {
    const client = await open();
    await write(client, 'warm');
    const folder = makeScratch();
    const file = join(folder, 'trace');
    const args = ['-f', '-e', 'trace=fsync,fdatasync,sync_file_range,msync', '-o', file];
    const tracer = spawn('strace', [...args, '-p', String(client.child.pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = new Promise((resolve) => {
      tracer.once('exit', resolve);
      tracer.once('error', resolve);
    });
    try {
      if (!(await attached(tracer, ended))) return undefined;
      for (let i = 0; i < count; i += 1) await write(client, `item-${i}`);
      tracer.kill('SIGINT');
      await ended;
      const syncs = readFileSync(file, 'utf8').match(/\b(?:f|fdata|m)sync\(|sync_file_range\(/g)?.length ?? 0;
      return syncs / count;
    } finally {
      tracer.kill('SIGKILL');
      removeScratch(folder);
    }
  });
}

async function attached(tracer, ended) {
  let timer;
  const said = new Promise((resolve) => {
    tracer.stderr?.on('data', (chunk) => String(chunk).includes('attached') && resolve(true));
    timer = setTimeout(() => resolve(false), ATTACH_MS_MAX);
  });
  const answer = await Promise.race([said, ended.then(() => false)]);
  clearTimeout(timer);
  return answer;
}
