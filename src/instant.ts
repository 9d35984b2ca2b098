const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

const DAY_MS = 86_400_000;
const YEAR_9999_ENDS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const YEAR_0_BEGINS = Date.parse('0000-01-01T00:00:00.000Z');

/**
 * A point in time written as ISO-8601, in UTC with milliseconds as times are stored, or undefined. Stricter than the
 * language: 30 February is not a day, nothing may follow, and without a zone it is UTC wherever the server runs.
 */
export function parseInstant(text: string): string | undefined {
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] =
    ISO.exec(text) ?? [];
  if (year === undefined || month === undefined || day === undefined) return undefined;
  const time = `${hour}:${minute}:${second}.${fraction.padEnd(3, '0').slice(0, 3)}`;
  // The end of a day is the beginning of the next.
  const endsDay = /^24:00:00\.0+$/.test(`${hour}:${minute}:${second}.${fraction}0`);
  const local = `${year}-${month}-${day}T${endsDay ? '00:00:00.000' : time}Z`;
  const ms = Date.parse(local) + (endsDay ? DAY_MS : 0);
  // A day that does not exist comes back as another one.
  if (Number.isNaN(ms) || new Date(Date.parse(local)).toISOString() !== local) return undefined;
  const offset = offsetMs(zone);
  if (offset === undefined) return undefined;
  // Beyond four digits of the year, text order would no longer be time order.
  return new Date(Math.min(YEAR_9999_ENDS, Math.max(YEAR_0_BEGINS, ms - offset))).toISOString();
}

function offsetMs(zone: string): number | undefined {
  if (zone.toUpperCase() === 'Z') return 0;
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(3).replace(':', '') || 0)];
  if (hours > 23 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
