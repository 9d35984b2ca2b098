import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

type Results = Record<
  string,
  { readonly machine: object; readonly rows: readonly { readonly id: string }[] }
>;

/** What the design sets a bar for. */
const BARS = [
  ...['cold-start-initialize', 'cold-start-call', 'read', 'write'],
  ...['in-flight-task_get', 'in-flight-task_create', 'in-flight-task_update', 'in-flight-thought_record'],
  ...['growth-task_create', 'growth-task_update', 'growth-task_next_actions', 'growth-thought_record'],
  ...[
    'search',
    'verify-all',
    'verify-memory',
    'start-at-size',
    'finalize',
    'wait',
    'memory-start',
    'memory-calls',
    'memory-unread',
  ],
  ...['tools-list', 'disk-read', 'disk-change', 'disk-thought', 'disk-task'],
  ...['package-own', 'package-installed', 'package-count'],
  ...['postgres-write', 'postgres-in-flight', 'postgres-far'],
  ...['rivals-in-flight', 'rivals-lost', 'rivals-two', 'rivals-two-busy', 'rivals-two-first'],
];

describe('the benchmark', () => {
  test('measures a section beside its reference, and gives a verdict as JSON', () => {
    const out = join(temporaryFolder(), 'results.json');

    const { status, stdout, stderr } = bench('run.mjs', '--quick', '--out', out, 'tools-list');
    const results: Results = JSON.parse(readFileSync(out, 'utf8'));

    expect(status, stderr).toBe(0);
    expect(stdout).toContain('tools/list, 14 tools');
    expect(Object.keys(results)).toEqual(['tools-list']);
    expect(results['tools-list']).toMatchObject({ quick: true, machine: { node: process.version } });
    expect(results['tools-list']?.rows).toEqual([
      expect.objectContaining({
        id: 'tools-list',
        unit: 'tokens',
        reference: expect.any(Number),
        p50: expect.any(Number),
        value: expect.any(Number),
        limit: 2_900,
        sense: 'at most',
        verdict: expect.stringMatching(/^(met|missed)$/),
      }),
    ]);
  });

  test('refuses a section that does not exist, and names those that do', () => {
    const { status, stderr } = bench('run.mjs', '--quick', 'speed');

    expect(status).not.toBe(0);
    expect(stderr).toContain('no section "speed"; there are cold-start, calls, verify');
  });
});

describe('the published results', () => {
  const results: Results = JSON.parse(readFileSync(join(ROOT, 'bench', 'results.json'), 'utf8'));

  test('have a row for every bar', () => {
    const rows = Object.values(results).flatMap((section) => section.rows);

    expect(rows.map(({ id }) => id).sort()).toEqual([...BARS].sort());
  });

  test('are what docs/performance.md and its plots show', () => {
    const { status, stderr } = bench('document.mjs', '--check');

    expect(stderr).toBe('');
    expect(status).toBe(0);
  });
});

function bench(script: string, ...args: string[]) {
  return spawnSync(process.execPath, [join('bench', script), ...args], { cwd: ROOT, encoding: 'utf8' });
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
