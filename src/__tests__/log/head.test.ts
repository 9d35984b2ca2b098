import { describe, expect, test } from 'vitest';
import { readHead, UNSIGNED } from '../../log/append.ts';
import { openScratch } from '../storage/scratch.ts';
import { appendRows, ENTER_ROW } from './log-rows.ts';

describe('the head', () => {
  test('of an empty log is what comes before the first row', async () => {
    const engine = await openScratch();

    expect(await engine.read(readHead)).toEqual({ position: 0, chainHash: '0'.repeat(64), at: '' });
  });

  test('is the last row', async () => {
    const engine = await openScratch();
    await appendRows(engine, [ENTER_ROW, ENTER_ROW]);

    const head = await engine.read(readHead);
    const last = await engine.read((tx) =>
      tx.get('SELECT chain_hash, at FROM audit_rows WHERE position = 2'),
    );

    expect(head).toEqual({ position: 2, chainHash: last?.chain_hash, at: last?.at, isTransferred: false });
    expect(head.at).toBe('2026-01-01T00:00:00.000Z');
  });
});

test('where nothing is signed, rows are added and there is no head in the file', async () => {
  const engine = await openScratch();

  await appendRows(engine, [ENTER_ROW]);
  const heads = await engine.read(async (tx) => [
    ...(await tx.all('SELECT * FROM log_heads')),
    ...(await tx.all('SELECT * FROM checkpoints')),
    ...(await tx.all('SELECT * FROM log')),
  ]);

  expect(Object.isFrozen(UNSIGNED)).toBe(true);
  expect(heads).toEqual([]);
});
