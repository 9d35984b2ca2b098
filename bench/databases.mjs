// Filled databases, made once in a run, shared by the sections that want one of the same size, and gone at its end.
import { importSource } from './build.mjs';
import { environmentIn, startOnce } from './client.mjs';
import { progress } from './progress.mjs';
import { makeScratch } from './scratch.mjs';

const filled = new Map();

/** The environment of a database with that many tasks and audit rows, at least; sections before may have added some. */
export async function filledDatabase({ tasks, rows }) {
  const key = `${tasks}/${rows}`;
  if (!filled.has(key)) filled.set(key, await fill({ tasks, rows }));
  return environmentIn(filled.get(key));
}

async function fill({ tasks, rows }) {
  const { fillDatabase } = await importSource('fill-database');
  const folder = makeScratch();
  const env = environmentIn(folder);
  // A first start makes the log known to its signer, as in real life.
  await startOnce(env);
  const before = performance.now();
  await fillDatabase(env.COLIBRI_DB_PATH, { tasks, rows });
  progress(`filled ${tasks} tasks, ${rows} rows in ${Math.round((performance.now() - before) / 1000)} s`);
  return folder;
}
