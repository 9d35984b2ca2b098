import { expect } from 'vitest';
import { proves } from '../log-desk.ts';

// Somebody who has the database puts rows where Colibri will write next. The log goes on behind any row in actions, as long as
// positions are exact numbers, and the digest of a new text cannot be known.

/** Rows of a table at the next positions, as values. */
const PLANTED: Readonly<Record<string, { column: string; row(position: number): string }>> = {
  action_payloads: { column: 'position', row: (position) => `${position}, '', '{}'` },
  open_calls: { column: 'position', row: (position) => `${position}, 'p'` },
  task_calls: { column: 'position', row: (position) => `1, ${position}` },
  actions: {
    column: 'position',
    row: (position) => `${Number.MAX_SAFE_INTEGER - position}, '{}', x'00', x'00'`,
  },
  log_blocks: { column: 'block', row: () => `0, '${'a'.repeat(64)}'` },
};

for (const [table, { column, row }] of Object.entries(PLANTED))
  proves(
    ['detect.inserted', 'storage.planted'],
    `A11: where a row was put into ${table}, a call says what to do; nothing is lost, and verify names it`,
    async (desk) => {
      await desk.work();
      const rows = desk.colibri.readAudit().rows.length;
      const first = table === 'log_blocks' ? 0 : rows + 1;
      desk.tamper((db) => {
        for (const position of table === 'log_blocks' ? [0] : [1, 2, 3, 4].map((n) => rows + n))
          db.exec(`INSERT INTO ${table} VALUES (${row(position)})`);
      });
      const thought = { task_id: 'T-0001', type: 'plan', content: 'x' };

      const server = await desk.colibri.start();
      const answers = [];
      for (let n = 0; n < (table === 'log_blocks' ? 130 : 2); n += 1)
        answers.push(await server.call('thought_record', thought));
      await server.closeInput();
      const { findings, code } = await desk.verify();
      desk.tamper((db) => db.exec(`DELETE FROM ${table} WHERE ${column} >= ${first}`));
      const again = await desk.colibri.start();
      const after = await again.call('thought_record', thought);
      await again.closeInput();
      const stored = answers.filter(({ error }) => error === undefined).length + 1;

      const refusals = answers.flatMap(({ error }) => error ?? []);
      expect(refusals.length).toBeGreaterThan(1);
      for (const { message } of refusals)
        expect(message).toMatch(
          /already has a row where a new one belongs .*Nothing was written\. Run "colibri verify"/,
        );
      expect(code).toBe(1);
      expect(findings.map((finding) => finding.table)).toEqual(findings.map(() => table));
      expect(after.error).toBeUndefined();
      expect((await desk.verify()).findings).toEqual([]);
      const ended = desk.colibri.readAudit().rows.slice(rows);
      expect(ended.filter(({ tool, outcome }) => tool === 'thought_record' && outcome === 'ok')).toHaveLength(
        stored,
      );
    },
  );
