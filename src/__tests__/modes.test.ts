import { describe, expect, test } from 'vitest';
import { ColibriError } from '../errors.ts';
import { capabilitiesFor, detectMode, MODES, type RuntimeMode, type ToolEffect } from '../modes.ts';

function refusalOf(env: Record<string, string>): ColibriError {
  try {
    detectMode(env);
  } catch (error) {
    if (error instanceof ColibriError) return error;
  }
  throw new Error('it was not refused');
}

describe('detectMode', () => {
  test.each(MODES)('takes %s as it is written', (mode) => {
    expect(detectMode({ COLIBRI_MODE: mode })).toBe(mode);
  });

  test('is FULL when nothing is set', () => {
    expect(detectMode({})).toBe('FULL');
    expect(detectMode({ COLIBRI_MODE: undefined })).toBe('FULL');
  });

  test.each(['full', 'Full', 'FULL ', ' FULL', 'FULL,TEST', 'READ_ONLY', 'constructor', ''])(
    'refuses %j, and says what is allowed',
    (mode) => {
      const error = refusalOf({ COLIBRI_MODE: mode });

      expect(error.code).toBe('ERR_INVALID_MODE');
      expect(error.message).toContain(`COLIBRI_MODE is ${JSON.stringify(mode)}`);
      expect(error.message).toContain('FULL, READONLY, TEST, MINIMAL');
      expect(error.details).toEqual({ variable: 'COLIBRI_MODE', value: mode, allowed: MODES });
    },
  );

  test('refuses the mode of another product even beside a valid one', () => {
    const error = refusalOf({ AMS_MODE: 'TEST', COLIBRI_MODE: 'FULL' });

    expect(error.code).toBe('ERR_CONFIG_INVALID');
    expect(error.message).toMatch(/AMS_MODE is set \(to "TEST"\).*COLIBRI_MODE/);
    expect(error.details).toEqual({ variable: 'AMS_MODE', value: 'TEST' });
  });
});

describe('capabilitiesFor', () => {
  const admits = (mode: RuntimeMode, name: string, effect: ToolEffect) =>
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
