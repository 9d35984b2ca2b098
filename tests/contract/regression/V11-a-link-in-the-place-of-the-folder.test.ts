import { existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { proves } from '../log-desk.ts';

proves(
  'checkpoint.replaced',
  'V11: a folder that was swapped for a link to an empty one is a replaced database, not a new log',
  async (desk) => {
    await desk.work();
    const folder = dirname(desk.dbPath);
    renameSync(folder, `${folder}.old`);
    mkdirSync(`${folder}.new`);
    symlinkSync(`${folder}.new`, folder);

    const gone = await desk.verify();
    const server = await desk.colibri.start();
    const health = await desk.health(server);
    const { message } = await server.call('task_create', { title: 'a', project: 'demo' });
    await server.closeInput();
    const replaced = await desk.verify();

    expect(gone).toMatchObject({ ok: false, findings: [{ kind: 'missing' }] });
    expect(health.status).toBe('degraded');
    expect(health.log.refused).toMatch(/was the log colibri\/\w+ and is now an empty one/);
    expect(JSON.stringify(message)).toContain('colibri/unsigned');
    expect(replaced).toMatchObject({
      ok: false,
      findings: expect.arrayContaining([expect.objectContaining({ kind: 'replaced' })]),
    });
    expect(existsSync(`${folder}.old/colibri.db`)).toBe(true);
  },
);

proves(
  'checkpoint.replaced',
  'V11: a folder that was moved and linked from its old place is the same log, under both names',
  async (desk) => {
    await desk.work();
    const folder = dirname(desk.dbPath);
    renameSync(folder, `${folder}.moved`);
    symlinkSync(`${folder}.moved`, folder);

    const server = await desk.colibri.start();
    const health = await desk.health(server);
    await server.call('task_create', { title: 'a', project: 'demo' });
    await server.closeInput();

    expect(health).toMatchObject({ status: 'ok' });
    expect(await desk.verify()).toMatchObject({ ok: true, findings: [] });
  },
);
