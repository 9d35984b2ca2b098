// Rows a second of verifyDatabase on a generated log: node bench/verify.mjs [ROWS] [FILE]. A FILE that exists is used again.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { bundleOptions } from '../scripts/build.mjs';

const rows = Number(process.argv[2] ?? 200_000);
const folder = mkdtempSync(join(tmpdir(), 'colibri-verify-'));
const path = resolve(process.argv[3] ?? join(folder, 'colibri.db'));
const bundle = resolve('dist/bench/verify.mjs');

const entry = `
  export { appendRow, keepPayload, readHead } from './src/log/append.ts';
  export { insertState } from './src/log/state.ts';
  export { TASKS } from './src/log/tables.ts';
  export { payloadHash } from './src/log/row.ts';
  export { systemClock } from './src/clock.ts';
  export { openSqlite } from './src/storage/sqlite/engine.ts';
  export { verifyDatabase } from './src/log/verify/verify.ts';
`;
await build({
  ...bundleOptions,
  minify: false,
  stdin: { contents: entry, resolveDir: resolve('.'), loader: 'ts' },
  outfile: bundle,
});
const colibri = await import(bundle);

if (!existsSync(path)) await generate();
await measure();
rmSync(folder, { recursive: true, force: true });

/** Half of the calls write a task, half only read: enter and exit row each, arguments and results beside them. */
async function generate() {
  const storage = await colibri.openSqlite({ path });
  const began = performance.now();
  for (let done = 0; done < rows; done += 20_000) {
    await storage.write(async (tx) => {
      let head = await colibri.readHead(tx);
      const end = Math.min(rows, head.position + 20_000);
      while (head.position < end) head = await addCall(tx, head);
    });
  }
  await storage.close();
  console.log(`generated ${rows} rows in ${seconds(began)} s`);
}

async function addCall(tx, before) {
  const { systemClock: clock, TASKS } = colibri;
  const writes = before.position % 4 === 0;
  const salt = clock.salt();
  const args = JSON.stringify({
    project: 'bench',
    title: `Task ${before.position}`,
    description: 'word '.repeat(40),
  });
  const common = {
    tool: writes ? 'task_create' : 'task_get',
    actor: 'bench-client',
    correlation_id: crypto.randomUUID(),
    schema_valid: true,
    error_code: null,
    process: 'abcdef.123456.4242.abcd12',
    repaired: [],
  };
  const enter = {
    args_hash: colibri.payloadHash(salt, args),
    outcome: 'running',
    duration_ms: null,
    result_hash: null,
  };
  let head = await colibri.appendRow(tx, before, { ...common, ...enter, stage: 'enter', effects: [] }, clock);
  await colibri.keepPayload(tx, head.position, salt, args);
  const sequence_no = head.position;
  const call = { position: sequence_no + 1, effects: [], salt: () => clock.salt() };
  if (writes) await colibri.insertState(tx, call, TASKS, taskOf(before.position / 4 + 1));
  const exit = {
    args_hash: null,
    outcome: 'ok',
    duration_ms: 1.25,
    result_hash: colibri.payloadHash(salt, args),
  };
  head = await colibri.appendRow(
    tx,
    head,
    { ...common, ...exit, sequence_no, stage: 'exit', effects: call.effects },
    clock,
  );
  if (writes) await colibri.keepPayload(tx, head.position, salt, args);
  return head;
}

function taskOf(id) {
  const at = new Date().toISOString();
  const text = { project: 'bench', title: `Task ${id}`, description: 'word '.repeat(40), workflow: 'kanban' };
  const state = { status: 'backlog', status_since: at, status_by: 'bench', is_final: 0, queue: 1, unmet: 0 };
  const more = {
    blocked_reason: null,
    progress: 0,
    priority: 'normal',
    type: null,
    proof_grade: 0,
    assignee: '',
  };
  const links = { labels: '[]', estimate_hours: null, parent_id: null, depends_on: '[]' };
  const stamps = { created_at: at, created_by: 'bench', updated_at: at, updated_by: 'bench' };
  return { id, sequence: id, ...text, ...state, ...more, ...links, ...stamps };
}

async function measure() {
  for (let round = 0; round < 3; round += 1) {
    const storage = await colibri.openSqlite({ path, readOnly: true });
    const findings = [];
    let peak = 0;
    const began = performance.now();
    const used = process.cpuUsage();
    const verified = await colibri.verifyDatabase(storage, {
      report: (finding) => findings.push(finding),
      onProgress: () => {
        peak = Math.max(peak, process.memoryUsage.rss());
      },
    });
    const took = (performance.now() - began) / 1_000;
    const { user, system } = process.cpuUsage(used);
    await storage.close();
    console.log(
      `${verified.size} rows in ${took.toFixed(2)} s: ${Math.round(verified.size / took)} rows/s, ${((user + system) / 1e6).toFixed(2)} s of processor, ${Math.round(peak / 1_048_576)} MB, ${findings.length} findings`,
    );
    if (findings.length > 0) console.log(findings.slice(0, 3));
  }
}

function seconds(began) {
  return ((performance.now() - began) / 1_000).toFixed(1);
}
