import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri, StayingCommand } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import { tier } from '../driver/tier.ts';
import { contentOf, onServer, workOn } from '../driver/transfer.ts';
import { judgeByPython } from '../matrix/sources.ts';

const ROWS = 'SELECT position, text, content_hash, chain_hash FROM audit_rows';

describe.skipIf(NO_POSTGRES !== undefined)(`colibri transfer, at length ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  test('a log goes to an empty place only, and one that cannot go stays as it was', async () => {
    const colibri = new Playground(null);
    await workOn(colibri);
    const url = await cluster.createDatabase();
    const other = new Playground(url);
    const server = await other.start();
    await server.call('task_create', { title: 'theirs', project: 'p' });
    await server.closeInput();
    const before = contentOf(colibri.dbPath).get(ROWS);

    const full = await runColibri(colibri, ['transfer', '--to', url]);
    const same = await runColibri(colibri, ['transfer', '--to', colibri.dbPath]);
    const nowhere = await runColibri(colibri, [
      'transfer',
      '--to',
      'postgres://mallory:opensesame@127.0.0.1:9/team',
    ]);
    const unread = await runColibri(colibri, [
      'transfer',
      '--to',
      'postgres://mallory:opensesame@127.0.0.1/',
    ]);
    const after = contentOf(colibri.dbPath).get(ROWS);
    for (const one of [colibri, other]) await one.dispose();

    expect(full).toMatchObject({ code: 2, stderr: expect.stringContaining('already contains a log') });
    expect(same).toMatchObject({ code: 2, stderr: expect.stringContaining('already') });
    expect(nowhere.code).not.toBe(0);
    expect(unread).toMatchObject({ code: 2, stderr: expect.stringContaining('not understood') });
    expect(JSON.stringify([nowhere, unread])).not.toMatch(/opensesame|mallory|127\.0\.0\.1/);
    expect(after).toEqual(before);
  });

  test('from a server that several machines sign, a machine that is vouched for brings the log home', async () => {
    const url = await cluster.createDatabase();
    const [first, second, third] = [new Playground(url), new Playground(url), new Playground(url)] as const;
    for (const machine of [first, second, third]) {
      const server = await machine.start();
      await server.call('task_create', { title: 'a task', project: 'p' });
      await server.closeInput();
    }
    const heads = contentOf(url).get('SELECT * FROM log_heads') ?? [];
    const file = second.path('home.db');
    const home = { env: { COLIBRI_DATABASE_URL: '', COLIBRI_DB_PATH: file } };

    const stranger = await runColibri(second, ['transfer', '--to', file]);
    const keys = JSON.parse((await runColibri(second, ['checkpoint', '--json'])).stdout).key;
    await runColibri(first, ['trust', keys.split('+')[1]]);
    const moved = await runColibri(second, ['transfer', '--to', file]);
    const server = await second.start({ env: home.env });
    const made = await server.call('task_create', { title: 'at home', project: 'p' });
    const health = await server.call('server_health');
    await server.closeInput();
    const verified = await runColibri(second, ['verify', '--json'], home);
    const python = await judgeByPython('verify-database.py', file);
    const kept = contentOf(file).get('SELECT * FROM log_heads') ?? [];
    for (const machine of [first, second, third]) await machine.dispose();

    expect(stranger).toMatchObject({ code: 2, stderr: expect.stringContaining('Nobody has vouched') });
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(made.envelope).toMatchObject({ ok: true });
    expect(health.envelope).toMatchObject({ data: { status: 'ok' } });
    expect(JSON.parse(verified.stdout)).toMatchObject({ findings: [], ok: true });
    expect(python).toMatchObject({ isSound: true });
    // That of the third machine is as it was; the first vouched and the second moved it since.
    expect(heads.filter((head) => kept.includes(head))).toHaveLength(1);
    expect(kept).toHaveLength(3);
  });

  test(
    'killed at any moment and run again, a transfer comes to its end and nothing is lost or there twice',
    async () => {
      const colibri = new Playground(null);
      const inFile = (path: string) => ({ path, env: { COLIBRI_DATABASE_URL: '', COLIBRI_DB_PATH: path } });
      let place = inFile(colibri.path('first.db'));
      const server = await colibri.start({ env: place.env, answerMsMax: 60_000 });
      await Promise.all(
        Array.from({ length: 300 }, (_, n) =>
          server.call('task_create', { title: `task ${n}`, project: 'p' }),
        ),
      );
      await server.closeInput();
      const rounds = tier(6, 60);
      const problems: unknown[] = [];
      let wholeMs = 0;
      let killed = 0;
      for (let round = 0; round <= rounds; round += 1) {
        const isHome = round % 2 === 1;
        const url = isHome ? '' : await cluster.createDatabase();
        const next = isHome ? inFile(colibri.path(`file-${round}.db`)) : { path: url, ...onServer(url) };
        const before = contentOf(place.path).get(ROWS) ?? [];
        const began = performance.now();
        const transfer = new StayingCommand(colibri, ['transfer', '--to', next.path], { env: place.env });
        // The first is left alone, to know how long one takes.
        if (round > 0) {
          await new Promise((resolve) => setTimeout(resolve, wholeMs * (0.3 + (0.7 * round) / (rounds + 1))));
          await transfer.ended('SIGKILL');
          killed += transfer.exit?.signal === 'SIGKILL' ? 1 : 0;
        } else {
          await transfer.ended();
          wholeMs = performance.now() - began;
        }
        const again = await runColibri(colibri, ['transfer', '--to', next.path], { env: place.env });
        if (again.code !== 0) problems.push([round, again]);
        const [left, there] = [contentOf(place.path).get(ROWS) ?? [], contentOf(next.path).get(ROWS) ?? []];
        const tools = (rows: readonly string[], but: readonly string[]) =>
          rows.filter((row) => !but.includes(row)).map((row) => /"tool\\":\\"(\w+)/.exec(row)?.[1]);
        // The copy has all rows of the source, and behind them those of its receipt.
        if (tools(left, there).length > 0) problems.push([round, 'a row is missing']);
        if (new Set(tools(there, left)).size !== 1) problems.push([round, tools(there, left)]);
        // A receipt of the round before that was killed in the middle may only now be explained.
        const crashed = left.filter((row) => /"outcome\\":\\"crashed/.test(row));
        if (tools(left, [...before, ...crashed]).some((tool) => tool !== 'owner_transfer'))
          problems.push([round, tools(left, before)]);
        place = next;
      }
      const verified = await runColibri(colibri, ['verify', '--json'], { env: place.env });
      await colibri.dispose();

      expect(problems).toEqual([]);
      expect(killed).toBeGreaterThan(0);
      expect(JSON.parse(verified.stdout)).toMatchObject({ findings: [], ok: true });
    },
    tier(600_000, 2_400_000),
  );

  test('a transfer that cannot be finished is taken back, and the log goes on where it was', async () => {
    const colibri = new Playground(null);
    await workOn(colibri);
    const url = await cluster.createDatabase();
    const name = url.slice(url.lastIndexOf('/') + 1);
    const other = new Playground(url);
    // Makes the tables, and signs nothing.
    await runColibri(other, ['checkpoint']);
    // Enough to look at it and to take the lock.
    const grants =
      'GRANT USAGE ON SCHEMA colibri TO looker; GRANT SELECT ON ALL TABLES IN SCHEMA colibri TO looker';
    cluster.sql(name, `CREATE ROLE looker LOGIN; ${grants}; GRANT UPDATE ON colibri.log TO looker`);
    const size = colibri.readAudit().rows.length;

    const failed = await runColibri(colibri, ['transfer', '--to', cluster.urlOf(name, 'looker')]);
    const refused = await runColibri(colibri, ['add', 'no', '--project', 'p']);
    const back = await runColibri(colibri, ['transfer', '--to', colibri.dbPath]);
    const made = await runColibri(colibri, ['add', 'yes', '--project', 'p']);
    const verified = await runColibri(colibri, ['verify', '--json']);
    const tools = colibri
      .readAudit()
      .rows.slice(size)
      .map(({ tool, stage }) => `${tool} ${stage}`);
    for (const one of [colibri, other]) await one.dispose();

    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('permission denied') });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('transferred to') });
    expect(back).toMatchObject({ code: 0, stderr: '' });
    expect(made.code).toBe(0);
    expect(JSON.parse(verified.stdout)).toMatchObject({ findings: [], ok: true });
    expect(tools.slice(0, 4)).toEqual([
      ...['owner_transfer enter', 'owner_transfer exit', 'owner_receive enter', 'owner_receive exit'],
    ]);
  });
});
