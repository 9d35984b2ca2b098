import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';

test.skipIf(process.platform !== 'linux')(
  'threads of V8 have a low priority, and those that calls wait for the usual one',
  async () => {
    const colibri = new Playground();
    try {
      const server = await colibri.start();
      const task = { title: 'one of many', project: 'p' };
      // Many at once: their sync is on another thread.
      await Promise.all(Array.from({ length: 8 }, () => server.call('task_create', task)));

      const tasks = `/proc/${server.pid}/task`;
      const threads = readdirSync(tasks).sort((a, b) => Number(a) - Number(b));
      const [main, ...others] = threads.map((thread) =>
        priorityIn(readFileSync(`${tasks}/${thread}/stat`, 'utf8')),
      );

      expect(main).toBe(priorityIn(readFileSync('/proc/self/stat', 'utf8')));
      expect(others.slice(0, 5)).toEqual(Array(5).fill(Math.min(Number(main) + 10, 19)));
      expect(others.length).toBeGreaterThan(5);
      expect(new Set(others.slice(5))).toEqual(new Set([main]));
    } finally {
      await colibri.dispose();
    }
  },
);

test('a server that has served hundreds of calls has said nothing on stderr but its own lines', async () => {
  const colibri = new Playground();
  try {
    const server = await colibri.start();
    const pings = Array.from({ length: 300 }, () => ['server_ping', {}] as const);
    await server.callTogether(pings);
    await server.call('server_ping');
    await server.closeInput();

    const lines = server.stderr.split('\n').filter((line) => line !== '');
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => !line.startsWith('[colibri] '))).toEqual([]);
  } finally {
    await colibri.dispose();
  }
});

/** Behind the name of the thread, which may hold spaces, the 17th field. */
function priorityIn(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
}
