import { expect } from 'vitest';
import { forgeCall, proves } from '../log-desk.ts';

for (const at of ['9999-12-31T23:59:59.999Z', 'zzzz']) {
  proves(
    ['times.never-back', 'head.foreign'],
    `V10: a last row of ${at} is found and is no bound for the times after it`,
    async (desk) => {
      await desk.work();
      const first = await desk.colibri.start();
      await desk.ok(first, 'server_ping', {});
      await first.closeInput();
      forgeCall(desk, { exit: { at } });
      const forged = desk.positions().length;

      const { findings } = await desk.verify();
      const server = await desk.colibri.start();
      await desk.think(server, 'later');
      await server.closeInput();

      expect(findings).toContainEqual(expect.objectContaining({ kind: 'malformed', record: `#${forged}` }));
      const later = desk.colibri.readAudit().rows.slice(forged);
      expect(later.length).toBeGreaterThan(0);
      for (const row of later) expect(Math.abs(Date.parse(row.at) - Date.now())).toBeLessThan(600_000);
    },
  );
}
