import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { Wakefulness } from '../../transport/wakefulness.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setImmediate'] }));
afterEach(() => void vi.useRealTimers());

const isAwake = () => vi.getTimerCount() > 0;

/** As after so many requests, each sent as soon as the one before had its answer. */
function afterQuickRequests(count: number): Wakefulness {
  const wakefulness = new Wakefulness();
  wakefulness.answered();
  for (let i = 0; i < count; i += 1) {
    wakefulness.received(true);
    vi.runAllTimers();
    wakefulness.answered();
  }
  return wakefulness;
}

test('stays awake after several requests that came at once, and not before', () => {
  afterQuickRequests(LIMITS.quickRequestsMin - 1);
  expect(isAwake()).toBe(false);

  afterQuickRequests(LIMITS.quickRequestsMin);
  expect(isAwake()).toBe(true);
});

test('sleeps once nothing has come for a moment', () => {
  afterQuickRequests(LIMITS.quickRequestsMin);

  vi.advanceTimersToNextTimer();
  expect(isAwake()).toBe(true);
  vi.advanceTimersByTime(1);
  vi.advanceTimersToNextTimer();

  expect(isAwake()).toBe(false);
});

test('sleeps although the clock stands still', () => {
  afterQuickRequests(LIMITS.quickRequestsMin);

  vi.runAllTimers();

  expect(isAwake()).toBe(false);
});

test('works instead of waiting as soon as a request has come', () => {
  const wakefulness = afterQuickRequests(LIMITS.quickRequestsMin);

  wakefulness.received(true);
  vi.advanceTimersToNextTimer();

  expect(isAwake()).toBe(false);
});

test.each([
  ['came later', true, 1],
  ['came while another had no answer', false, 0],
])('begins to count anew with a request that %s', (_, isAlone, laterMs) => {
  const wakefulness = afterQuickRequests(LIMITS.quickRequestsMin);

  vi.advanceTimersByTime(laterMs);
  wakefulness.received(isAlone);
  vi.runAllTimers();
  wakefulness.answered();

  expect(isAwake()).toBe(false);
});
