import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/storage/address.ts';
import type { Reader, SqlValue, StorageEngine, Transaction } from '../../src/storage/engine.ts';
import { openPostgres } from '../../src/storage/postgres/engine.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';

describe.skipIf(NO_POSTGRES !== undefined)(`what leaves together ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  const engines: StorageEngine[] = [];
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(async () => {
    for (const engine of engines) await engine.close();
    await cluster?.stop();
  });

  async function opened(url: string): Promise<StorageEngine> {
    const address = parseAddress(url);
    if (address === undefined) throw new Error(`${url} is no address`);
    const engine = await openPostgres({ address });
    engines.push(engine);
    return engine;
  }

  /** An engine on a log that has its name, so that a write may begin ahead. */
  async function named(url: string): Promise<StorageEngine> {
    const engine = await opened(url);
    await engine.write((tx) => tx.change('INSERT INTO log (id, origin) VALUES (1, ?)', 'x'));
    return engine;
  }

  const add = (tx: Transaction, position: number) =>
    tx.change('INSERT INTO open_calls (position, process) VALUES (?, ?)', position, 'x');
  const positions = async (tx: Reader) =>
    (await tx.lists('SELECT position FROM open_calls ORDER BY position')).flat();

  test.each([
    ['nothing of it has left', async () => undefined],
    ['some of it has left', positions],
  ])('a savepoint takes back what was written in it, and no more, where %s', async (_, ask) => {
    const engine = await opened(await cluster.createDatabase());

    const seen = await engine.write(async (tx) => {
      await add(tx, 1);
      tx.known.set('a row', 1);
      await expect(
        tx.savepoint(async () => {
          await add(tx, 2);
          await ask(tx);
          await add(tx, 3);
          throw new Error('as planned');
        }),
      ).rejects.toThrow('as planned');
      expect(tx.known.size).toBe(0);
      await tx.savepoint(async () => {
        await positions(tx);
        await add(tx, 4);
      });
      return await tx.savepoint(async () => {
        await add(tx, 5);
        return await positions(tx);
      });
    });

    expect(seen).toEqual([1, 4, 5]);
    expect(await engine.read(positions)).toEqual([1, 4, 5]);
  });

  test('a change that changes no row takes everything back, whatever it left with, and the session goes on', async () => {
    const engine = await opened(await cluster.createDatabase());
    await engine.write((tx) => add(tx, 1));

    const failed = engine.write(async (tx) => {
      await add(tx, 2);
      await tx.change('DELETE FROM open_calls WHERE position = ?', 9);
    });
    await expect(failed).rejects.toThrow('exactly one row');
    // Of a statement that fails when it is sent first, nobody knows whether the server has it.
    const unknown = () => engine.write((tx) => tx.change('DELETE FROM nothing WHERE position = ?', 1));
    for (let tries = 0; tries < 2; tries += 1) await expect(unknown()).rejects.toThrow('nothing');
    await engine.write((tx) => tx.change('DELETE FROM open_calls WHERE position = ?', 1));

    expect(await engine.read(positions)).toEqual([]);
  });

  test('rows of a state are changed one after the other, and each sees what the one before it did', async () => {
    const engine = await opened(await cluster.createDatabase());
    const change = (tx: Transaction, at: number) =>
      tx.change(
        'UPDATE sessions SET scope = ?, position = ? WHERE id = ? AND position = ?',
        `${at}`,
        at,
        1,
        at - 1,
      );

    await engine.write(async (tx) => {
      await tx.run('ALTER TABLE sessions DROP CONSTRAINT sessions_task_id_fkey');
      const columns = [
        'id',
        'task_id',
        'auditor_id',
        'scope',
        'status',
        'started_at',
        'started_by',
        'skills',
        'call',
        'position',
      ];
      await tx.insert('sessions', columns, [[1, 1, 'a', 's', 'open', 't', 'b', '[]', 1, 1]]);
      for (const at of [2, 3, 4]) {
        await change(tx, at);
        await add(tx, at);
      }
    });

    const rows = await engine.read((tx) => tx.lists('SELECT scope, position FROM sessions'));
    expect(rows).toEqual([['4', 4]]);
    expect(await engine.read(positions)).toEqual([2, 3, 4]);
  });

  test('many rows at once are stored as each alone would be', async () => {
    const engine = await opened(await cluster.createDatabase());
    const texts = ['', '{"a":[1]}', `'"\\ \n\t$1 ?`, 'ÄÖ \u{1f426} \u2028', 'x'.repeat(100_000)];
    const rows = texts.map((text, i): SqlValue[] => [i, text, `00ff0${i}`, '']);
    const columns = ['position', 'text', 'content', 'chain'];

    await engine.write((tx) => tx.insert('actions', columns, rows));
    for (const [i, row] of rows.entries())
      await engine.write((tx) => tx.insert('actions', columns, [[i + 10, ...row.slice(1)]]));
    const nothing = [null, null].map((task, i): SqlValue[] => [`${i}`, task, i]);
    await engine.write((tx) => tx.insert('erased_texts', ['digest', 'task_id', 'position'], nothing));

    const read = (from: number) =>
      engine.read((tx) =>
        tx.lists(
          'SELECT text, content, chain FROM actions WHERE position >= ? ORDER BY position LIMIT 5',
          from,
        ),
      );
    const stored = texts.map((text, i) => [text, Buffer.from([0, 255, i]), Buffer.alloc(0)]);
    expect(await read(0)).toEqual(stored);
    expect(await read(10)).toEqual(stored);
    expect(await engine.read((tx) => tx.lists('SELECT task_id FROM erased_texts'))).toEqual([[null], [null]]);
  });

  test('a write that is begun ahead is gone on with, and lets others go first where nobody does', async () => {
    const url = await cluster.createDatabase();
    const [one, other] = [await named(url), await opened(url)];
    const first = (tx: Reader) => tx.all<{ n: number }>('SELECT count(*) AS n FROM open_calls');

    const ahead = async (tx: Transaction) => {
      const [row] = await first(tx);
      await add(tx, (row?.n ?? 0) + 1);
      return row?.n;
    };
    const seen = [
      await one.write(ahead, { next: async () => undefined }),
      await one.write(ahead, { next: async () => undefined }),
      // Nobody goes on with the third.
      await other.write(ahead),
      await one.write(ahead),
      await other.write(ahead),
    ];

    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  test('what was begun ahead is as lost as the commit that it left with', async () => {
    const url = await cluster.createDatabase();
    const engine = await named(url);
    const failed = engine.write(
      async (tx) => {
        await add(tx, 1);
        await tx.change('DELETE FROM open_calls WHERE position = ?', 9);
      },
      { next: async () => undefined },
    );

    await expect(failed).rejects.toThrow('exactly one row');
    await engine.write((tx) => add(tx, 2));

    expect(await engine.read(positions)).toEqual([2]);
  });

  test('what was seen on a connection that is lost is not taken for durable, whoever committed it', async () => {
    const url = await cluster.createDatabase();
    const [one, other] = [await named(url), await opened(url)];
    await one.sync();
    await other.write((tx) => add(tx, 1), 'soon');
    const failed = one.write(async (tx) => {
      expect(await positions(tx)).toEqual([1]);
      const name = url.slice(url.lastIndexOf('/') + 1);
      cluster.sql(
        'postgres',
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      );
      return await positions(tx);
    });

    await expect(failed).rejects.toThrow('nothing was written');
    // Had the server failed, the row that was seen might never have been.
    await expect(one.sync()).rejects.toThrow('connection');
    await one.write((tx) => add(tx, 2));
    await one.sync();
  });

  test('a lone write takes three round trips, and calls that come together hardly more', async () => {
    const url = await cluster.createDatabase();
    const { trips, ...proxy } = await counting(cluster, url);
    const colibri = new Playground(proxy.url);
    try {
      const server = await colibri.start();
      type ToolCall = readonly [name: string, args: object];
      const update = (progress: number, task = 1): ToolCall => [
        'task_update',
        { task_id: `T-000${task}`, progress },
      ];
      const thought: ToolCall = ['thought_record', { task_id: 'T-0001', type: 'plan', content: 'x' }];
      const create: ToolCall = ['task_create', { title: 'x', project: 'p' }];
      // What is prepared once is not counted, and neither is a look at what only the first call must see.
      for (const call of [create, create, thought, update(1), update(2)]) await server.call(call[0], call[1]);
      const counted: number[] = [];
      for (const call of [create, thought, update(3)]) {
        const before = trips();
        await server.call(call[0], call[1]);
        counted.push(trips() - before);
      }
      const before = trips();
      const answers = await server.callTogether([
        ...Array.from({ length: 8 }, (_, i) => update(i + 10)),
        ...Array.from({ length: 3 }, (_, i) => update(i + 10, i + 1)),
        ...Array.from({ length: 8 }, () => create),
        ...Array.from({ length: 8 }, () => thought),
      ]);
      const together = trips() - before;

      expect(answers.filter(({ envelope }) => envelope?.ok !== true)).toEqual([]);
      expect(counted).toEqual([3, 3, 3]);
      // They may be taken as several batches.
      expect(together).toBeLessThan(answers.length);
    } finally {
      await colibri.dispose();
      proxy.close();
    }
  });
});

/** A proxy to the socket of the cluster that counts how often somebody waited for the server before going on. */
async function counting(cluster: Cluster, url: string) {
  let trips = 0;
  const server = createServer({ noDelay: true }, (near) => {
    const far = createConnection({ path: join(cluster.folder, '.s.PGSQL.5432') });
    let hasAnswered = true;
    near.on('data', (piece) => {
      if (hasAnswered) trips += 1;
      hasAnswered = false;
      far.write(piece);
    });
    far.on('data', (piece) => {
      hasAnswered = true;
      near.write(piece);
    });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const)
      for (const event of ['close', 'error']) socket.on(event, () => other.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    trips: () => trips,
    url: `postgres://owner@127.0.0.1:${port}/${url.split('/').at(-1)}?sslmode=disable`,
    close: () => server.close(),
  };
}
