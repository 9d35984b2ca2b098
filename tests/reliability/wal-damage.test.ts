import { cpSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { readAuditFile } from '../driver/audit-file.ts';
import { startColibri } from '../driver/command-line.ts';
import type { Playground } from '../driver/playground.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { figure, tier } from '../driver/tier.ts';
import { battery } from './battery.ts';
import { Recorder } from './recorder.ts';

/** Each damage is done to the write-ahead log a killed server left. */
const DAMAGES: Readonly<Record<string, (wal: string, random: Random) => void>> = {
  cut: (wal, random) => truncateSync(wal, random.between(0, statSync(wal).size - 1)),
  'bit flipped': (wal, random) => {
    const bytes = readFileSync(wal);
    const at = random.between(0, bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.between(0, 7));
    writeFileSync(wal, bytes);
  },
  deleted: (wal) => rmSync(wal),
};

const TIMES = tier(6, 300);
/** As many of them go through a real start as well. */
const STARTS = tier(2, 10);

battery(
  'R15',
  `after kill -9, a write-ahead log that was cut, changed or deleted is reported each time rows are missing (${TIMES} each)`,
  async (colibri) => {
    const random = seededRandom('R15');
    const signed = await killedServer(colibri);
    const safe = keepCopy(colibri);
    const verifyInProcess = await verifier(colibri);

    for (const [name, damage] of Object.entries(DAMAGES)) {
      const counts = { damaged: 0, rows_missing: 0, reported: 0, worst_missing: 0 };
      const times = name === 'deleted' ? STARTS : TIMES;
      for (let i = 0; i < times; i += 1) {
        safe.restore();
        damage(`${colibri.dbPath}-wal`, random);
        const missing = signed - rowsIn(colibri);
        counts.damaged += 1;
        counts.worst_missing = Math.max(counts.worst_missing, missing);
        if (missing === 0) continue;
        counts.rows_missing += 1;
        safe.restoreOthers();
        const findings = await verifyInProcess();
        const health = i < STARTS ? await healthAfterStart(colibri) : undefined;
        counts.reported += findings.length > 0 ? 1 : 0;
        expect(findings, `${name}, ${missing} rows are missing`).not.toEqual([]);
        if (health !== undefined)
          expect(health).toMatchObject({ status: 'degraded', log: { refused: expect.any(String) } });
      }
      figure('R15', { damage: name, ...counts });
    }
  },
);

battery(
  'R15',
  'the command line says what is missing, and the server takes no more for signed',
  async (colibri) => {
    const signed = await killedServer(colibri);
    rmSync(`${colibri.dbPath}-wal`);

    const verified = await startColibri(colibri, ['verify', '--json']);
    const health = await healthAfterStart(colibri);

    expect(verified.code).toBe(1);
    expect(verified.stdout).toContain(String(signed));
    expect(health).toMatchObject({ status: 'degraded' });
  },
);

battery('R15', 'the check is red where nothing remembers what was signed', async (colibri) => {
  await killedServer(colibri);
  rmSync(`${colibri.dbPath}-wal`);
  const verify = await verifier(colibri);
  const withAnchor = await verify();

  rmSync(colibri.path('config', 'colibri'), { recursive: true });
  const without = await verify();

  expect(withAnchor).not.toEqual([]);
  expect(without).toEqual([]);
});

battery(
  'R15',
  'the very first call is signed and remembered: without its log it is missed',
  async (colibri) => {
    const server = await colibri.start();
    await new Recorder(server).data('task_create', { title: 'a task', project: 'demo' });
    await server.killHard();
    rmSync(`${colibri.dbPath}-wal`);

    const { code } = await startColibri(colibri, ['verify']);

    expect(code).toBe(1);
  },
);

/** A server that wrote and was killed. Returns the number of its rows, all of them signed with their commits. */
async function killedServer(colibri: Playground): Promise<number> {
  const server = await colibri.start();
  const recorder = new Recorder(server);
  for (let i = 0; i < 3; i += 1) await recorder.chapter(`chapter ${i}`);
  const rows = rowsIn(colibri);
  await server.killHard();
  return rows;
}

/** The files as the killed server left them: the database with its log, and what the user's folder remembers. */
function keepCopy(colibri: Playground) {
  const [data, config] = [colibri.path('data'), colibri.path('config')];
  cpSync(data, colibri.path('kept-data'), { recursive: true });
  cpSync(config, colibri.path('kept-config'), { recursive: true });
  const restoreOthers = () => {
    rmSync(config, { recursive: true });
    cpSync(colibri.path('kept-config'), config, { recursive: true });
  };
  return {
    restore() {
      rmSync(data, { recursive: true });
      cpSync(colibri.path('kept-data'), data, { recursive: true });
      restoreOthers();
    },
    restoreOthers,
  };
}

/** On a copy: opening a log that a crash left merges it. */
function rowsIn(colibri: Playground): number {
  const copy = colibri.path('count.db');
  for (const end of ['', '-wal']) {
    rmSync(copy + end, { force: true });
    if (existsSync(colibri.dbPath + end)) cpSync(colibri.dbPath + end, copy + end);
  }
  rmSync(`${copy}-shm`, { force: true });
  return readAuditFile(copy).rows.length;
}

/** `colibri verify` without a process of its own: ninety starts would take a minute. */
async function verifier(colibri: Playground): Promise<() => Promise<readonly unknown[]>> {
  const { verifyDatabase } = await import('../../src/cli/verify.ts');
  const { readConfig } = await import('../../src/config.ts');
  const { createOutput } = await import('../../src/cli/output.ts');
  const config = readConfig(colibri.environment);
  return async () => {
    const { findings } = await verifyDatabase({
      config,
      path: colibri.dbPath,
      out: createOutput({
        json: true,
        stdin: process.stdin,
        stdout: process.stderr,
        stderr: process.stderr,
        colour: false,
      }),
    });
    return findings;
  };
}

async function healthAfterStart(colibri: Playground): Promise<unknown> {
  const server = await colibri.start();
  const { envelope } = await server.call('server_health');
  await server.killHard();
  return envelope?.data;
}
