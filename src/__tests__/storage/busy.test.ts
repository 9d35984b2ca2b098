import { afterAll, expect, test, vi } from 'vitest';
import type * as Limits from '../../limits.ts';

// Ten seconds are the promise; a test of it can be had for a tenth of one. Other files share the modules of this worker.
vi.resetModules();
vi.doMock('../../limits.ts', async (original) => {
  const { LIMITS } = await original<typeof Limits>();
  return { LIMITS: { ...LIMITS, lockWaitMsMax: 100 } };
});
const { openScratch, scratchPath } = await import('./scratch.ts');
afterAll(() => {
  vi.doUnmock('../../limits.ts');
  vi.resetModules();
});

test('a process that never lets go makes the others answer ERR_STORAGE_BUSY, and only then', async () => {
  const path = scratchPath();
  const [stuck, waiting] = [await openScratch(path), await openScratch(path)];
  let release: () => void = () => undefined;
  const held = stuck.write(() => new Promise<void>((done) => (release = done)));
  const began = performance.now();

  const refused = await waiting.write(async () => 'begun').catch((error: unknown) => error);
  const waitedMs = performance.now() - began;
  release();
  await held;

  expect(refused).toMatchObject({ code: 'ERR_STORAGE_BUSY', details: { waited_ms: 100 } });
  expect(waitedMs).toBeGreaterThanOrEqual(100);
  await expect(waiting.write(async () => 'begun')).resolves.toBe('begun');
});

test('the event loop goes on while a writer waits for another process', async () => {
  const path = scratchPath();
  const [stuck, waiting] = [await openScratch(path), await openScratch(path)];
  let release: () => void = () => undefined;
  const held = stuck.write(() => new Promise<void>((done) => (release = done)));
  let ticks = 0;
  const ticking = setInterval(() => {
    ticks += 1;
  }, 1);

  await waiting.write(async () => undefined).catch(() => undefined);
  clearInterval(ticking);
  release();
  await held;

  // None, if the wait held the loop. How many depends on what else the machine does.
  expect(ticks).toBeGreaterThan(1);
});
