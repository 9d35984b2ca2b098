import { expect } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { proves } from '../log-desk.ts';

// A call has eight numbers for its texts and fills them from the first on. Somebody who has the database puts a text of their own
// under a free one, with the digest of that of the call.

/** The same digest with another text, behind every text of the call that carried it. */
const PLANT = `INSERT INTO texts SELECT id + 7 - id % 8, digest, salt, 'planted' FROM texts
  WHERE digest IN (SELECT content FROM thoughts WHERE id = 1)`;

proves(
  'detect.inserted',
  'A13: a text that was put beside that of a call is never shown in its place, and verify names it',
  async (desk) => {
    const { colibri } = desk;
    await desk.work();
    desk.tamper((db) => db.exec(PLANT));

    const told = [];
    for (const args of [['show', 'Θ-0001'], ['log'], ['list'], ['show', 'T-0001']])
      told.push((await runColibri(colibri, args)).stdout);
    const server = await colibri.start();
    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });
    await server.closeInput();
    const { findings, code } = await desk.verify();

    expect([...told, JSON.stringify(envelope)].join('\n')).not.toContain('planted');
    expect(code).toBe(1);
    expect(findings.map(({ table }) => table)).toEqual(['texts']);
  },
);

proves(
  'erase.shown',
  'A13: a text that was put beside that of a call is erased with it, and one that is put back is not shown',
  async (desk) => {
    const { colibri } = desk;
    await desk.work();
    desk.tamper((db) => db.exec(PLANT));
    const erased = await runColibri(colibri, ['erase', 'Θ-0001', '--reason', 'asked', '--yes']);
    const after = await desk.verify();
    desk.tamper((db) =>
      db.exec(
        `INSERT INTO texts SELECT 8 * call + 7, content, '${'a'.repeat(32)}', 'planted' FROM thoughts WHERE id = 1`,
      ),
    );

    const shown = await runColibri(colibri, ['show', 'Θ-0001']);
    const { findings, code } = await desk.verify();

    expect([erased.code, after.code]).toEqual([0, 0]);
    expect(shown.stdout).not.toContain('planted');
    expect(code).toBe(1);
    expect(findings.map(({ table }) => table)).toEqual(['texts']);
    expect(findings[0]?.record).toMatch(/^[0-9a-f]{16}$/);
  },
);
