import type { Reader } from '../../storage/engine.ts';

/** What stands in a decoded text for bytes that are no UTF-8, and for itself. */
const REPLACEMENT = '\ufffd';

/** Whether other bytes would read as this text too. Only then is it worth asking for them. */
export function mayHideBytes(text: string): boolean {
  return text.includes(REPLACEMENT);
}

interface Cell {
  readonly table: string;
  readonly key: string;
  readonly id: number;
  readonly column: string;
  readonly text: string;
}

/** Whether the bytes of a cell are those of its text: SQLite compares bytes, and what it is given here is UTF-8. */
export async function isStoredAs(tx: Reader, { table, key, id, column, text }: Cell): Promise<boolean> {
  const sql = `SELECT 1 FROM ${table} WHERE ${key} = ? AND ${column} = ?`;
  return (await tx.get(sql, id, text)) !== undefined;
}
