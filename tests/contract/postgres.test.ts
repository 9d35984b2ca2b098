import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anchorEverywhere } from '../driver/anchor-places.ts';
import { runColibri, StayingCommand } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, rowsAt, runAt, startCluster } from '../driver/postgres.ts';
import { sleepMs } from '../driver/server-process.ts';
import { stateFindings } from '../driver/state-file.ts';
import { judgeByPython } from '../matrix/sources.ts';

// Each starts many programs, on a machine that may be busy.
const SLOW = { timeout: 240_000 };

describe.skipIf(NO_POSTGRES !== undefined)(`a team's database ${NO_POSTGRES ?? ''}`, SLOW, () => {
  let cluster: Cluster;
  let colibri: Playground;

  beforeAll(async () => {
    cluster = await startCluster({ fsync: 'on' });
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

  test('a checkpoint is anchored in a file, in git and by an authority, and verify finds it there', async () => {
    const machine = new Playground(await cluster.createDatabase());
    await runColibri(machine, ['add', 'a task', '--project', 'p']);

    const kept = await runColibri(machine, ['anchor', '--file', 'kept.txt']);
    await anchorEverywhere(machine);
    const listed = await runColibri(machine, ['anchor', '--list', '--json']);
    const verified = await runColibri(machine, ['verify', '--json']);
    await machine.dispose();

    expect(kept).toMatchObject({ code: 0, stderr: '' });
    const kinds = (JSON.parse(listed.stdout) as { anchors: { kind: string }[] }).anchors.map(
      ({ kind }) => kind,
    );
    expect(kinds.sort()).toEqual(['file', 'git', 'tsr']);
    const { anchored_through, size, ok } = JSON.parse(verified.stdout);
    expect({ ok, anchored_through }).toEqual({ ok: true, anchored_through: size });
  });

  test('log --follow and board --watch show what another machine does, also after the server was killed', async () => {
    const url = await cluster.createDatabase();
    const [writes, looks] = [new Playground(url), new Playground(url)] as const;
    const server = await writes.start({ answerMsMax: 60_000 });
    const create = (title: string) => server.call('task_create', { title, project: 'p' });
    await create('first of all');
    const following = new StayingCommand(looks, ['log', '--follow']);
    const watching = new StayingCommand(looks, ['board', '--watch']);
    const both = [following, watching];
    for (const command of both) await command.printed('first of all');

    await create('second one');
    for (const command of both) await command.printed('second one');
    await cluster.killHard();
    let made = await create('after the kill');
    // What was lost with the connection says so, and can be repeated.
    for (let n = 0; n < 100 && made.envelope?.ok !== true; n += 1) made = await create('after the kill');
    for (const command of both) await command.printed('after the kill');
    const lines = following.lines.filter((line) => line.includes('created'));
    const ended = [await following.ended('SIGINT'), await watching.ended('SIGINT')];
    const complaints = [...(await writes.dispose()), ...(await looks.dispose())];

    expect(lines).toHaveLength(3);
    expect(ended).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    expect(complaints).toEqual([]);
  });

  test('backup says how a server is backed up, and the guide has what it names', async () => {
    const { code, stderr } = await runColibri(colibri, ['backup', 'copy.db']);

    const [, section = '', guide = ''] = /see "([^"]+)" in the guide "([^"]+)"/.exec(stderr) ?? [];
    const text = readFileSync(new URL('../../docs/guides/team.md', import.meta.url), 'utf8');
    expect(code).toBe(2);
    expect(stderr).toMatch(/postgres:db1 is on a server.*pg_dump/);
    expect(existsSync(colibri.path('copy.db'))).toBe(false);
    expect(text.replaceAll("'", '’')).toContain(`# ${guide}\n`);
    expect(text).toContain(`## ${section}\n`);
  });

  test.each([
    ['ALTER SYSTEM RESET ALL', 0, 'on the disk of the server; no standby is waited for'],
    [
      "ALTER SYSTEM SET synchronous_standby_names = 'berlin'",
      0,
      'on the disks of the server and of its synchronous standbys',
    ],
    ["ALTER SYSTEM SET synchronous_commit = 'remote_write'", 0, 'in the memory of its synchronous standbys'],
    ["ALTER SYSTEM SET synchronous_commit = 'local'", 0, 'synchronous standbys are not waited for'],
    ['ALTER SYSTEM SET fsync = off', 1, 'fsync is off: a power cut may lose what was acknowledged'],
    ['ALTER SYSTEM RESET ALL', 0, 'on the disk of the server'],
  ])('doctor says what an answered call is worth after %s', async (sql, code, said) => {
    cluster.sql('postgres', sql);
    cluster.sql('postgres', 'SELECT pg_reload_conf()');
    // It reads its settings again a moment later.
    const pending =
      "SELECT count(*) FROM pg_file_settings f JOIN pg_settings s USING (name) WHERE f.applied AND f.setting <> s.setting AND name IN ('fsync', 'synchronous_commit', 'synchronous_standby_names')";
    for (let tries = 0; Number(cluster.sql('postgres', pending)) > 0 && tries < 100; tries += 1)
      await sleepMs(50);

    const doctor = await runColibri(colibri, ['doctor', '--json']);

    const checks = JSON.parse(doctor.stdout) as { what: string; found: string }[];
    const told = (what: string) => checks.filter((one) => one.what === what).map(({ found }) => found);
    expect(told('server').join(' ')).toContain(said);
    expect(told('database')).toEqual([
      expect.stringMatching(
        /^postgres:db1 .*PostgreSQL \d+\.\d+, synchronous_commit (on|local|remote_write)$/,
      ),
    ]);
    expect(doctor.code).toBe(code);
    expect(doctor.stdout).not.toContain('berlin');
  });

  test('an erased text is gone from the tables, from search, from the bytes of the tables and was never among what the planner remembers', async () => {
    const url = await cluster.createDatabase();
    const name = url.slice(url.lastIndexOf('/') + 1);
    const machine = new Playground(url);
    const server = await machine.start();
    for (let n = 0; n < 3; n += 1)
      await server.call('task_create', {
        title: 'Xylophone quartet',
        description: 'glockenspiel',
        project: 'p',
      });
    const planner =
      "SELECT count(*) FROM pg_stats WHERE CAST(most_common_vals AS text) ~* 'xylophone|glockenspiel'";
    cluster.sql(name, 'ANALYZE');
    const remembered = cluster.sql(name, planner).trim();
    const before = await server.call('task_list', { search: 'xylophone' });

    const erased = [];
    for (const id of ['T-0001', 'T-0002', 'T-0003'])
      erased.push(
        await runColibri(machine, ['erase', id, '--reason', 'They asked for it.', '--yes', '--json']),
      );
    const after = await server.call('task_list', { search: 'xylophone' });
    await server.closeInput();
    const verified = await runColibri(machine, ['verify', '--json']);
    cluster.sql(name, 'CHECKPOINT');
    const files = rowsAt(
      url,
      `SELECT pg_relation_filepath(c.oid) AS path FROM pg_class c WHERE relname ~ '^(texts|task_words)'
         OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relname IN ('texts', 'task_words'))`,
    ).flatMap(({ path }) => (path === null ? [] : [join(cluster.folder, 'data', String(path))]));
    const bytes = files.map((path) => readFileSync(path, 'latin1').toLowerCase()).join('');
    await machine.dispose();

    expect(before.envelope).toMatchObject({ data: { total_count: 3 } });
    for (const { code, stdout } of erased) {
      expect(JSON.parse(stdout)).toMatchObject({
        purged: true,
        limits: expect.arrayContaining([
          expect.stringContaining('write-ahead log and the archive of that log'),
        ]),
      });
      expect(code).toBe(0);
    }
    expect(after.envelope).toMatchObject({ data: { total_count: 0 } });
    expect(files.length).toBeGreaterThan(2);
    expect(bytes).not.toMatch(/xylophone|glockenspiel/);
    expect(remembered).toBe('0');
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, findings: [] });
  });

  test('the commands of docs/guides/team.md do what it says', async () => {
    const machines = [new Playground(cluster.urlOf('team')), new Playground(cluster.urlOf('team'))] as const;
    const bin = machines[0].path('bin');
    mkdirSync(bin);
    const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
    writeFileSync(join(bin, 'colibri'), `#!/bin/sh\nexec "${process.execPath}" "${cli}" "$@"\n`, {
      mode: 0o755,
    });
    const env = {
      ...machines[0].environment,
      PATH: `${bin}:${cluster.programs}:${process.env.PATH}`,
      ...{ PGHOST: cluster.folder, PGUSER: 'owner' },
    };
    const play = (block: string, at: NodeJS.ProcessEnv = env) =>
      spawnSync('sh', ['-ec', block], { cwd: machines[0].folder, env: at, encoding: 'utf8' });
    const guide = readFileSync(new URL('../../docs/guides/team.md', import.meta.url), 'utf8');
    const [setup = '', moves = '', trust = '', ...others] = [...guide.matchAll(/```sh\n([^`]*)```/g)].map(
      ([, block = '']) => block.replaceAll('postgres://owner@db.example.org/team', cluster.urlOf('team')),
    );

    const made = play(setup);
    await (await machines[1].start()).call('task_create', { title: 'from another machine', project: 'p' });
    const { checkpointed_by: keys } = JSON.parse(
      (await runColibri(machines[0], ['verify', '--json'])).stdout,
    );
    const joined = keys.find((one: { vouched: boolean }) => !one.vouched).key.split('+')[1];
    const trusted = play(trust.replace('1a2b3c4d', joined));
    const strict = await runColibri(machines[0], ['verify', '--require-vouched']);
    // A log of its own goes there and back.
    const file = new Playground();
    await (await file.start()).call('task_create', { title: 'moves', project: 'p' });
    const { COLIBRI_DB_PATH, ...elsewhere } = file.environment;
    const moved = await cluster.createDatabase();
    const [there = '', back = ''] = moves.trim().split('\n');
    const { PATH, PGHOST, PGUSER } = env;
    const went = play(there.replace(cluster.urlOf('team'), moved), {
      ...{ ...elsewhere, PATH, PGHOST, PGUSER },
      COLIBRI_DB_PATH,
    });
    const came = play(back, { ...elsewhere, PATH, PGHOST, PGUSER, COLIBRI_DATABASE_URL: moved });
    for (const machine of [...machines, file]) await machine.dispose();

    expect(went).toMatchObject({ status: 0, stderr: '' });
    expect(came).toMatchObject({ status: 0, stderr: '' });
    expect(made).toMatchObject({ status: 0, stderr: '' });
    expect(made.stdout).toContain('There is no Colibri log in postgres:team.');
    expect(trusted).toMatchObject({ status: 0, stderr: '' });
    expect(strict.code).toBe(0);
    expect(others).toEqual([]);
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
    const shown = [await runColibri(first, ['show', 'T-0011']), await runColibri(second, ['show', 'T-0011'])];
    const trusted = await runColibri(first, ['trust', joined.split('+')[1]]);
    await runColibri(first, ['export', '-o', 'bundle']);
    const created = keys.find((one: { vouched: boolean }) => one.vouched).key;
    const sentences = [];
    for (const key of [created, joined])
      sentences.push((await runColibri(first, ['verify', 'bundle', '--key', key])).stdout);
    const after = await runColibri(first, ['verify', '--require-vouched', '--json']);
    const later = await runColibri(second, ['show', 'T-0011', '--json']);
    const asked = await runColibri(second, ['call', 'server_health', '{}']);
    const complaints = [...(await first.dispose()), ...(await second.dispose())];

    const signed_by = (second: boolean) =>
      [true, second].map((vouched) => expect.objectContaining({ key: expect.any(String), vouched }));
    expect(health.envelope).toMatchObject({
      data: { status: 'ok', log: { signed_by: expect.arrayContaining(signed_by(false)) } },
    });
    expect(JSON.parse(asked.stdout).data).toMatchObject({
      log: { signed_by: expect.arrayContaining(signed_by(true)) },
    });
    // The task was made by the second machine, after the first had gone.
    for (const { stdout, code } of shown) {
      expect(stdout).toContain('● checkpointed');
      expect(stdout).toContain(`○ signed: by key ${joined.split('+')[1]}, which nobody has vouched for`);
      expect(code).toBe(0);
    }
    expect(JSON.parse(later.stdout)).toMatchObject({
      checkpointed: true,
      signed_by: expect.arrayContaining([expect.objectContaining({ key: joined, vouched: true })]),
    });
    for (const { stdout, code } of verdicts) {
      expect(JSON.parse(stdout)).toMatchObject({ findings: [], checkpointed_by: { length: 2 } });
      expect(code).toBe(0);
    }
    const [ofFirst, ofSecond] = [created, joined].map((key) => key.split('+')[1]);
    // N10: whoever gives a key is told of that key, whichever signed first.
    expect(sentences).toEqual([
      expect.stringContaining(`Signed by key ${ofFirst}, the one you gave. Also signed by ${ofSecond}.`),
      expect.stringContaining(`Signed by key ${ofSecond}, the one you gave. Also signed by ${ofFirst}.`),
    ]);
    expect(strict.code).toBe(1);
    expect(findings).toMatchObject([{ kind: 'foreign' }]);
    expect(remarks).toContainEqual(expect.stringContaining('joined automatically'));
    expect(trusted).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(after.stdout)).toMatchObject({ ok: true, remarks: [] });
    expect(complaints).toEqual([]);
  });

  test('a key counts as vouched for only where one that is vouched for has signed that', async () => {
    const url = await cluster.createDatabase();
    const [first, second, third] = [new Playground(url), new Playground(url), new Playground(url)] as const;
    for (const machine of [first, second, third]) await runColibri(machine, ['add', 'x', '--project', 'p']);
    const { checkpointed_by } = JSON.parse((await runColibri(first, ['verify', '--json'])).stdout);
    const [two, three] = checkpointed_by
      .filter((one: { vouched: boolean }) => !one.vouched)
      .map((one: { key: string }) => one.key);
    const idOf = (key: string) => key.split('+')[1] ?? '';
    const ownerOf = async (machine: Playground) =>
      JSON.parse((await runColibri(machine, ['verify', '--json'])).stdout).checkpointed_by.find(
        (one: { key: string; vouched: boolean }) => one.vouched && [two, three].includes(one.key),
      ).key;
    // Each machine believes its own key.
    const own = await ownerOf(second);
    const other = own === two ? three : two;

    const itself = await runColibri(second, ['trust', idOf(own)]);
    const another = await runColibri(second, ['trust', idOf(other)]);
    const real = await runColibri(first, ['trust', idOf(own)]);
    const again = await runColibri(first, ['trust', idOf(own)]);
    // The administrator lets the call of the first machine name the other key.
    runAt(url, `UPDATE colibri.action_payloads SET body = replace(body, '${own}', '${other}')`, true);
    const health = JSON.parse((await runColibri(first, ['call', 'server_health', '{}'])).stdout);
    const complaints = [first, second, third].map((machine) => machine.dispose());

    expect(itself).toMatchObject({ code: 1, stderr: expect.stringContaining('the key of this machine') });
    expect(another).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot vouch for another') });
    expect(real).toMatchObject({ code: 0, stdout: expect.stringContaining('You have vouched for') });
    expect(again).toMatchObject({ code: 0, stdout: `The key ${own} is vouched for.\n` });
    expect(health.data.log.signed_by).toContainEqual(expect.objectContaining({ key: other, vouched: false }));
    expect((await Promise.all(complaints)).flat()).toEqual([]);
  });

  test('a URL that is not understood is never shown, whatever it looks like', async () => {
    const machine = new Playground();
    const start = 'postgres://u:S3cr3tPw9@hidden.example.invalid';
    const urls = [`${start}/db?sslmode=bogus`, `${start}:99999/db`, start, ` ${start}/db`, `'${start}/db'`];
    urls.push(start.replace('postgres', 'mysql'), 'host=hidden.example.invalid password=S3cr3tPw9');

    for (const url of urls) {
      const { code, stdout, stderr } = await runColibri(machine, ['verify', url]);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('The URL is not understood');
      expect(stderr).not.toMatch(/S3cr3t|hidden/);
    }
    expect(await machine.dispose()).toEqual([]);
  });

  test('a command ends even if the server stops talking and keeps its side open', async () => {
    const machine = new Playground();
    const sockets: Socket[] = [];
    const stalling = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      // It has no TLS, lets everybody in, and says nothing more.
      socket.once('data', (first) => {
        const isAskedForTls = first.length === 8;
        const welcome = Buffer.from('5200000008000000005a0000000549', 'hex');
        if (!isAskedForTls) socket.write(welcome);
        else socket.once('data', () => socket.write(welcome)).write('N');
      });
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => stalling.listen(0, '127.0.0.1', resolve));
    const { port } = stalling.address() as AddressInfo;

    const { code, stderr } = await runColibri(machine, ['verify', `postgres://u:pw@127.0.0.1:${port}/db`]);
    for (const socket of sockets) socket.destroy();
    stalling.close();

    expect(sockets.length).toBeGreaterThan(0);
    expect(code).toBe(1);
    expect(stderr).toContain('postgres:db cannot be reached');
    expect(await machine.dispose()).toEqual([]);
  });

  test('what is taken out of a log whose newest rows nobody has vouched for says so, and is not called foreign', async () => {
    const url = await cluster.createDatabase();
    const [first, second, third] = [new Playground(url), new Playground(url), new Playground(url)] as const;
    for (const machine of [first, second]) await runColibri(machine, ['add', 'a task', '--project', 'p']);
    const [bundle, proof] = [second.path('bundle'), second.path('proof.json')];

    // On a machine that has never signed, as its very first command.
    const strange = await runColibri(third, ['verify', '--json']);
    const strict = await runColibri(third, ['verify', '--require-vouched', '--json']);
    await runColibri(second, ['export', '-o', bundle]);
    await runColibri(second, ['prove', 'T-0002', '-o', proof]);
    const judged = [strange];
    for (const machine of [first, second, third])
      for (const path of [bundle, proof]) judged.push(await runColibri(machine, ['verify', '--json', path]));
    const insisted = await runColibri(first, ['verify', '--json', '--require-vouched', bundle]);
    const python = await judgeByPython('verify-bundle.py', bundle);
    // Whoever brings the key of the machine that made the log is not content with a claim that others belong to it.
    const { checkpointed_by: signers } = JSON.parse(
      (await runColibri(first, ['verify', '--json', bundle])).stdout,
    ) as {
      checkpointed_by: { key: string; vouched: boolean }[];
    };
    const key = signers.find(({ vouched }) => vouched)?.key ?? '';
    const pinned = [
      (await runColibri(third, ['verify', '--key', key, bundle])).code,
      (await runColibri(third, ['verify', '--key', key, proof])).code,
      (await judgeByPython('verify-bundle.py', bundle, '--key', key)).isSound,
    ];
    // Where a log is not said to be shared, a key that joins by itself is a stranger's.
    const marker = join(bundle, 'bundle.json');
    writeFileSync(marker, readFileSync(marker, 'utf8').replace(',"shared":true', ''));
    const unshared = await runColibri(first, ['verify', '--json', bundle]);
    const unsharedByPython = await judgeByPython('verify-bundle.py', bundle);
    for (const machine of [first, second, third]) await machine.dispose();

    for (const { stdout, code } of judged) {
      expect(JSON.parse(stdout)).toMatchObject({ ok: true, findings: [] });
      expect(code).toBe(0);
    }
    for (const { stdout, code } of [strict, insisted]) {
      expect(JSON.parse(stdout)).toMatchObject({
        findings: [{ kind: 'foreign' }],
        remarks: expect.arrayContaining([expect.stringContaining('nobody has vouched for it')]),
      });
      expect(code).toBe(1);
    }
    expect(python).toMatchObject({
      isSound: true,
      output: expect.stringContaining('nobody has vouched for it'),
    });
    const kinds = (JSON.parse(unshared.stdout) as { findings: { kind: string }[] }).findings;
    expect(kinds.map(({ kind }) => kind)).toContain('foreign');
    expect(unsharedByPython.isSound).toBe(false);
    expect(pinned).toEqual([1, 1, false]);
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
    ['accepts no writes', 'SET default_transaction_read_only = on', ''],
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

  test('a password need not be in the URL: it is found where psql finds it, and a missing one is said to be missing', async () => {
    const url = await cluster.createDatabase();
    const name = url.slice(url.lastIndexOf('/') + 1);
    cluster.sql(name, "CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'p@ss:word'");
    const rules = join(cluster.folder, 'data', 'pg_hba.conf');
    writeFileSync(rules, `local all guarded scram-sha-256\n${readFileSync(rules, 'utf8')}`);
    cluster.sql(name, 'SELECT pg_reload_conf()');
    const machine = new Playground(cluster.urlOf(name, 'guarded'));
    const file = machine.path('passwords');
    writeFileSync(file, `${cluster.folder}:5432:${name}:guarded:p@ss\\:word\n`, { mode: 0o600 });
    const create = (env: Record<string, string>) =>
      runColibri(machine, ['call', 'task_create', '{"title":"a","project":"p"}'], { env });

    const without = await create({});
    const wrong = await create({ PGPASSWORD: 'another' });
    const within = [
      await create({ PGPASSFILE: file }),
      await create({ COLIBRI_DATABASE_URL: machine.dbPath.replace('guarded@', 'guarded:p%40ss%3Aword@') }),
    ];
    await machine.dispose();

    expect(without.stderr).toContain('the server asks for a password, and none was given');
    expect(wrong.stderr).toContain('the server refused the user or the password');
    expect(within.map(({ code }) => code)).toEqual([0, 0]);
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
    const rows = machine.readAudit().rows.length;
    const erase = () => runColibri(machine, ['erase', 'T-0001', '--reason', 'They asked.', '--yes']);
    const refused = await erase();
    const added = machine.readAudit().rows.length - rows;
    cluster.sql(name, 'GRANT DELETE ON colibri.texts TO agent');
    const erased = await erase();
    const { code, stdout } = await runColibri(machine, ['verify', '--json']);
    for (const one of [owner, machine]) await one.dispose();

    expect(answers.map(({ envelope }) => envelope?.ok)).toEqual(answers.map(() => true));
    expect(answers.at(-1)?.envelope).toMatchObject({ data: { status: 'ok' } });
    expect(JSON.parse(stdout)).toMatchObject({ findings: [] });
    expect(code).toBe(0);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^colibri erase: Nothing was erased\. This role lacks a right on postgres:\w+ \(permission denied for table texts\); nothing was written\. Ask the owner/,
      ),
    });
    expect(added).toBe(0);
    expect(erased.stdout).toContain('T-0001 is erased');
    expect(erased.stderr).toContain(
      'Ask their owner to run: VACUUM (FULL) colibri.texts, colibri.task_words.',
    );
    expect(erased.stderr).not.toContain('run the same command again');
    expect(erased.code).toBe(1);
    expect(() => cluster.sql(name, `SET ROLE agent; UPDATE colibri.actions SET text = ''`)).toThrow(
      'permission denied',
    );
  });
});
