import { expect } from 'vitest';
import { append, proves, sizeIn } from '../log-desk.ts';

for (const far of [50, 1_000_000_000]) {
  proves(
    ['head.foreign', 'checkpoint.extends'],
    `V9: a row at ${far} behind the last one is found at once and signed by nobody`,
    async (desk) => {
      await desk.work();
      const signed = desk.positions().length;
      const last = desk.colibri.readAudit().rows.at(-1) ?? {};
      desk.tamper((db) => append(db, [{ ...last, position: far }]));
      const began = performance.now();

      const { findings } = await desk.verify();
      const kept = await desk.run('checkpoint');
      const { health } = await desk.refusalAtStart();

      expect(findings.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['foreign', 'missing']));
      expect(kept.code).toBe(1);
      expect(health.log.refused).toContain('did not sign');
      expect(sizeIn(desk.head)).toBe(signed);
      expect(performance.now() - began, 'nothing counts up to it').toBeLessThan(30_000);
    },
  );
}
