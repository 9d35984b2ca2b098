// npm run test:nodes [-- MAJOR ...]: the contract suite against the built server on Node 20, 22 and 24, one after the other, then
// all three on one database. The npm package `node` provides those that are not here.
import { spawnSync } from 'node:child_process';
import { MAJORS, nodeOf } from './nodes.mjs';

const asked = process.argv.slice(2).map(Number);
const failed = [];
for (const major of asked.length > 0 ? asked : MAJORS) {
  const node = nodeOf(major);
  if (node === undefined) failed.push(`Node ${major} could not be had`);
  else if (!passes(['tests/contract'], { COLIBRI_TEST_NODE: node }))
    failed.push(`the contract suite on Node ${major}`);
}
if (!passes(['tests/nodes'], { COLIBRI_TEST_NODES: '1' })) failed.push('one database on all versions');
if (failed.length > 0) console.error(`failed: ${failed.join('; ')}`);
process.exitCode = failed.length > 0 ? 1 : 0;

function passes(paths, env) {
  console.log(`\n${JSON.stringify(env)} ${paths.join(' ')}`);
  const vitest = ['vitest', 'run', ...paths];
  return spawnSync('npx', vitest, { stdio: 'inherit', env: { ...process.env, ...env } }).status === 0;
}
