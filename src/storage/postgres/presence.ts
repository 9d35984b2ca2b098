import { sha256Hex } from '../../integrity/digest.ts';

/** How long a process whose lock is free must have been silent before it counts as gone. */
const SILENT = "INTERVAL '60 seconds'";

/**
 * Whether a process is there, as far as the server can tell: a session holds its lock, it wrote a row a moment ago, or the
 * server itself has just started and nobody had the time to come back.
 */
export const PRESENT = `SELECT 1 AS present WHERE pg_postmaster_start_time() > clock_timestamp() - ${SILENT}
  OR EXISTS (SELECT 1 FROM pg_locks
    WHERE locktype = 'advisory' AND classid = CAST(? AS BIGINT)::oid AND objid = CAST(? AS BIGINT)::oid AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
  OR EXISTS (SELECT 1 FROM processes WHERE process = ?
    AND last_seen > to_char((clock_timestamp() - ${SILENT}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;

/** Two numbers of 31 bits for the name of a process. */
export function nameLock(process: string): [number, number] {
  const digest = Buffer.from(sha256Hex(`colibri process ${process}`), 'hex');
  return [digest.readUInt32BE(0) >>> 1, digest.readUInt32BE(4) >>> 1];
}
