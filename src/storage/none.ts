import type { StorageEngine, Transaction } from './engine.ts';

/** Stands in where no database is open. Handlers that need none run; one that asks for a row is a bug. */
export function createNoStorage(): StorageEngine {
  const refuse = () => Promise.reject(new Error('there is no database in this mode'));
  const tx: Transaction = { get: refuse, all: refuse, run: refuse };
  return {
    read: (work) => work(tx),
    write: (work) => work(tx),
    sync: () => Promise.resolve(),
    selfCheck: refuse,
    close: () => Promise.resolve(),
    facts: { path: '', schemaVersion: 0, engine: 'none', journal: 'none', writable: false },
  };
}
