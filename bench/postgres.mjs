import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { importSource, SERVER } from './build.mjs';
import { msPerCall, TEXT } from './calls.mjs';
import { connect, environmentIn, inScratch } from './client.mjs';
import { progress } from './progress.mjs';
import { byRound, inTurns, p50, p99, timed } from './statistics.mjs';

const IN_FLIGHT = 32;
/** The round trip that the bar is about, made by a proxy that holds back each piece on its way to the server. */
const DELAY_MS = 1;

/**
 * A team's database beside a file in the same run: a lone write against one committed transaction over such a connection,
 * and what many calls, many processes and a slower network make of it.
 */
export async function postgres({ rounds, callsPerRound, pipelined, processes, delays }) {
  const { NO_POSTGRES, startCluster } = await importSource('postgres-cluster');
  if (NO_POSTGRES !== undefined) throw new Error(NO_POSTGRES);
  // Otherwise nothing would be on a disk, and everything too fast.
  const cluster = await startCluster({ fsync: 'on' });
  try {
    return await inScratch(async (folder) => {
      const { rows } = await bars(cluster, folder, { rounds, callsPerRound, pipelined });
      progress('postgres: by processes');
      const byProcesses = [];
      for (const count of processes) byProcesses.push(await together(cluster, folder, count, pipelined));
      progress('postgres: by round trip');
      const byDelay = [];
      for (const delay of delays) byDelay.push(await delayed(cluster, folder, delay, callsPerRound));
      return { rows, by_processes: byProcesses, by_delay: byDelay };
    });
  } finally {
    await cluster.stop();
  }
}

async function bars(cluster, folder, { rounds, callsPerRound, pipelined }) {
  const url = await cluster.createDatabase();
  // A database of its own: two machines that sign in turn would each read what the other signed.
  const far = await proxyTo(cluster, await cluster.createDatabase(), DELAY_MS);
  const clients = {
    near: await opened(join(folder, 'near'), { COLIBRI_DATABASE_URL: url }),
    far: await opened(join(folder, 'far'), { COLIBRI_DATABASE_URL: far.url }),
    file: await opened(join(folder, 'file')),
  };
  const plain = await connectPlainly(url);
  const across = await connectPlainly(far.url);
  await plain.query('CREATE TABLE public.reference (id bigserial PRIMARY KEY, text text)');
  const contenders = {
    transaction: () =>
      timed(callsPerRound, () => plain.query('INSERT INTO public.reference (text) VALUES ($1)', [TEXT])),
    trip: () => timed(callsPerRound, () => across.query('SELECT 1')),
    write: () => timed(callsPerRound, clients.near.write),
    far: () => timed(callsPerRound, clients.far.write),
    file: () => timed(callsPerRound, clients.file.write),
    lone: () => msPerCall(1, callsPerRound, clients.near.write),
    many: () => msPerCall(IN_FLIGHT, pipelined, clients.near.write),
    file_many: () => msPerCall(IN_FLIGHT, pipelined, clients.file.write),
  };
  await inTurns(1, contenders);
  const samples = await inTurns(rounds, contenders);
  await Promise.all([plain.end(), across.end(), ...Object.values(clients).map(({ close }) => close())]);
  far.close();
  const perSecond = (name) => 1000 / p50(samples[name]);
  return {
    rows: [
      {
        id: 'postgres-write',
        what: 'durable write to PostgreSQL over its socket',
        unit: 'ms',
        reference: p50(samples.transaction),
        reference_is: 'one committed single-row transaction',
        p50: p50(samples.write),
        p99: p99(samples.write),
        ...byRound(samples, ({ write, transaction }) => write / transaction),
        bar: 'at most 8 × one transaction',
        limit: 8,
        note: `${p50(samples.file).toFixed(2)} ms to a file in the same run`,
      },
      {
        id: 'postgres-in-flight',
        what: `durable writes to PostgreSQL, ${IN_FLIGHT} in flight`,
        unit: 'calls/s',
        reference: perSecond('lone'),
        reference_is: 'the same, one in flight',
        p50: perSecond('many'),
        ...byRound(samples, ({ lone, many }) => lone / many),
        bar: 'at least 5 × one in flight',
        limit: 5,
        sense: 'at least',
        note: `${Math.round(perSecond('file_many'))} calls/s to a file in the same run`,
      },
      {
        id: 'postgres-far',
        what: `durable write to PostgreSQL across ${DELAY_MS} ms`,
        unit: 'ms',
        reference: p50(samples.trip),
        reference_is: 'one round trip, a query that asks for nothing',
        p50: p50(samples.far),
        p99: p99(samples.far),
        ...byRound(samples, ({ far: write, trip }) => write / trip),
        bar: 'at most 8 round trips',
        limit: 8,
      },
    ],
  };
}

/** So many servers of one machine, each with as many calls in flight as make the same number in all. */
async function together(cluster, folder, count, pipelined) {
  const url = await cluster.createDatabase();
  const perSecond = async (name, more) => {
    const servers = [];
    for (let i = 0; i < count; i += 1) servers.push(await opened(join(folder, name), more));
    const before = performance.now();
    await Promise.all(servers.map(({ write }) => msPerCall(IN_FLIGHT / count, pipelined / count, write)));
    const seconds = (performance.now() - before) / 1000;
    await Promise.all(servers.map(({ close }) => close()));
    return pipelined / seconds;
  };
  return {
    processes: count,
    postgres: await perSecond(`together-${count}`, { COLIBRI_DATABASE_URL: url }),
    file: await perSecond(`together-file-${count}`),
  };
}

/** A lone write and many at once, with each piece on its way to the server held back for so long. */
async function delayed(cluster, folder, delay, calls) {
  const proxy = await proxyTo(cluster, await cluster.createDatabase(), delay);
  const { write, close } = await opened(join(folder, `delay-${delay}`), { COLIBRI_DATABASE_URL: proxy.url });
  const plain = await connectPlainly(proxy.url);
  const trip = p50(await timed(calls, () => plain.query('SELECT 1')));
  const lone = 1000 / (await msPerCall(1, calls, write));
  const many = 1000 / (await msPerCall(IN_FLIGHT, calls * 4, write));
  await Promise.all([plain.end(), close()]);
  proxy.close();
  return { trip, lone, many };
}

/** A server that has answered its first calls, and a call that writes. */
async function opened(folder, more = {}) {
  const { COLIBRI_DB_PATH, ...env } = environmentIn(folder);
  const client = connect(SERVER, {
    env: { ...env, ...('COLIBRI_DATABASE_URL' in more ? more : { COLIBRI_DB_PATH }) },
  });
  await client.initialize();
  const { task_id } = await client.call('task_create', { title: 'first', project: 'bench' });
  let next = 0;
  const write = () => {
    next += 1;
    return client.call('task_update', { task_id, progress: next % 90 });
  };
  await timed(20, write);
  return { write, close: () => client.close() };
}

async function connectPlainly(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** A proxy on the loopback address to the socket of the cluster. Pieces keep their order. */
async function proxyTo(cluster, url, delay) {
  const path = join(cluster.folder, '.s.PGSQL.5432');
  const server = createServer({ noDelay: true }, (near) => {
    const far = createConnection({ path });
    near.on('data', (piece) => (delay === 0 ? far.write(piece) : setTimeout(() => far.write(piece), delay)));
    far.on('data', (piece) => near.write(piece));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ])
      for (const event of ['close', 'error']) one.on(event, () => other.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const database = url.split('/').at(-1);
  return {
    url: `postgres://owner@127.0.0.1:${server.address().port}/${database}?sslmode=disable`,
    close: () => server.close(),
  };
}
