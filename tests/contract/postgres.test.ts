import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import { stateFindings } from '../driver/state-file.ts';

describe.skipIf(NO_POSTGRES !== undefined)(`a team's database ${NO_POSTGRES ?? ''}`, () => {
  let cluster: Cluster;
  let colibri: Playground;

  beforeAll(async () => {
    cluster = await startCluster();
    colibri = new Playground(await cluster.createDatabase());
  });

  afterAll(async () => {
    await colibri?.dispose();
    await cluster?.stop();
  });

  test('is made, written, searched and verified, and health says what it is', async () => {
    const server = await colibri.start();

    const made = await server.call('task_create', {
      title: 'Mend src/log/state.ts',
      project: 'p',
      labels: ['b', 'a'],
    });
    await server.call('thought_record', {
      task_id: 'T-0001',
      type: 'plan',
      content: 'Look at the log first.',
    });
    const found = await server.call('task_list', { search: 'log/sta' });
    const missed = await server.call('task_list', { search: 'state/log' });
    const health = await server.call('server_health');
    await server.closeInput();
    const verified = await runColibri(colibri, ['verify', '--json']);

    expect(made.envelope).toMatchObject({ ok: true, data: { task_id: 'T-0001' } });
    expect(found.envelope).toMatchObject({ data: { total_count: 1 } });
    expect(missed.envelope).toMatchObject({ data: { total_count: 0 } });
    expect(health.envelope).toMatchObject({
      data: { status: 'ok', db: { path: 'postgres:db1', writable: true } },
    });
    expect(JSON.parse(verified.stdout)).toMatchObject({ findings: [] });
    expect(verified.code).toBe(0);
  });

  test.each([
    [['board']],
    [['log']],
    [['show', 'T-0001']],
    [['doctor']],
    [['checkpoint']],
    [['export', '-o', 'bundle']],
    [['verify', 'bundle']],
    [['prove', 'T-0001']],
    [['report']],
    [['call', 'task_get', '{"task_id":"T-0001"}']],
    [['obsidian', '--vault', 'home']],
  ])('serves the command %j', async (args) => {
    const { code, stderr } = await runColibri(colibri, args);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('a second machine joins by itself, both sign in turn, and each verifies until the first vouches for the second', async () => {
    const url = await cluster.createDatabase();
    const [first, second] = [new Playground(url), new Playground(url)];
    const [one, two] = [await first.start(), await second.start()];
    for (let i = 0; i < 5; i += 1)
      for (const server of [one, two]) await server.call('task_create', { title: `task ${i}`, project: 'p' });
    const health = await one.call('server_health');
    await one.closeInput();
    await two.call('task_create', { title: 'after the first has gone', project: 'p' });
    await two.closeInput();

    const verdicts = [];
    for (const machine of [first, second]) verdicts.push(await runColibri(machine, ['verify', '--json']));
    const strict = await runColibri(first, ['verify', '--require-vouched', '--json']);
    const { findings, remarks, checkpointed_by: keys } = JSON.parse(strict.stdout);
    const joined = keys.find((one: { vouched: boolean }) => !one.vouched).key;
    const trusted = await runColibri(first, ['trust', joined.split('+')[1]]);
    const after = await runColibri(first, ['verify', '--require-vouched', '--json']);
    const complaints = [...(await first.dispose()), ...(await second.dispose())];

    expect(health.envelope).toMatchObject({ data: { status: 'ok' } });
    for (const { stdout, code } of verdicts) {
      expect(JSON.parse(stdout)).toMatchObject({ findings: [], checkpointed_by: { length: 2 } });
      expect(code).toBe(0);
    }
    expect(strict.code).toBe(1);
    expect(findings).toMatchObject([{ kind: 'foreign' }]);
    expect(remarks).toContainEqual(expect.stringContaining('joined automatically'));
    expect(trusted).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(after.stdout)).toMatchObject({ ok: true, remarks: [] });
    expect(complaints).toEqual([]);
  });

  test('neither the password nor the host is in an answer, on stderr or in a report', async () => {
    const secret = 'opensesame';
    const url = `postgres://mallory:${secret}@127.0.0.1:9/team`;
    const machine = new Playground(url);
    const server = await machine.start();
    const answers = [await server.call('server_health'), await server.call('task_list', {})];
    await server.closeInput();
    const commands = [];
    for (const command of [['doctor'], ['verify'], ['board'], ['verify', url], ['doctor', '--json']])
      commands.push(await runColibri(machine, command));
    const refused = await runColibri(machine, ['board'], {
      env: { COLIBRI_DATABASE_URL: `postgres://mallory:${secret}@127.0.0.1/team?sslmode=maybe` },
    });

    const said = JSON.stringify([answers, server.stderr, commands, refused]);
    await machine.dispose();

    expect(said).toContain('postgres:team cannot be reached: nothing is listening there');
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('COLIBRI_DATABASE_URL is not understood'),
    });
    expect(said).not.toMatch(/opensesame|mallory|127\.0\.0\.1/);
  });

  test.each([
    ['commits before they are on disk', 'SET synchronous_commit = off', ''],
    ['keeps texts as', '', "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"],
    ['takes no writes', 'SET default_transaction_read_only = on', ''],
  ])('is refused where it %s', async (complaint, setting, options) => {
    const url = await cluster.createDatabase(options);
    const name = url.slice(url.lastIndexOf('/') + 1);
    if (setting !== '') cluster.sql('postgres', `ALTER DATABASE ${name} ${setting}`);
    const machine = new Playground(url);
    const server = await machine.start();

    const health = await server.call('server_health');
    await server.closeInput();
    await machine.dispose();

    expect(health.envelope).toMatchObject({ data: { status: 'degraded', db: { open: false } } });
    expect(JSON.stringify(health.envelope)).toContain(complaint);
  });

  test('rows, hashes and effects are byte for byte those of a file', async () => {
    const url = await cluster.createDatabase();
    const machines = [new Playground(url), new Playground(undefined)];
    const logs = [];
    for (const machine of machines) {
      const server = await machine.start();
      await server.call('task_create', {
        title: 'Ünïcode “quotes” \\ 😀',
        project: 'p',
        estimate_hours: 0.1,
        labels: ['b', 'a'],
      });
      await server.call('task_update', { task_id: 'T-0001', status: 'todo', progress: 33.3 });
      await server.call('thought_record', {
        task_id: 'T-0001',
        type: 'plan',
        content: 'x',
        metadata: { a: [1, 2.5] },
      });
      await server.call('task_update', { task_id: 'T-0001', status: 'done' });
      await server.closeInput();
      const { rows, findings } = machine.readAudit();
      expect(findings).toEqual([]);
      expect(stateFindings(machine.dbPath)).toEqual([]);
      logs.push(
        rows.map(({ tool, stage, outcome, error_code, effects }) => [
          tool,
          stage,
          outcome,
          error_code,
          effects.length,
        ]),
      );
      await machine.dispose();
    }

    expect(logs[0]).toEqual(logs[1]);
  });

  test('a role with the rights of the guide, and no more, does all that an agent does', async () => {
    const guide = readFileSync(new URL('../../docs/guides/team.md', import.meta.url), 'utf8');
    const grants = /```sql\n([^`]*)```/.exec(guide)?.[1] ?? '';
    const url = await cluster.createDatabase();
    const name = url.slice(url.lastIndexOf('/') + 1);
    const owner = new Playground(url);
    await (await owner.start()).call('server_ping');
    cluster.sql(name, `CREATE ROLE agent LOGIN; ${grants}`);
    const machine = new Playground(cluster.urlOf(name, 'agent'));
    const server = await machine.start();

    const answers = [
      await server.call('task_create', { title: 'a task', project: 'p', labels: ['x'], proof_grade: true }),
      await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' }),
      await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'words' }),
      await server.call('task_update', {
        task_id: 'T-0001',
        title: 'another title',
        status: 'todo',
        labels: ['y'],
      }),
      await server.call('merkle_finalize', { session_id: 'A-0001' }),
      await server.call('server_health'),
    ];
    await server.closeInput();
    const { code, stdout } = await runColibri(machine, ['verify', '--json']);
    for (const one of [owner, machine]) await one.dispose();

    expect(answers.map(({ envelope }) => envelope?.ok)).toEqual(answers.map(() => true));
    expect(answers.at(-1)?.envelope).toMatchObject({ data: { status: 'ok' } });
    expect(JSON.parse(stdout)).toMatchObject({ findings: [] });
    expect(code).toBe(0);
    expect(() => cluster.sql(name, `SET ROLE agent; UPDATE colibri.actions SET text = ''`)).toThrow(
      'permission denied',
    );
  });
});
