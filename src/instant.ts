const ISO =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(?:Z|([+-]\d\d)(?::?(\d\d))?)?)?$/i;

const YEAR_9999_ENDS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const YEAR_0_BEGINS = Date.parse('0000-01-01T00:00:00.000Z');

/**
 * A point in time written as ISO-8601, in UTC with milliseconds as times are stored, or undefined. Stricter than the
 * language: 30 February is not a day, nothing may follow, and without a zone it is UTC wherever the server runs.
 */
export function parseInstant(text: string): string | undefined {
  const [, date, hour = '00', minute = '00', second = '00', fraction = '', zone = '+00', past = '00'] =
    ISO.exec(text) ?? [];
  const midnight = Date.parse(`${date}T00:00Z`);
  // A day that does not exist comes back as another one. A day that does ends at 24:00 and not a moment later.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(`${date}T`)) return undefined;
  if (hour === '24' && Number(fraction) > 0) return undefined;
  const ms = fraction.padEnd(3, '0').slice(0, 3);
  const at = Date.parse(`${date}T${hour}:${minute}:${second}.${ms}${zone}:${past}`);
  if (Number.isNaN(at)) return undefined;
  return new Date(withinFourDigits(at)).toISOString();
}

/** Beyond four digits of the year, text order would no longer be time order. */
export function withinFourDigits(at: number): number {
  return Math.min(YEAR_9999_ENDS, Math.max(YEAR_0_BEGINS, at));
}
