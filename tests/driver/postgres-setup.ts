import type { TestProject } from 'vitest/node';
import { NO_POSTGRES, startCluster } from './postgres.ts';

/** Starts the cluster that all tests of a run share, where they make their folders. */
export async function setup({ config }: TestProject): Promise<() => Promise<void>> {
  if (NO_POSTGRES !== undefined) throw new Error(NO_POSTGRES);
  const settings = { max_connections: '300', fsync: 'on', max_wal_size: '256MB' };
  const cluster = await startCluster(settings, undefined, config.env.TMPDIR);
  process.env.COLIBRI_TEST_POSTGRES = cluster.folder;
  return () => cluster.stop();
}
