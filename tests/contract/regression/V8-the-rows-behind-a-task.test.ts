import { expect } from 'vitest';
import { canonical, sha256 } from '../../driver/audit-file.ts';
import { proves } from '../log-desk.ts';

// An agent has no other verifier than audit_verify_chain: it must see the rows of the calls that changed its task.

proves(
  'trail.verify.audit-rows',
  'V8: audit_verify_chain of a task finds an enter or exit row of its update altered, hashes recomputed or not, and both deleted',
  async (desk) => {
    await desk.work();
    const before = await desk.colibri.start();
    await desk.ok(before, 'task_update', { task_id: 'T-0001', status: 'todo' });
    await before.closeInput();
    await desk.moreWork();
    const copy = desk.colibri.path('good.db');
    desk.copyTo(copy);
    const [enter = 0, exit = 0] = desk.positions("tool = 'task_update'");
    const text = (position: number) => desk.colibri.readAudit().entries[position - 1]?.text ?? '';
    const edits = [enter, exit].flatMap((position) => {
      const changed = canonical({ ...JSON.parse(text(position)), actor: 'eve' });
      return [
        `UPDATE actions SET text = '${changed}' WHERE position = ${position}`,
        `UPDATE actions SET text = '${changed}', content = x'${sha256(changed)}' WHERE position = ${position}`,
        `DELETE FROM actions WHERE position = ${position}`,
        `UPDATE action_payloads SET body = '{}' WHERE position = ${position}`,
      ];
    });

    const scores: Record<string, unknown> = {};
    for (const sql of [...edits, `DELETE FROM actions WHERE position IN (${enter}, ${exit})`]) {
      desk.restore(copy);
      desk.tamper((db) => db.exec(sql));
      const server = await desk.colibri.start();
      const { envelope } = await server.call('audit_verify_chain', { task_id: 'T-0001' });
      await server.closeInput();
      const report = envelope?.data as { chain_valid: boolean; integrity_score: number };
      if (report.chain_valid || report.integrity_score === 100) scores[sql] = report;
    }

    expect(scores).toEqual({});
  },
);
