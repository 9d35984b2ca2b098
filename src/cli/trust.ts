import { keyId } from '../trust/opening.ts';
import { readLogKeys, readView } from '../trust/own-log.ts';
import { command, UsageError } from './command.ts';
import { withOwner } from './open.ts';

/** Vouches for the key of another machine that signs the same log. */
export const trust = command({
  name: 'trust',
  usage: 'KEY',
  summary: 'vouch for the key of another machine in your team',
  details:
    'In a team’s database, every machine signs with its own key, which joins the log automatically. "colibri verify" points out keys that nobody has vouched for. KEY is the whole key, or its id as "colibri verify" shows it. Before you vouch for a key, compare it with what the other machine shows. The call is recorded in the log as owner_trust.',
  positionals: [1, 1],
  async run({ positionals: [wanted = ''], out, config }) {
    const { trusted, isNew } = await withOwner(config, out, async ({ act, storage, signer }) => {
      const { heads } = await storage.read(readView);
      const found = heads.filter(({ key }) => key === wanted || keyId(key) === wanted);
      const [head] = found;
      if (head === undefined || found.length > 1) {
        const known = heads.map((one) => keyId(one.key)).join(', ') || 'none';
        throw new UsageError(
          `"${wanted}" does not match exactly one key that signed this log. The keys are: ${known}.`,
        );
      }
      const { refused, keys } = signer.state();
      if (refused !== undefined) throw new Error(refused);
      const vouched = (await storage.read(readLogKeys)).flatMap((one) => (one.vouched ? one.key : []));
      const { key } = head;
      if (vouched.includes(key)) return { trusted: key, isNew: false };
      if (!vouched.includes(keys[0] ?? ''))
        throw new Error(
          `Nobody has vouched for the key of this machine, so it cannot vouch for another. First run "colibri trust ${keyId(keys[0] ?? '')}" on a machine whose key is vouched for.`,
        );
      const said = { key };
      await act('owner_trust', { ...said, signed: signer.sign({ tool: 'owner_trust', args: said }) });
      return { trusted: key, isNew: true };
    });
    const line = isNew ? `You have vouched for the key ${trusted}.` : `The key ${trusted} is vouched for.`;
    return out.data({ trusted }, () => out.line(line));
  },
});
