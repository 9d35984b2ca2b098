import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CommandOptions, type CommandResult, runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { type Cluster, NO_POSTGRES, startCluster } from '../driver/postgres.ts';
import { stateFindings } from '../driver/state-file.ts';
import { contentOf, missingFrom, onServer, PASSWORD, withPassword, workOn } from '../driver/transfer.ts';
import { judgeByPython } from '../matrix/sources.ts';

// Each starts many programs, on a machine that may be busy.
const SLOW = { timeout: 240_000 };

describe.skipIf(NO_POSTGRES !== undefined)(`colibri transfer ${NO_POSTGRES ?? ''}`, SLOW, () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  test('a log goes to a server and back to a file: the same rows, hashes, heads, and proofs that hold', async () => {
    const colibri = new Playground(null);
    await workOn(colibri);
    const before = contentOf(colibri.dbPath);
    await runColibri(colibri, ['prove', 'T-0003', '-o', 'certificate.json']);
    await runColibri(colibri, ['export', '-o', 'bundle']);
    const { stdout: kept } = await runColibri(colibri, ['checkpoint']);
    const url = await cluster.createDatabase();
    const name = `postgres:${url.slice(url.lastIndexOf('/') + 1)}`;
    const there = onServer(url);
    const back = colibri.path('back.db');
    const home = { env: { COLIBRI_DB_PATH: back } };

    const out = await runColibri(colibri, ['transfer', '--to', withPassword(url)]);
    const [left, inServer] = [contentOf(colibri.dbPath), contentOf(url)];
    const found = await runColibri(colibri, ['search', 'roof'], there);
    const unfound = await runColibri(colibri, ['search', 'unforgettable'], there);
    const returned = await runColibri(colibri, ['transfer', '--to', back], there);
    const inFile = contentOf(back);
    const verdicts = [];
    for (const options of [{}, there, home])
      verdicts.push(await runColibri(colibri, ['verify', '--json'], options));
    const against = await runColibri(colibri, ['verify', '--against', kept], home);
    const proofs = [];
    for (const proof of ['certificate.json', 'bundle'])
      proofs.push(await runColibri(colibri, ['verify', proof], home));
    const python = await judgeByPython('verify-database.py', back);
    const later = await colibri.start({ env: home.env });
    const made = await later.call('task_create', { title: 'At home again', project: 'p' });
    await later.closeInput();
    const last = await runColibri(colibri, ['verify', '--json'], home);
    const isInFile = readFileSync(back).includes('unforgettable');
    const complaints = [...stateFindings(back), ...stateFindings(url), ...(await colibri.dispose())];

    expect(out).toMatchObject({ code: 0, stderr: '' });
    expect(out.stdout).toContain(`to ${name}`);
    // N12: both settings at once are an error, so that the last line names both.
    expect(out.stdout.trimEnd().split('\n').at(-1)).toBe(
      `In the entry of every client, on every machine, set COLIBRI_DATABASE_URL to the URL of ${name} and remove COLIBRI_DB_PATH. Calls of clients that still use ${colibri.dbPath} are refused.`,
    );
    expect(returned.stdout).toContain(`set COLIBRI_DB_PATH to ${back} and remove COLIBRI_DATABASE_URL.`);
    expect(returned).toMatchObject({ code: 0, stderr: '' });
    // The key has signed one row more there, and this process has made it.
    const isRenewed = (sql: string) => /log_heads|processes/.test(sql);
    expect(missingFrom(before, left).filter((row) => !isRenewed(row))).toEqual([]);
    expect(missingFrom(left, inServer).filter((row) => !isRenewed(row))).toEqual([]);
    expect(missingFrom(inServer, inFile).filter((row) => !isRenewed(row))).toEqual([]);
    expect(found.stdout).toContain('T-0001');
    expect(unfound.stdout).not.toContain('T-0002');
    for (const { stdout, code } of verdicts)
      expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, findings: [] });
    expect(against.code).toBe(0);
    expect(proofs.map(({ code }) => code)).toEqual([0, 0]);
    expect(python).toMatchObject({ isSound: true });
    expect(made.envelope).toMatchObject({ ok: true });
    expect(JSON.parse(last.stdout)).toMatchObject({ findings: [], remarks: [] });
    expect(isInFile).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('what is left behind takes nothing more, says where the log went and never where that is, and can be verified', async () => {
    const colibri = new Playground(null);
    const running = await colibri.start();
    await running.call('task_create', { title: 'before', project: 'p' });
    const url = await cluster.createDatabase();
    const name = `postgres:${url.slice(url.lastIndexOf('/') + 1)}`;
    await runColibri(colibri, ['transfer', '--to', withPassword(url)]);
    const size = colibri.readAudit().rows.length;

    const refused = [
      await running.call('task_create', { title: 'after', project: 'p' }),
      await running.call('task_list', {}),
    ];
    const ping = await running.call('server_ping');
    await running.closeInput();
    const late = await colibri.start();
    refused.push(
      await late.call('task_create', { title: 'late', project: 'p' }),
      await late.call('task_list', {}),
    );
    const health = await late.call('server_health');
    await late.closeInput();
    const commands = [];
    for (const command of [
      ['add', 'no', '--project', 'p'],
      ['checkpoint'],
      ['erase', 'T-0001', '--reason', 'x', '--yes'],
    ])
      commands.push(await runColibri(colibri, command));
    const elsewhere = await runColibri(colibri, ['transfer', '--to', colibri.path('other.db')]);
    const again = await runColibri(colibri, ['transfer', '--to', withPassword(url)]);
    const verified = await runColibri(colibri, ['verify', '--json']);
    const after = colibri.readAudit().rows;
    const said = JSON.stringify([
      refused,
      health,
      commands,
      elsewhere,
      again,
      verified,
      late.stderr,
      running.stderr,
    ]);
    const hasOther = existsSync(colibri.path('other.db'));
    const complaints = await colibri.dispose();

    for (const { envelope } of refused)
      expect(JSON.stringify(envelope)).toContain(`The log was transferred to ${name}`);
    expect(ping.envelope).toMatchObject({ ok: true });
    expect(health.envelope).toMatchObject({ data: { status: 'degraded' } });
    for (const { code, stderr, stdout } of commands) {
      expect(code).not.toBe(0);
      expect(stderr + stdout).toContain(`The log was transferred to ${name}`);
    }
    expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining(`transferred to ${name}`) });
    expect(hasOther).toBe(false);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(verified.stdout)).toMatchObject({
      ok: true,
      findings: [],
      remarks: [expect.stringContaining(`transferred to ${name}`)],
    });
    expect(after).toHaveLength(size);
    expect(after.at(-1)).toMatchObject({
      tool: 'owner_transfer',
      stage: 'exit',
      outcome: 'ok',
      source: 'cli',
    });
    expect(said).not.toContain(PASSWORD);
    expect(said).not.toContain(cluster.folder);
    expect(complaints).toEqual([]);
  });

  test('in both directions, every command that reads the old copy says on stderr that the log moved, and where to', async () => {
    const colibri = new Playground(null);
    await workOn(colibri);
    const url = await cluster.createDatabase();
    const name = `postgres:${url.slice(url.lastIndexOf('/') + 1)}`;
    const back = colibri.path('back.db');
    const commands = [
      ...[['list'], ['search', 'roof'], ['show', 'T-0001'], ['log'], ['board'], ['stats'], ['sessions']],
      ...[['report'], ['prove', 'T-0003', '--force'], ['anchor', '--list'], ['list', '--json']],
    ];
    const said = async (options: CommandOptions, some = commands) => {
      const all = [];
      for (const command of some) all.push(await runColibri(colibri, command, options));
      return all;
    };
    const few = commands.slice(0, 3);

    await runColibri(colibri, ['transfer', '--to', withPassword(url)]);
    const [inFile, inServer] = [await said({}), await said(onServer(url), few)];
    const exported = await runColibri(colibri, ['export', '-o', 'bundle']);
    await runColibri(colibri, ['transfer', '--to', back], onServer(withPassword(url)));
    const [left, home] = [
      await said(onServer(withPassword(url))),
      await said({ env: { COLIBRI_DB_PATH: back } }, few),
    ];
    const doctor = await runColibri(colibri, ['doctor'], onServer(url));
    await colibri.dispose();

    const notes = (all: readonly CommandResult[]) => all.map(({ stderr }) => stderr);
    const moved = (to: string, how: string) =>
      `The log was transferred to ${to}. This is the old copy, which no longer changes. ${how}\n`;
    const [toServer, toFile] = [
      moved(name, 'Set COLIBRI_DATABASE_URL to the URL of that database, and unset COLIBRI_DB_PATH.'),
      moved(back, 'Set COLIBRI_DB_PATH to that file, and unset COLIBRI_DATABASE_URL.'),
    ];
    for (const all of [inServer, home]) expect(notes(all)).toEqual(all.map(() => ''));
    expect(notes([...inFile, exported])).toEqual([...inFile, exported].map(() => toServer));
    expect(notes(left)).toEqual(left.map(() => toFile));
    expect(doctor.stderr + doctor.stdout).toContain(`The log was transferred to ${back}`);
    for (const { code } of [...inFile, ...left]) expect(code).toBe(0);
  });
});
