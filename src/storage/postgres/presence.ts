import { sha256Hex } from '../../integrity/digest.ts';

/** Whether a session holds the lock of a process. */
export const HELD = `SELECT 1 AS held FROM pg_locks
  WHERE locktype = 'advisory' AND classid = CAST(? AS BIGINT)::oid AND objid = CAST(? AS BIGINT)::oid AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Two numbers of 31 bits for the name of a process. */
export function nameLock(process: string): [number, number] {
  const digest = Buffer.from(sha256Hex(`colibri process ${process}`), 'hex');
  return [digest.readUInt32BE(0) >>> 1, digest.readUInt32BE(4) >>> 1];
}
