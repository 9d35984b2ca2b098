import { rmSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../src/storage/sqlite/migrations.ts';
import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import { checkWordIndex } from '../../src/log/verify/word-index.ts';

test('no false alarm on a large index', async () => {
  const path = '/dev/shm/fp.db';
  for (const s of ['', '-wal', '-shm']) rmSync(path + s, { force: true });
  const db = new Sqlite(path);
  db.pragma('journal_mode = WAL'); db.pragma('synchronous = OFF');
  for (const step of MIGRATIONS) db.exec(step);
  db.pragma(`application_id = ${0x436f6c69}`); db.pragma(`user_version = ${MIGRATIONS.length}`);
  let seed = 7; const rnd = (n: number) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return seed % n; };
  const word = () => rnd(3) === 0 ? 'common' : 'w' + rnd(60000).toString(36);
  const text = (n: number) => Array.from({ length: n }, word).join(' ');
  const ins = db.prepare('INSERT INTO task_words (rowid, title, description) VALUES (?, ?, ?)');
  const upd = db.prepare('UPDATE task_words SET title = ?, description = ? WHERE rowid = ?');
  const report: string[] = [];
  const check = async (at: number) => {
    const storage = await openSqlite({ path, readOnly: true });
    const t = performance.now();
    await storage.read((tx) => checkWordIndex(tx, (f) => report.push(`${at} ${f.table} ${f.record} ${f.message}`)));
    const ms = performance.now() - t;
    await storage.close();
    return ms;
  };
  let ms = 0;
  for (let i = 1; i <= 12000; i += 1) {
    ins.run(i, text(1 + rnd(10)), text(rnd(i % 50 === 0 ? 1500 : 60)));
    if (i % 3 === 0) upd.run(text(5), text(rnd(60)), 1 + rnd(i));
    if (i % 97 === 0) ms = await check(i);
  }
  const pages = db.prepare('SELECT count(*) n, (SELECT count(*) FROM task_words_idx) i, (SELECT count(*) FROM task_words_data WHERE (id >> 36) & 1) d, (SELECT count(DISTINCT segid) FROM task_words_idx) s FROM task_words_data').get();
  console.error(JSON.stringify(pages), 'last check', ms.toFixed(1), 'ms', 'structure', (db.prepare('SELECT hex(block) FROM task_words_data WHERE id=10').pluck().get() as string).slice(0, 400));
  const ic = db.prepare('PRAGMA integrity_check(task_words)').pluck().all();
  // each lead taken away or lengthened is told
  const leads = db.prepare('SELECT rowid_ FROM (SELECT 1 AS rowid_)').all();
  void leads;
  db.close();
  expect(ic).toEqual(['ok']);
  expect(report.slice(0, 10)).toEqual([]);
}, 300000);
