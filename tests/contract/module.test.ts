import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { proves } from './proves.ts';

const SOURCE = textOf('../../src/server.ts');

const ELEVEN = [
  'AuditSink',
  'ColibriServerContext',
  'ColibriToolConfig',
  'ToolEnterEvent',
  'ToolExitEvent',
  'createNoOpAuditSink',
  'createServer',
  'main',
  'registerColibriTool',
  'start',
  'stop',
];

proves(
  'module.exports',
  'src/server.ts exports the eleven names and no other, none of them by default',
  () => {
    const declared = [
      ...SOURCE.matchAll(/^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm),
    ].map(([, name]) => name);
    const listed = [...SOURCE.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
      names.split(',').map((name) => name.trim()),
    );

    expect([...declared, ...listed].filter((name) => name !== '').sort()).toEqual(ELEVEN);
    expect(SOURCE).not.toMatch(/^export default/m);
  },
);

proves('module.cases', 'each case T-1 … T-26 of its contract is named by a test', () => {
  const tests = textOf('../../src/__tests__/server.test.ts');

  const named = new Set([...tests.matchAll(/['"`]T-(\d+)\b/g)].map(([, number]) => Number(number)));

  expect(Array.from({ length: 26 }, (_, i) => i + 1).filter((number) => !named.has(number))).toEqual([]);
});

proves('module.tool-config', 'what registers a tool says whether it mutates, and must', () => {
  const [, fields = ''] = /export interface ColibriToolConfig \{([^}]*)\}/.exec(SOURCE) ?? [];

  expect(fields).toMatch(/\bmutates: boolean/);
});

function textOf(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8');
}
