import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/storage/address.ts';
import { openPostgres } from '../../src/storage/postgres/engine.ts';
import { keyIn } from '../../src/trust/opening.ts';
import type { Finding } from '../../src/verify/finding.ts';
import { DatabaseSource } from '../../src/verify/sources/database.ts';
import { ShortReads } from '../../src/verify/sources/short-reads.ts';
import { verify } from '../../src/verify/verify.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, rowsAt, startCluster } from '../driver/postgres.ts';

describe.skipIf(NO_POSTGRES !== undefined)(
  `an administrator who changes a team's database ${NO_POSTGRES ?? ''}`,
  () => {
    let cluster: Cluster;
    let machine: Playground;
    let key: string;
    const base = () => machine.dbPath.slice(machine.dbPath.lastIndexOf('/') + 1);

    beforeAll(async () => {
      cluster = await startCluster();
      machine = new Playground(await cluster.createDatabase());
      const server = await machine.start();
      await server.call('task_create', {
        title: 'one',
        description: 'words',
        project: 'p',
        labels: ['x'],
        proof_grade: true,
      });
      await server.call('task_create', {
        title: 'two',
        project: 'p',
        depends_on: ['T-0001'],
        parent_id: 'T-0001',
      });
      await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada', reason: 'why' });
      for (let n = 0; n < 3; n += 1)
        await server.call('thought_record', {
          task_id: 'T-0001',
          type: 'plan',
          content: `${n}`,
          tests_run: ['t'],
          blockers: ['b'],
          metadata: { a: 1 },
        });
      for (const status of ['todo', 'in_progress', 'blocked'])
        await server.call('task_update', {
          task_id: 'T-0001',
          status,
          ...(status === 'blocked' && { blocked_reason: 'it' }),
        });
      await server.call('merkle_finalize', { session_id: 'A-0001' });
      for (let n = 0; n < 125; n += 1) await server.call('server_ping');
      await server.closeInput();
      key = String(rowsAt(machine.dbPath, 'SELECT key FROM log_heads')[0]?.key);
    });

    afterAll(async () => {
      await machine?.dispose();
      await cluster?.stop();
    });

    /** What is found in a copy after a change that no trigger saw. */
    async function findingsAfter(sql: string): Promise<Finding[]> {
      const url = await cluster.createDatabase(`TEMPLATE ${base()}`);
      cluster.sql(
        url.slice(url.lastIndexOf('/') + 1),
        `SET session_replication_role = replica; SET search_path = colibri; ${sql}`,
      );
      const address = parseAddress(url);
      const trusted = [keyIn(key)].flatMap((one) => one ?? []);
      if (address === undefined) throw new Error('not a URL');
      const storage = await openPostgres({ address, readOnly: true });
      const findings: Finding[] = [];
      try {
        await ShortReads.run(storage, (tx) =>
          verify(new DatabaseSource(storage, tx), {
            report: (finding) => findings.push(finding),
            now: Date.now(),
            keys: { trusted },
          }),
        );
      } finally {
        await storage.close();
        cluster.sql('postgres', `DROP DATABASE ${url.slice(url.lastIndexOf('/') + 1)}`);
      }
      return findings;
    }

    test('finds nothing in a copy that nobody changed', async () => {
      expect(await findingsAfter('SELECT 1')).toEqual([]);
    });

    test('is found out for every column of every table', async () => {
      const columns = rowsAt(
        machine.dbPath,
        `SELECT table_name AS t, column_name AS c, data_type AS d FROM information_schema.columns JOIN pg_class ON relname = table_name AND relkind = 'r'
       WHERE table_schema = 'colibri' AND is_generated = 'NEVER' ORDER BY 1, 2`,
      ) as { t: string; c: string; d: string }[];
      const other: Record<string, string> = {
        bigint: 'coalesce(@, 0) + 1000',
        text: "coalesce(@, '') || 'x'",
        bytea: "decode(repeat('ab', 32), 'hex')",
        'double precision': 'coalesce(@, 0) + 1',
      };
      const missed: string[] = [];
      let tried = 0;
      for (const { t, c, d } of columns) {
        const rows = rowsAt(machine.dbPath, `SELECT count(*) AS n FROM ${t}`)[0]?.n;
        if (rows === 0) continue;
        const check = t === 'log' ? 'ALTER TABLE log DROP CONSTRAINT log_id_check;' : '';
        const sql = `${check} UPDATE ${t} SET ${c} = ${other[d]?.replace('@', c)} WHERE ctid = (SELECT min(ctid) FROM ${t})`;
        tried += 1;
        const findings = await findingsAfter(sql);
        if (findings.length === 0) missed.push(`${t}.${c}`);
      }

      expect(tried).toBeGreaterThan(80);
      expect(missed).toEqual([]);
    }, 600_000);

    test('is found out by every machine that signed since: an older dump that was restored', async () => {
      const url = await cluster.createDatabase();
      const name = url.slice(url.lastIndexOf('/') + 1);
      const machines = [new Playground(url), new Playground(url)];
      const work = async (title: string) => {
        for (const one of machines) {
          const server = await one.start();
          await server.call('task_create', { title, project: 'p' });
          await server.closeInput();
        }
      };
      const run = (program: string, ...args: string[]) => {
        const connection = ['-h', cluster.folder, '-U', 'owner'];
        const { status, stderr } = spawnSync(join(cluster.programs, program), [...connection, ...args], {
          encoding: 'utf8',
        });
        if (status !== 0) throw new Error(`${program}: ${stderr}`);
      };
      await work('before');
      const dump = machines[0]?.path('dump') ?? '';
      run('pg_dump', '-Fc', '-f', dump, name);
      await work('after');
      cluster.sql('postgres', `DROP DATABASE ${name}`);
      cluster.sql('postgres', `CREATE DATABASE ${name}`);
      run('pg_restore', '-d', name, dump);

      const verdicts = [];
      for (const one of machines) verdicts.push(await runColibri(one, ['verify', '--json']));
      const health = [];
      for (const one of machines) {
        const server = await one.start();
        health.push((await server.call('server_health')).envelope);
        await server.closeInput();
      }
      for (const one of machines) await one.dispose();

      for (const { code, stdout } of verdicts) {
        expect(JSON.parse(stdout)).toMatchObject({ findings: [{ kind: 'older-copy' }] });
        expect(code).toBe(1);
      }
      for (const one of health)
        expect(one).toMatchObject({ data: { status: 'degraded', log: { refused: expect.any(String) } } });
    }, 600_000);

    test('is found out: a database that was dropped and made anew', async () => {
      const url = await cluster.createDatabase();
      const name = url.slice(url.lastIndexOf('/') + 1);
      const one = new Playground(url);
      const work = async () => {
        const server = await one.start();
        await server.call('task_create', { title: 'a task', project: 'p' });
        const health = await server.call('server_health');
        await server.closeInput();
        return health.envelope;
      };
      await work();
      cluster.sql('postgres', `DROP DATABASE ${name}`);
      cluster.sql('postgres', `CREATE DATABASE ${name}`);

      const verified = await runColibri(one, ['verify', '--json']);
      const health = await work();
      await one.dispose();

      expect(verified.code).toBe(1);
      expect(health).toMatchObject({
        data: {
          status: 'degraded',
          log: { refused: expect.stringMatching(/is now an (empty|unsigned) one/) },
        },
      });
    }, 600_000);

    test.each([
      ['a row that was deleted', 'DELETE FROM actions WHERE position = 5', 'actions'],
      [
        'a row that was added',
        "INSERT INTO tasks SELECT 77, project, 77, title FROM tasks WHERE false; INSERT INTO task_labels VALUES ('y', 1)",
        'task_labels',
      ],
      [
        'a tail that was cut off',
        'DELETE FROM actions WHERE position > 20; DELETE FROM action_payloads WHERE position > 20',
        'log_heads',
      ],
      [
        'a trigger that was planted',
        'CREATE TRIGGER t BEFORE INSERT ON actions EXECUTE FUNCTION refuse()',
        'schema',
      ],
      ['a trigger that was disabled', 'ALTER TABLE texts DISABLE TRIGGER texts_no_update', 'schema'],
      ['another mark on log (A8)', "COMMENT ON TABLE log IS 'colibri schema 99'", 'schema'],
      ['no mark on log (A8)', 'COMMENT ON TABLE log IS NULL', 'schema'],
      [
        'triggers that are off for every connection (A9)',
        "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET session_replication_role = replica'; END $$",
        'schema',
      ],
    ])('is found out: %s', async (_, sql, table) => {
      expect((await findingsAfter(sql)).map((finding) => finding.table)).toContain(table);
    });

    test.each(['actions.chain', 'checkpoints.note', 'log.origin', 'task_labels.label'])(
      'is found out once: the column %s has another name (A7)',
      async (column) => {
        const [table, name] = column.split('.');
        const url = await cluster.createDatabase(`TEMPLATE ${base()}`);
        const database = url.slice(url.lastIndexOf('/') + 1);
        cluster.sql(database, `ALTER TABLE colibri.${table} RENAME ${name} TO another`);

        const { code, stdout } = await runColibri(machine, ['verify', '--json'], {
          env: { COLIBRI_DATABASE_URL: url },
        });

        const message = `The table ${table} has no column ${name}: it was renamed or removed.`;
        expect(JSON.parse(stdout).findings).toEqual([
          { kind: 'schema', table: 'schema', record: table, message },
        ]);
        expect(code).toBe(1);
      },
    );

    test('cannot turn triggers off for every connection: the server refuses the database and says why (A9)', async () => {
      const url = await cluster.createDatabase();
      const database = url.slice(url.lastIndexOf('/') + 1);
      const one = new Playground(url);
      const work = async () => {
        const server = await one.start();
        const answer = await server.call('task_create', { title: 'a task', project: 'p' });
        await server.closeInput();
        return answer.envelope;
      };
      await work();
      cluster.sql('postgres', `ALTER DATABASE ${database} SET session_replication_role = replica`);

      const refused = await work();
      cluster.sql('postgres', `ALTER DATABASE ${database} RESET session_replication_role`);
      const after = await work();
      await one.dispose();

      expect(refused).toMatchObject({
        ok: false,
        error: { message: expect.stringContaining('so triggers that protect the log do not run') },
      });
      expect(after).toMatchObject({ ok: true });
    });
  },
);
