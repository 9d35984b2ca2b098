import { expect } from 'vitest';
import { type LogDesk, proves, rewrite, rewriteText, signAnew, type Verdict } from './log-desk.ts';

// tests/matrix has the breadth; here is what a person sees, on the command line, of one log in three forms.

const CHANGES: readonly (readonly [what: string, change: (desk: LogDesk) => void])[] = [
  ['nothing', () => undefined],
  [
    'a text',
    (desk) => desk.tamper((db) => db.exec(`UPDATE texts SET text = text || '.' WHERE text = 'second'`)),
  ],
  [
    'a column',
    (desk) => desk.tamper((db) => db.exec(`UPDATE thoughts SET recorded_by = 'eve' WHERE id = 2`)),
  ],
  [
    'a row of the log, with every hash recomputed',
    (desk) =>
      desk.tamper((db) =>
        rewriteText(db, (text, position) => (position === 7 ? text.replace('":', '": ') : text)),
      ),
  ],
  [
    'a time, with everything signed anew',
    (desk) => {
      desk.tamper((db) =>
        rewrite(db, (row) => {
          if (row.position === 8) row.at = new Date(Date.parse(String(row.at)) + 1).toISOString();
        }),
      );
      signAnew(desk);
    },
  ],
];

proves(
  ['verdict.one', 'bundle.forms'],
  'a log and its bundle, as folder and as zip, have the same findings and ranges',
  async (desk) => {
    await desk.work();
    const copy = desk.colibri.path('good.db');
    desk.copyTo(copy);
    for (const [what, change] of CHANGES) {
      desk.restore(copy);
      change(desk);
      const [folder, zip] = [desk.colibri.path(`${what}.bundle`), desk.colibri.path(`${what}.zip`)];
      for (const path of [folder, zip]) await desk.run('export', '-o', path);

      const database = verdictIn(await desk.verify());
      const carried = [verdictIn(await desk.verify(folder)), verdictIn(await desk.verify(zip))];

      expect(database.findings.length > 0, what).toBe(what !== 'nothing');
      expect(carried, what).toEqual([database, database]);
    }
  },
);

proves(
  'verdict.texts',
  'a text that is gone is a finding that names the call and the field it was in',
  async (desk) => {
    await desk.work();
    desk.tamper((db) => db.exec(`DELETE FROM texts WHERE text = 'second'`));
    const [, call] = desk.positions("tool = 'thought_record' AND stage = 'enter'");

    const { findings } = await desk.verify();

    expect(findings).toEqual([
      expect.objectContaining({ kind: 'missing', table: 'texts', record: `#${call}`, columns: ['content'] }),
    ]);
  },
);

function verdictIn({ size, intact_through, replayed_through, checkpointed_through, findings }: Verdict) {
  return {
    ranges: { size, intact_through, replayed_through, checkpointed_through },
    findings: findings.map(({ kind, record, columns = [] }) => `${kind} ${record} ${columns}`).sort(),
  };
}
