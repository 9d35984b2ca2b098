import { expect, test } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { Playground } from '../../driver/playground.ts';

test('A6: doctor warns of a name that several running processes share, and of our own', async () => {
  const colibri = new Playground();
  const agents = async (env: Record<string, string> = {}) => {
    const { stdout, code } = await runColibri(colibri, ['doctor', '--json'], { env });
    const checks = JSON.parse(stdout) as { what: string; state: string; found: string; fix?: string }[];
    expect(code).toBe(0);
    return checks.filter(({ what, state }) => state === 'note' && /agents|settings/.test(what));
  };
  try {
    const windows = [
      await colibri.start({ clientName: 'editor' }),
      await colibri.start({ clientName: 'editor' }),
      await colibri.start({ clientName: 'other' }),
    ];
    for (const window of windows) await window.call('server_ping');

    const shared = await agents();
    await windows[1]?.closeInput();
    const alone = await agents();
    const ours = await colibri.start({ clientName: 'colibri' });
    await ours.call('server_ping');

    expect(shared).toEqual([
      {
        what: 'agents',
        state: 'note',
        found: '2 running processes are recorded as editor',
        fix: expect.stringContaining('COLIBRI_AGENT_ID'),
      },
    ]);
    expect(alone).toEqual([]);
    expect((await agents()).map(({ found }) => found)).toEqual([
      'an agent is recorded as colibri, which is the name of this server',
    ]);
    expect((await agents({ COLIBRI_AGENT_ID: 'Colibri' })).map(({ what }) => what)).toEqual([
      'settings',
      'agents',
    ]);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
});
