import { expect } from 'vitest';
import { proves } from '../log-desk.ts';

// Somebody who has the database says of a text that it came with a call whose number no call can have.

for (const call of ['9223372036854775807', '-9223372036854775808', '1152921504606846976'])
  proves(
    'detect.column',
    `A12: a task whose title came with call ${call} is shown without it, beside all others, and verify names it`,
    async (desk) => {
      await desk.work();
      desk.tamper((db) => db.exec(`UPDATE tasks SET title_call = ${call} WHERE id = 1`));

      const server = await desk.colibri.start();
      const { envelope } = await server.call('task_list', {});
      const { error } = await server.call('task_list', { search: 'a' });
      await server.closeInput();
      const { findings, code } = await desk.verify();

      expect(envelope).toMatchObject({ ok: true });
      expect(JSON.stringify(envelope)).toContain('[erased]');
      expect(error).toBeUndefined();
      expect(code).toBe(1);
      expect(findings.map(({ record }) => record)).toContain('T-0001');
    },
  );
