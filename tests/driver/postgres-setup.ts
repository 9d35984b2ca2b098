import { NO_POSTGRES, startCluster } from './postgres.ts';

/** Starts the cluster that all tests of a run share. */
export async function setup(): Promise<() => Promise<void>> {
  if (NO_POSTGRES !== undefined) throw new Error(NO_POSTGRES);
  const cluster = await startCluster({ max_connections: '300', fsync: 'on' });
  process.env.COLIBRI_TEST_POSTGRES = cluster.folder;
  return () => cluster.stop();
}
