import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { parseAddress } from '../../src/storage/address.ts';
import { codeOf } from '../../src/storage/postgres/driver.ts';
import { openPostgres } from '../../src/storage/postgres/engine.ts';
import { runColibri } from '../driver/command-line.ts';
import type { ToolAnswer } from '../driver/message.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { tier } from '../driver/tier.ts';

const idOf = ({ envelope }: ToolAnswer) => (envelope as { data?: { task_id?: string } }).data?.task_id;

describe.skipIf(NO_POSTGRES !== undefined)(`a connection that is cut ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  /** Cuts the connection at every message of a write, one after the other, and compares what was answered with what is stored. */
  async function cutEverywhere(side: Side, how: How, calls: number, from = 1, step = 1): Promise<void> {
    const url = await cluster.createDatabase();
    const proxy = await startProxy(cluster, url);
    const colibri = new Playground(proxy.url);
    try {
      const server = await colibri.start({ answerMsMax: 60_000 });
      const create = async (title: string, count = 1) =>
        await server.callTogether(
          Array.from({ length: count }, () => ['task_create', { title, project: 'p' }] as const),
        );
      const made: string[] = [];
      const keep = (answers: readonly ToolAnswer[]) => {
        for (const answer of answers) {
          const id = idOf(answer);
          if (id === undefined) expect(JSON.stringify(answer.envelope)).toContain('ERR_STORAGE_BUSY');
          else made.push(id);
        }
      };
      for (let n = 0; n < 3; n += 1) keep(await create('before'));
      let cuts = 0;
      for (let at = from; ; at += step) {
        const isCut = proxy.cutAt(side, how, at);
        keep(await create(`cut ${at}`, calls));
        if (!isCut()) break;
        cuts += 1;
        // Who hears nothing holds the lock for as long as anybody may. A cut behind the last answer is met by the next call.
        let after: readonly ToolAnswer[] = [];
        for (let tries = how === 'without a word' ? 5 : 2; tries > 0; tries -= 1) {
          after = await create('after');
          keep(after);
          if (after.every((answer) => idOf(answer) !== undefined)) break;
        }
        expect(after.map(idOf), `after cut ${at}`).not.toContain(undefined);
        expect(openCalls(url), `after cut ${at}`).toEqual([]);
      }
      proxy.cutAt(side, how, Number.POSITIVE_INFINITY);
      await server.closeInput();

      const { rows, findings } = colibri.readAudit(url);
      expect(cuts).toBeGreaterThan(0);
      expect(findings).toEqual([]);
      expect(stateFindings(url)).toEqual([]);
      expect(made.sort()).toEqual(rows.flatMap(({ effects }) => effects.map(({ id }) => id)).sort());
      const { stdout } = await runColibri(colibri, ['verify', '--json']);
      expect(JSON.parse(stdout)).toMatchObject({ findings: [] });
    } finally {
      await colibri.dispose();
      proxy.close();
    }
  }

  describe.each<Side>(['sent', 'answered'])('after any message that was %s', (side) => {
    test.each<How>(['on both sides', 'late on the side of the server'])(
      '%s: what was answered is what is stored, and the next call goes on',
      async (how) => {
        await cutEverywhere(side, how, 1);
        await cutEverywhere(side, how, 6, 1, tier(5, 1));
      },
      600_000,
    );
  });

  test('while a database is opened: it says so, and is worth another try', async () => {
    const url = await cluster.createDatabase();
    const proxy = await startProxy(cluster, url);
    const address = parseAddress(proxy.url);
    if (address === undefined) throw new Error(`${proxy.url} is no address`);
    const open = () => openPostgres({ address, process: 'x' });
    try {
      for (const side of ['sent', 'answered'] as const) {
        const codes: unknown[] = [];
        for (let at = 1; ; at += 1) {
          const isCut = proxy.cutAt(side, 'with all others', at);
          const opened = await open().catch((error: unknown) => codeOf(error) || `${at} ${String(error)}`);
          if (typeof opened === 'string') codes.push(opened);
          else await opened.close();
          if (!isCut()) break;
        }
        expect(codes.length).toBeGreaterThan(10);
        expect(new Set(codes)).toEqual(new Set(['ERR_STORAGE_BUSY']));
      }
    } finally {
      proxy.close();
    }
  }, 600_000);

  test('a network that says nothing any more is noticed, and what happened is looked up', async () => {
    // Each point takes as long as the server may hold the lock for somebody it hears nothing of.
    const step = tier(25, 5);
    const sides = (['sent', 'answered'] as const).map((side) =>
      cutEverywhere(side, 'without a word', 1, 5, step),
    );
    await Promise.all(sides);
  }, 1_800_000);
});

type Side = 'sent' | 'answered';
type How = 'on both sides' | 'late on the side of the server' | 'without a word' | 'with all others';

const LATE_MS = 50;

/** A proxy to the socket of the cluster that cuts a connection behind the n-th message from now on, once. */
async function startProxy(cluster: Cluster, url: string) {
  const sockets = new Set<Socket>();
  let armed: { readonly side: Side; readonly how: How; left: number } | undefined;

  const server = createServer({ noDelay: true }, (near) => {
    const far = createConnection({ path: join(cluster.folder, '.s.PGSQL.5432') });
    let isOver = false;
    const end = () => {
      isOver = true;
      near.destroy();
      far.destroy();
    };
    const cut = async (rest: Buffer, how: How) => {
      isOver = true;
      if (how === 'with all others') for (const socket of sockets) socket.destroy();
      if (how === 'without a word') {
        // When the keepalive of the server notices.
        await sleep(LIMITS.lockWaitMsMax);
        far.destroy();
        return;
      }
      near.destroy();
      if (how === 'late on the side of the server') {
        // What was on its way arrives, and the server finds out only then that nobody listens.
        await sleep(LATE_MS);
        far.write(rest);
        await sleep(LATE_MS);
      }
      far.destroy();
    };
    const forward = (side: Side, to: Socket) => {
      const length = framer(side === 'sent');
      return (piece: Buffer) => {
        if (isOver) return;
        let at = 0;
        for (const size of length(piece)) {
          at += size.bytes;
          if (!size.isWhole || armed?.side !== side) continue;
          armed.left -= 1;
          if (armed.left > 0) continue;
          const { how } = armed;
          armed = undefined;
          to.write(piece.subarray(0, at));
          void cut(side === 'sent' ? piece.subarray(at) : Buffer.alloc(0), how);
          return;
        }
        to.write(piece);
      };
    };
    near.on('data', forward('sent', far));
    far.on('data', forward('answered', near));
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => isOver || end());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `postgres://owner@127.0.0.1:${port}/${url.split('/').at(-1)}?sslmode=disable`,
    /** Answers whether it was cut. */
    cutAt(side: Side, how: How, left: number) {
      const mine = { side, how, left };
      armed = mine;
      return () => armed !== mine;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Cuts pieces of one direction of the protocol at the ends of its messages. The first message of a client has no code. */
function framer(isClient: boolean) {
  let isFirst = isClient;
  let head = Buffer.alloc(0);
  let missing = 0;
  return function* (piece: Buffer): Generator<{ readonly bytes: number; readonly isWhole: boolean }> {
    for (let at = 0; at < piece.length; ) {
      const from = at;
      if (missing === 0) {
        const headLength = isFirst ? 4 : 5;
        const taken = Math.min(headLength - head.length, piece.length - at);
        head = Buffer.concat([head, piece.subarray(at, at + taken)]);
        at += taken;
        if (head.length === headLength) {
          missing = head.readInt32BE(headLength - 4) - 4;
          isFirst = false;
          head = Buffer.alloc(0);
          if (missing === 0) {
            yield { bytes: at - from, isWhole: true };
            continue;
          }
        }
      }
      const taken = Math.min(missing, piece.length - at);
      missing -= taken;
      at += taken;
      yield { bytes: at - from, isWhole: missing === 0 && head.length === 0 };
    }
  };
}
