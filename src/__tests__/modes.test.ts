import { describe, expect, test } from 'vitest';
import { capabilitiesFor, type RuntimeMode } from '../modes.ts';
import type { Tool } from '../tool.ts';

describe('capabilitiesFor', () => {
  const admits = (mode: RuntimeMode, name: string, effect: Tool['effect']) =>
    capabilitiesFor(mode).admits({ name, effect });

  test.each([
    ['FULL', 'file'],
    ['READONLY', 'file'],
    ['TEST', 'memory'],
    ['MINIMAL', 'none'],
  ] as const)('%s keeps its records in: %s', (mode, database) => {
    expect(capabilitiesFor(mode).database).toBe(database);
  });

  test.each(['FULL', 'TEST'] as const)('%s admits what reads and what writes', (mode) => {
    expect(admits(mode, 'task_get', 'reads')).toBe(true);
    expect(admits(mode, 'task_create', 'writes')).toBe(true);
  });

  test('READONLY admits what reads and nothing that writes', () => {
    expect(admits('READONLY', 'task_get', 'reads')).toBe(true);
    expect(admits('READONLY', 'task_create', 'writes')).toBe(false);
  });

  test('MINIMAL admits the two system tools and nothing else', () => {
    expect(admits('MINIMAL', 'server_ping', 'reads')).toBe(true);
    expect(admits('MINIMAL', 'server_health', 'reads')).toBe(true);
    expect(admits('MINIMAL', 'skill_list', 'reads')).toBe(false);
    expect(admits('MINIMAL', 'task_create', 'writes')).toBe(false);
  });
});
