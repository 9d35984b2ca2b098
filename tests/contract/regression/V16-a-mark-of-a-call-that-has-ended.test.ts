import { expect } from 'vitest';
import { proves } from '../log-desk.ts';

// Somebody who has the file marks a call as open that ended long ago. An honest server must not end it a second time.

proves(
  ['detect.inserted', 'boot.order'],
  'V16: a planted mark of an open call makes no server write a row, and is found for what it is',
  async (desk) => {
    await desk.work();
    const before = desk.positions().length;
    desk.tamper((db) =>
      db.exec("INSERT INTO open_calls (position, process) VALUES (1, 'gone'), (2, 'gone')"),
    );

    const server = await desk.colibri.start();
    await desk.ok(server, 'server_ping', {});
    await server.closeInput();
    const found = await desk.verify();

    // The two rows of the call itself, and nothing between.
    expect(desk.positions().length).toBe(before + 2);
    expect(found.findings.map((finding) => (finding as { table?: string }).table)).toEqual(
      found.findings.map(() => 'open_calls'),
    );
    expect(found.findings.length).toBeGreaterThan(0);
  },
);
