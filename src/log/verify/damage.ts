import { asError } from '../../errors.ts';
import type { Reader } from '../../storage/engine.ts';

/** The engine could not read a part of the file. */
export class DamageError extends Error {}

/** A reader whose failures are told from mistakes of the verifier: a query that fails means a file that cannot be read. */
export function noticingDamage(tx: Reader): Reader {
  async function noticing<T>(query: Promise<T>): Promise<T> {
    try {
      return await query;
    } catch (thrown) {
      throw new DamageError(asError(thrown).message, { cause: thrown });
    }
  }
  return {
    get: (sql, ...params) => noticing(tx.get(sql, ...params)),
    all: (sql, ...params) => noticing(tx.all(sql, ...params)),
  };
}
