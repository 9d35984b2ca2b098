// Filled databases, made once in a run, shared by the sections that want one of the same size, and gone at its end.
import { join } from 'node:path';
import { importSource } from './build.mjs';
import { environmentIn, startOnce } from './client.mjs';
import { progress } from './progress.mjs';
import { makeScratch } from './scratch.mjs';

const filled = new Map();

/** The environment of a database with that many tasks and audit rows, at least; sections before may have added some. */
export async function filledDatabase({ tasks, rows }) {
  const key = `${tasks}/${rows}`;
  if (!filled.has(key)) filled.set(key, await makeFilled({ tasks, rows }));
  return environmentIn(filled.get(key));
}

async function makeFilled({ tasks, rows }) {
  const folder = makeScratch();
  const env = environmentIn(folder);
  // A first start makes the log known to its signer, as in real life.
  await startOnce(env);
  const before = performance.now();
  await fill(env, { tasks, rows });
  progress(`filled ${tasks} tasks, ${rows} rows in ${Math.round((performance.now() - before) / 1000)} s`);
  return folder;
}

/** Adds calls to a database through the real stages, signed by the key of its user. */
export async function fill(env, filling) {
  const { fillDatabase } = await importSource('fill-database');
  await fillDatabase(env.COLIBRI_DB_PATH, { ...filling, configDir: join(env.XDG_CONFIG_HOME, 'colibri') });
}
