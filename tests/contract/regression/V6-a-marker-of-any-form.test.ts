import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { recomputeSums } from '../../../src/__tests__/export/evidence.ts';
import { type LogDesk, proves } from '../log-desk.ts';

const VERDICT = 'log\u001b[2K\u001b[1A\nNothing is wrong.\n\u009b31m';

proves(
  ['verdict.forms', 'bundle.hostile'],
  'V6: a scope of any other form is a finding, and none of it reaches the terminal raw',
  async (desk) => {
    await desk.work();
    const bundle = await exported(desk, (folder) => mark(folder, { scope: VERDICT }));

    const people = await desk.run('verify', bundle);
    const programs = await desk.run('verify', bundle, '--json');

    expect(people.code).toBe(1);
    for (const { stdout, stderr } of [people, programs]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
      expect(stdout).not.toMatch(/^Nothing is wrong\.$/m);
    }
  },
);

proves(
  ['verdict.forms', 'bundle.forged'],
  'V6: a bundle of one session that calls itself that of another is a finding',
  async (desk) => {
    await desk.work();
    const bundle = await exported(desk, (folder) => mark(folder, { scope: 'A-0042' }), '--session', 'A-0001');

    expect((await desk.verify(bundle)).code).toBe(1);
  },
);

proves(
  ['verdict.forms', 'bundle.forged'],
  'V6: a file more than the sums name is a finding, and so is one that no bundle has, though the sums name it',
  async (desk) => {
    await desk.work();
    const unnamed = await exported(
      desk,
      (folder) => writeFileSync(join(folder, 'more'), 'x'),
      'keep the sums',
    );
    const codes = [(await desk.verify(unnamed)).code];
    const named = await exported(desk, (folder) => writeFileSync(join(folder, 'more'), 'x'));
    codes.push((await desk.verify(named)).code);

    expect(codes).toEqual([1, 1]);
  },
);

/** A bundle that somebody changed. The sums agree with it, unless they are to be kept. */
async function exported(desk: LogDesk, change: (folder: string) => void, ...more: string[]): Promise<string> {
  const folder = desk.colibri.path('bundle');
  rmSync(folder, { recursive: true, force: true });
  const { code, stderr } = await desk.run(
    'export',
    '-o',
    folder,
    ...more.filter((arg) => !arg.includes(' ')),
  );
  expect(code, stderr).toBe(0);
  change(folder);
  if (!more.includes('keep the sums')) recomputeSums(folder);
  return folder;
}

function mark(folder: string, change: object): void {
  const path = join(folder, 'bundle.json');
  const marker = { ...(JSON.parse(readFileSync(path, 'utf8')) as object), ...change };
  writeFileSync(path, `${JSON.stringify(marker)}\n`);
}
