import { describe, expect, test } from 'vitest';
import { ColibriError, ERRORS, type ErrorCode } from '../../errors.ts';
import { codeOf, fail, isFailure, succeed } from '../../middleware/envelope.ts';
import type { ToolFamily } from '../../tool.ts';

const PATTERN_A: readonly ToolFamily[] = ['system', 'trail', 'skills'];
const PATTERN_B: readonly ToolFamily[] = ['tasks', 'proof'];
const EVERY = [...PATTERN_A, ...PATTERN_B];

const notFound = new ColibriError('ERR_TASK_NOT_FOUND', 'No task T-0009.', { nearest: ['T-0001'] });

describe('success', () => {
  test.each([[{ a: 1 }], [[]], ['text'], [0], [null]])('is ok true with the data as it is: %j', (data) => {
    expect(succeed(data)).toStrictEqual({ ok: true, data });
  });
});

describe('an error of a domain', () => {
  test.each(PATTERN_A)('is a failure whose message starts with its code, in %s', (family) => {
    expect(fail(family, notFound)).toStrictEqual({
      ok: false,
      error: {
        code: 'HANDLER_ERROR',
        message: 'ERR_TASK_NOT_FOUND: No task T-0009.',
        details: { nearest: ['T-0001'] },
      },
    });
  });

  test.each(PATTERN_B)('is a value inside a success, in %s', (family) => {
    expect(fail(family, notFound)).toStrictEqual({
      ok: true,
      data: {
        ok: false,
        error: { code: 'ERR_TASK_NOT_FOUND', message: 'No task T-0009.', details: { nearest: ['T-0001'] } },
      },
    });
  });

  test.each(EVERY)('has no details where there are none to give, in %s', (family) => {
    const envelope = fail(family, new ColibriError('ERR_STORAGE_FULL', 'Full.'));

    expect(JSON.stringify(envelope)).not.toContain('details');
  });
});

describe('an error of the stages', () => {
  test.each(EVERY)('is a failure under its own code in every family: %s', (family) => {
    for (const code of ['INVALID_PARAMS', 'AUDIT_ENTER_FAILED', 'HANDLER_ERROR'] as const) {
      expect(fail(family, new ColibriError(code, 'Why.', { issues: [] }))).toStrictEqual({
        ok: false,
        error: { code, message: 'Why.', details: { issues: [] } },
      });
    }
  });

  test.each(EVERY)('is a failure with its code in front where storage or the start failed: %s', (family) => {
    for (const code of [
      'ERR_INIT_FAILED',
      'ERR_STORAGE_FULL',
      'ERR_STORAGE_BUSY',
      'ERR_STORAGE_UNCERTAIN',
    ] as const) {
      expect(fail(family, new ColibriError(code, 'Why.'))).toStrictEqual({
        ok: false,
        error: { code: 'HANDLER_ERROR', message: `${code}: Why.` },
      });
    }
  });

  test.each(EVERY)('is a failure with its code in front when the mode forbids it: %s', (family) => {
    expect(fail(family, new ColibriError('TOOL_NOT_ADMITTED', 'Not here.', { mode: 'TEST' }))).toStrictEqual({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: 'TOOL_NOT_ADMITTED: Not here.', details: { mode: 'TEST' } },
    });
  });
});

describe('any other error', () => {
  test.each(EVERY)('is HANDLER_ERROR without details or stack, in %s', (family) => {
    const error = Object.assign(new TypeError('x is not a function'), { details: { secret: 1 } });

    expect(fail(family, error)).toStrictEqual({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: 'x is not a function' },
    });
  });

  test('is cut at four thousand characters, and never through a character', () => {
    const envelope = fail('system', new Error(`${'x'.repeat(3_999)}🐦 and more`));

    expect(envelope).toStrictEqual({
      ok: false,
      error: { code: 'HANDLER_ERROR', message: `${'x'.repeat(3_999)}\ufffd` },
    });
  });
});

describe('isFailure', () => {
  test.each(EVERY)('knows a failure in the pattern of %s, and a success', (family) => {
    expect(isFailure(fail(family, notFound))).toBe(true);
    for (const data of [{ a: 1 }, [], 'text', 0, null, undefined])
      expect(isFailure(succeed(data))).toBe(false);
  });
});

describe('codeOf', () => {
  test('is the precise code, whichever pattern carries it', () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      expect(codeOf(new ColibriError(code, ''))).toBe(code);
    }
  });

  test('is HANDLER_ERROR for what nobody foresaw', () => {
    expect(codeOf(new Error('?'))).toBe('HANDLER_ERROR');
    expect(codeOf(Object.assign(new Error('?'), { code: 'ENOENT' }))).toBe('HANDLER_ERROR');
  });
});
