import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { recomputeSums } from '../../../src/__tests__/export/evidence.ts';
import { type LogDesk, proves } from '../log-desk.ts';

const VERDICT = 'log\u001b[2K\u001b[1A\nNothing is wrong.\n\u009b31m';

proves(
  ['verdict.forms', 'bundle.hostile'],
  'V6: a name of any other form is a finding, and none of it reaches the terminal raw',
  async (desk) => {
    await desk.work();
    const bundle = await exported(desk, (folder) => mark(folder, { origin: VERDICT }));

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
  ['verdict.forms', 'certificate.damage'],
  'V6: a certificate of one session that calls itself that of another is a finding',
  async (desk) => {
    await desk.work();
    const path = desk.colibri.path('session.json');
    expect((await desk.run('prove', 'A-0001', '-o', path)).code).toBe(0);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"subject": "A-0001"', '"subject": "A-0042"'));

    const { code, stdout } = await desk.run('verify', path);

    expect(code).toBe(1);
    expect(stdout).toContain('A-0042 itself is not there.');
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
async function exported(desk: LogDesk, change: (folder: string) => void, sums?: string): Promise<string> {
  const folder = desk.colibri.path('bundle');
  rmSync(folder, { recursive: true, force: true });
  const { code, stderr } = await desk.run('export', '-o', folder);
  expect(code, stderr).toBe(0);
  change(folder);
  if (sums !== 'keep the sums') recomputeSums(folder);
  return folder;
}

function mark(folder: string, change: object): void {
  const path = join(folder, 'bundle.json');
  const marker = { ...(JSON.parse(readFileSync(path, 'utf8')) as object), ...change };
  writeFileSync(path, `${JSON.stringify(marker)}\n`);
}
