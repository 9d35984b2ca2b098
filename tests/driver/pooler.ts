import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from './postgres.ts';
import { until } from './server-process.ts';

const PROGRAM = '/usr/sbin/pgbouncer';

/** Why tests with a pooler are skipped, or undefined where they run. */
export const NO_POOLER = existsSync(PROGRAM)
  ? undefined
  : 'PgBouncer is not installed (Debian: apt-get install pgbouncer)';

/** PgBouncer in front of a cluster, on a socket in a folder of its own. */
export async function startPooler(cluster: Cluster, mode: 'transaction' | 'session') {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-pooler-'));
  // It refuses to run as root.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if (nobody.uid !== undefined) chownSync(folder, nobody.uid, nobody.gid);
  const settings = [
    ...['[databases]', `* = host=${cluster.folder} user=owner`],
    ...['[pgbouncer]', `unix_socket_dir = ${folder}`, 'listen_addr =', 'listen_port = 5432'],
    ...['auth_type = any', `pool_mode = ${mode}`, 'default_pool_size = 20', 'ignore_startup_parameters = *'],
  ];
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, `${settings.join('\n')}\n`);
  const child = spawn(PROGRAM, ['-q', file], { ...nobody, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  await until(
    () => existsSync(join(folder, '.s.PGSQL.5432')),
    20_000,
    () => `PgBouncer did not start: ${said}`,
  );
  return {
    urlOf: (database: string) => `postgres://owner@${encodeURIComponent(folder)}/${database}`,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
