// A server of the table on a store of its own: its folders, its processes, its writes.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../client.mjs';
import { makeScratch, removeScratch } from '../scratch.mjs';

const ANSWER_MS_MAX = 30_000;
const TEXT =
  'What a person would write about it: where it comes from, what has to be true when it is finished, and who ought to know. ' +
  'About two hundred characters of ordinary words, the same for all.';

/** A store that is empty before `work` and gone after it, with every process that was started on it. */
export async function onEmptyStore({ server, installed }, work) {
  const folder = makeScratch();
  const place = { home: join(folder, 'home'), work: join(folder, 'work'), data: join(folder, 'data') };
  for (const path of Object.values(place)) mkdirSync(path);
  const env = { HOME: place.home, XDG_CONFIG_HOME: join(place.home, '.config'), ...server.env(place) };
  const [command, ...args] = server.command(installed);
  const running = new Set();
  const open = async () => {
    const client = start({ command, args, env, cwd: place.work, stderr: 'ignore' });
    running.add(client);
    await within(ANSWER_MS_MAX, client.initialize());
    return client;
  };
  try {
    if (server.prepare !== undefined) prepare(server.prepare(installed), env, place.work);
    return await work({ open, place, ...writerFor(server, place), stored: readerFor(server, place, open) });
  } finally {
    await Promise.all([...running].map((client) => client.kill()));
    removeScratch(folder);
  }
}

/** Writes the item of that name; whether the server acknowledged it. An answer that never comes is an error. */
function writerFor(server, place) {
  const write = async (client, name) => {
    const item = { name, text: TEXT };
    const [tool, args] = server.write(item, place);
    return server.accepted(await within(ANSWER_MS_MAX, client.call(tool, args)), item);
  };
  /** The same, where a refusal is an outcome and not the end. */
  const tryWrite = (client, name) => write(client, name).catch(() => false);
  return { write, tryWrite };
}

/**
 * Reads back from a fresh process, as the next session of a user would. A store that this process cannot read is an
 * outcome: nothing of it is there for the user, and `unreadable` says what the server said.
 */
function readerFor(server, place, open) {
  return async () => {
    const client = await open();
    try {
      return { names: await within(ANSWER_MS_MAX, server.stored(client, place)) };
    } catch (error) {
      if (error instanceof NoAnswer) throw error;
      return { names: [], unreadable: error.message };
    } finally {
      await client.close();
    }
  };
}

class NoAnswer extends Error {}

function prepare([command, ...args], env, cwd) {
  const { status, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args[0]} failed: ${error?.message ?? stderr.trim().slice(0, 200)}`);
}

async function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(`no answer within ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
