import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';
import { sleepMs } from '../driver/server-process.ts';

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

test.skipIf(process.platform !== 'linux')(
  'a server that was called again and again at once sleeps when nobody calls any more',
  async () => {
    const colibri = new Playground();
    try {
      const server = await colibri.start();
      for (let i = 0; i < 50; i += 1) await server.call('server_ping');
      await sleepMs(500);

      const before = ticksOf(server.pid);
      await sleepMs(1_000);

      // Of a hundred. A loop that turns without a pause takes nearly all of them.
      expect(ticksOf(server.pid) - before).toBeLessThan(30);
    } finally {
      await colibri.dispose();
    }
  },
);

function priorityIn(stat: string): number {
  return Number(fieldsIn(stat)[16]);
}

/** Hundredths of a second that a process has worked. */
function ticksOf(pid: number): number {
  const fields = fieldsIn(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return Number(fields[11]) + Number(fields[12]);
}

/** What stands behind the name of the process or thread, which may hold spaces. */
function fieldsIn(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
