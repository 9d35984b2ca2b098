import { systemClock } from '../clock.ts';
import { parseInstant, withinFourDigits } from '../instant.ts';
import type { Period } from '../report/glance.ts';
import { UsageError } from './command.ts';

/** The options of every command that can be limited to a period. */
export const PERIOD_OPTIONS = {
  since: {
    value: 'TIME',
    help: 'from this time: 2026-01-31, 2026-01-31T12:00Z, today, yesterday, 12h, 3d, 2w',
  },
  until: { value: 'TIME', help: 'up to this time; a day is included' },
} as const;

const DAY_MS = 86_400_000;
const UNITS: Readonly<Record<string, number>> = { h: DAY_MS / 24, d: DAY_MS, w: 7 * DAY_MS };
/** Every time that is stored is between these. */
const ALWAYS: Period = { since: '', until: '~' };

/** Reads `--since` and `--until`. Days are days in UTC, as all times that are printed. */
export function readPeriod(
  given: { readonly since?: string | undefined; readonly until?: string | undefined },
  now = systemClock.now(),
): Period {
  const since = given.since === undefined ? ALWAYS.since : readTime('--since', given.since, now).first;
  const until = given.until === undefined ? ALWAYS.until : readTime('--until', given.until, now).last;
  if (since > until) throw new UsageError(`--since ${given.since} is after --until ${given.until}.`);
  return { since, until };
}

/** A period in words; nothing for all time. */
export function describePeriod({ since, until }: Period): string {
  const [from, to] = [since, until].map((at) => at.replace('T', ' ').replace(/(?::00)?\.\d{3}Z$/, 'Z'));
  return [since === ALWAYS.since ? '' : `since ${from}`, until === ALWAYS.until ? '' : `until ${to}`]
    .filter(Boolean)
    .join(' ');
}

/** The first and the last moment of what was named: a day has both, a point in time is both. */
function readTime(option: string, text: string, now: number) {
  const [, count = '', unit = ''] = /^(\d{1,4})([hdw])$/.exec(text) ?? [];
  if (count !== '') return moment(now - Number(count) * (UNITS[unit] ?? 0));
  const daysBack = ['today', 'yesterday'].indexOf(text);
  const day = daysBack === -1 ? text : iso(now - daysBack * DAY_MS).slice(0, 10);
  const first = parseInstant(day);
  if (first === undefined)
    throw new UsageError(
      `${option} takes a time such as 2026-01-31, 2026-01-31T12:00Z, today, yesterday, 12h, 3d or 2w, not "${text}".`,
    );
  const isDay = /^\d{4}-\d\d-\d\d$/.test(day);
  return { first, last: isDay ? iso(Date.parse(first) + DAY_MS - 1) : first };
}

function moment(at: number) {
  return { first: iso(at), last: iso(at) };
}

function iso(at: number): string {
  return new Date(withinFourDigits(at)).toISOString();
}

/** How long ago something was, in one short word: `3d`. A time that is none has no age. */
export function ageOf(at: string, now = systemClock.now()): string {
  const minutes = Math.floor((now - Date.parse(at)) / 60_000);
  if (Number.isNaN(minutes)) return '';
  if (minutes < 60) return `${Math.max(0, minutes)}m`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h`;
  return `${Math.floor(minutes / 24 / 60)}d`;
}
