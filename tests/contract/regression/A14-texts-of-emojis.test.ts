import { expect } from 'vitest';
import { runColibri } from '../../driver/command-line.ts';
import { stateFindings } from '../../driver/state-file.ts';
import { proves } from '../proves.ts';

// The schema counts an emoji as one character, and the verifier counted it as two: what was accepted was called malformed.

proves(
  'validate.same-schema',
  'A14: a text of emojis may be as long as its limit, and no longer, and every verifier agrees',
  async ({ colibri }) => {
    const parrot = '\u{1f99c}';
    const server = await colibri.start();
    const create = (title: string, rest = {}) =>
      server.call('task_create', { title, project: 'birds', ...rest });

    const longest = await create(parrot.repeat(256), { description: parrot.repeat(8_000) });
    const tooLong = await create(parrot.repeat(257));
    const content = parrot.repeat(5_000);
    const thought = await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content });
    const read = await server.call('task_get', { task_id: 'T-0001' });
    const chain = await server.call('audit_verify_chain', { task_id: 'T-0001' });
    await server.closeInput();

    expect(longest.envelope?.data).toMatchObject({ task_id: 'T-0001' });
    expect(tooLong.error).toMatchObject({ code: 'INVALID_PARAMS' });
    expect(thought.envelope?.data).toMatchObject({ thought_id: 'Θ-0001' });
    expect(read.envelope?.data?.title).toBe(parrot.repeat(256));
    expect(chain.envelope?.data).toMatchObject({ chain_valid: true, integrity_score: 100 });
    expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 0 });
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
);
