import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { openDatabase } from './database.ts';
import type { Playground } from './playground.ts';
import { holdLockAt } from './postgres.ts';

/** A lock in other hands, until released or until the test is over. */
export interface HeldLock {
  release(): void;
}

/** The write lock of a database in use. */
export function holdWriteLock(colibri: Playground): HeldLock {
  if (colibri.dbPath.startsWith('postgres:')) {
    const held = holdLockAt(colibri.dbPath);
    colibri.onDispose(held.release);
    return held;
  }
  return hold(colibri, 'BEGIN IMMEDIATE');
}

/** A file that exists and is empty, with another process in the middle of making something of it. */
export function lockNewFile(colibri: Playground): HeldLock {
  mkdirSync(dirname(colibri.dbPath), { recursive: true });
  return hold(colibri, 'BEGIN EXCLUSIVE');
}

/** A file another process has for itself, as a backup tool may. */
export function lockWholeFile(colibri: Playground): HeldLock {
  return hold(colibri, 'PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
}

function hold(colibri: Playground, sql: string): HeldLock {
  const db = openDatabase(colibri.dbPath);
  db.exec(sql);
  const release = () => db.isOpen && db.close();
  colibri.onDispose(release);
  return { release };
}
