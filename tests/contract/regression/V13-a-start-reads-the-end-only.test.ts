import { expect } from 'vitest';
import { proves } from '../log-desk.ts';

proves(
  'head.constant-start',
  'V13: a start looks at the last row and the head only: it comes up healthy over a row that only a full reading finds',
  async (desk) => {
    await desk.work();
    desk.tamper((db) => db.exec(`UPDATE actions SET content = chain WHERE position = 2`));

    const server = await desk.colibri.start();
    const health = await desk.health(server);
    await server.closeInput();
    const { findings } = await desk.verify();

    expect(health.status).toBe('ok');
    expect(findings).toContainEqual(expect.objectContaining({ table: 'actions', record: '#2' }));
  },
);
