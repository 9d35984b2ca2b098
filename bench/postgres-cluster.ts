export { NO_POSTGRES, startCluster } from '../tests/driver/postgres.ts';
