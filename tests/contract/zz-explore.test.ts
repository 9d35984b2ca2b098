import { test } from 'vitest';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as T from '/work/main/tests/tamper.ts';
import { seededRandom } from '/work/main/tests/driver/random.ts';

test('explore', async () => {
  process.env.COLIBRI_TEST_SEED = '7';
  const dir = mkdtempSync(join(tmpdir(), 'tam-'));
  const path = join(dir, 'a.db');
  const clock = T.seededClock(seededRandom('x'));
  const w = await T.openWorkshop(path, clock);
  const ok = async (n: string, a: object) => { const r = await w.call(n, a); if ((r as any).ok === false || Object.keys(r).length === 0) console.error(n, JSON.stringify(r)); return r; };
  await ok('task_create', { title: 'Alpha', project: 'p', description: 'dé', labels: ['x', 'y'], type: 'spike', estimate_hours: 2.5, proof_grade: true });
  await ok('task_create', { title: 'Beta', project: 'p', parent_id: 'T-0001', labels: ['x'], estimate_hours: 1 , type: 'doc'});
  await ok('task_create', { title: 'Gamma', project: 'q', depends_on: ['T-0001', 'T-0002'], parent_id: 'T-0001', estimate_hours: 3, type:'doc', labels:['z'] });
  await ok('audit_session_start', { task_id: 'T-0001', auditor_id: 'aud', reason: 'why', scope: 'deep' });
  await ok('audit_session_start', { task_id: 'T-0003', auditor_id: 'aud', reason: 'why' });
  for (let i = 0; i < 4; i++) for (const t of ['T-0001', 'T-0002', 'T-0003'])
    await ok('thought_record', { task_id: t, type: 'decision', content: `c${i} "q" \n ü`, branch: 'b', commit_sha: 'abc', tests_run: ['a'], blockers: ['z'], metadata: { a: 1 }, ...(t==='T-0002'&&{session_id:'A-0001'}) });
  await ok('task_update', { task_id: 'T-0002', status: 'todo' });
  await ok('task_update', { task_id: 'T-0002', status: 'blocked', blocked_reason: 'r' });
  await ok('task_update', { task_id: 'T-0001', progress: 50 });
  await ok('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0001' });
  await ok('audit_session_start', { task_id: 'T-0001', auditor_id: 'aud', reason: 'why' });
  await w.call('task_update', { task_id: 'T-0001', nope: 50 });
  await w.call('task_update', { task_id: 'T-0901', progress: 50 });
  for (let i = 0; i < 300; i++) await ok('server_ping', {});
  await w.begin('task_update', { task_id: 'T-0001', progress: 1 });
  await w.begin('task_update', { task_id: 'T-0001', progress: 2 });
  await w.begin('task_update', { task_id: 'T-0001', progress: 3 });
  await w.close();
  console.error('clean', await T.findingsAt(path));
  const c = new T.Copies(path);
  const tables = T.tablesOf(path);
  const bad: string[] = []; let n = 0; const t0 = Date.now();
  const thrown: string[] = []; const unnamed: string[] = [];
  const judge = (what: string, table: string, f: any[]) => {
    n++;
    if (f.length === 0) bad.push(what);
    else if (f.some((x) => x.message.startsWith('THROWN'))) thrown.push(what + ' ' + f[0].message.slice(0, 300));
    else if (!f.some((x) => x.table === table || x.message.includes(table))) unnamed.push(what + ' -> ' + JSON.stringify(f.slice(0, 2)));
  };
  for (const t of tables) {
    const rows = T.rowsOf(path, t);
    console.error(t.name, rows.length, t.columns.map((x) => x.name).join(','), t.key, t.isStrict);
    if (rows.length === 0) continue;
    const row = rows[Math.floor(rows.length / 2)]!;
    for (const col of t.columns) {
      const now = String(row[col.name]);
      const vals: [string, boolean][] = [];
      const isText = now.startsWith("'"); const isBlob = now.startsWith('X');
      if (isText) vals.push([`${col.name} || ' '`, false], [`'x'||${col.name}`, false], [`CAST(${col.name} AS BLOB)`, true], ['7', true], ["''", false], [`CAST(CAST(${col.name} AS BLOB)||x'00' AS TEXT)`, false]);
      else if (isBlob) vals.push([`${col.name} || x'00'`, false], [`x'00'`, false], [`CAST(${col.name} AS TEXT)`, true], ["''", false], ['7', true]);
      else vals.push([`coalesce(${col.name},0) + 1000`, false], [`-coalesce(${col.name},0) - 1`, false], ['9007199254740993', false], ['9223372036854775807', false], ["'abc'", true], [`CAST(coalesce(${col.name},0) AS TEXT)`, true], [`CAST(coalesce(${col.name},0) AS TEXT)||' '`, true], [`coalesce(${col.name},0)+0.5`, true], [`coalesce(${col.name},0)+0.0`, true]);
      if (col.type === 'REAL') vals.push(['9e999', false], [`${col.name}+1e-9`, false]);
      if (now !== 'NULL') vals.push(['NULL', true]);
      for (const [v, loose] of vals) {
        const what = `${t.name}.${col.name} = ${v}${loose ? ' (loose)' : ''}`;
        let f;
        try {
          const p = c.fresh();
          const before = T.dump(p, tables);
          T.tamper(p, `UPDATE ${t.name} SET ${col.name} = ${v} ${T.whereIs(t, row)}`, loose ? [t] : []);
          if (T.dump(p, tables) === before) { console.error('same', what); continue; }
          f = await T.findingsAt(p);
        } catch (e) { console.error('cannot', what, String(e).slice(0, 120)); continue; }
        judge(what, t.name, f);
      }
    }
  }
  console.error(n, 'cases', Date.now() - t0, 'ms');
  console.error('UNDETECTED\n' + bad.join('\n'));
  console.error('THROWN\n' + thrown.join('\n'));
  console.error('UNNAMED\n' + unnamed.join('\n'));
}, 600000);
