import { canonicalJson } from '../integrity/canonical-json.ts';
import type { StateTable } from '../log/state.ts';
import type { Reader, SqlValue } from '../storage/engine.ts';

/** An audit row as it is handed out: the exact text, and its digest as stored. */
export interface StoredText {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
}

export interface StoredPayload {
  readonly position: number;
  readonly salt: string;
  readonly body: string;
}

const PAGE = 1_000;

/** Every audit row in order, a page at a time. */
export async function* auditRows(tx: Reader): AsyncGenerator<StoredText> {
  yield* paged((after) =>
    tx.all<StoredText>(
      'SELECT position, text, content_hash, chain_hash FROM actions WHERE position > ? ORDER BY position LIMIT ?',
      after,
      PAGE,
    ),
  );
}

export async function* payloads(tx: Reader): AsyncGenerator<StoredPayload> {
  yield* paged((after) =>
    tx.all<StoredPayload>(
      'SELECT position, salt, body FROM action_payloads WHERE position > ? ORDER BY position LIMIT ?',
      after,
      PAGE,
    ),
  );
}

/** One text for what lies beside a row. */
export function payloadLine({ position, salt, body }: StoredPayload): string {
  return canonicalJson({ body, position, salt });
}

/** The rows of a table as the texts whose SHA-256 the log holds. `only` is SQL for some of them. */
export async function* stateLines(
  tx: Reader,
  table: StateTable,
  only?: { readonly where: string; readonly params: readonly SqlValue[] },
): AsyncGenerator<string> {
  // Generated columns are not listed there, and belong to no digest.
  const columns = await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name);
  const names = columns.map(({ name }) => name).join(', ');
  let after = 0;
  for (;;) {
    const page = await tx.all<{ readonly id: number }>(
      `SELECT ${names} FROM ${table.name} WHERE id > ? AND ${only?.where ?? '1'} ORDER BY id LIMIT ?`,
      after,
      ...(only?.params ?? []),
      PAGE,
    );
    for (const row of page) {
      yield canonicalJson({ ...row });
      after = row.id;
    }
    if (page.length < PAGE) return;
  }
}

async function* paged<T extends { readonly position: number }>(
  read: (after: number) => Promise<T[]>,
): AsyncGenerator<T> {
  let after = 0;
  for (;;) {
    const page = await read(after);
    yield* page;
    after = page.at(-1)?.position ?? after;
    if (page.length < PAGE) return;
  }
}
