import { keyId } from '../trust/opening.ts';
import { readView } from '../trust/own-log.ts';
import { command, UsageError } from './command.ts';
import { withOwner } from './open.ts';
import { personOf } from './person.ts';

/** Vouches for the key of another machine that signs the same log. */
export const trust = command({
  name: 'trust',
  usage: 'KEY',
  summary: 'vouch for the key of another machine of your team',
  details:
    'On a team’s database every machine signs with a key of its own, which joins the log by itself. Until somebody vouches for it, "colibri verify" says so. KEY is the whole key, or its id as "colibri verify" shows it. Compare it with what the other machine shows before you vouch for it; the call is recorded in the log as owner_trust.',
  positionals: [1, 1],
  async run({ positionals: [wanted = ''], out, config }) {
    const key = await withOwner(config, out, async ({ call, storage, signer }) => {
      const { heads } = await storage.read(readView);
      const found = heads.filter(({ key }) => key === wanted || keyId(key) === wanted);
      const [head] = found;
      if (head === undefined || found.length > 1) {
        const known = heads.map((one) => keyId(one.key)).join(', ') || 'none';
        throw new UsageError(`"${wanted}" is not one key that signed this log. Those that did: ${known}.`);
      }
      const { refused } = signer.state();
      if (refused !== undefined) throw new Error(refused);
      const answer = await call('owner_trust', { key: head.key }, personOf(config));
      if (!answer.ok) throw new Error(answer.error.message);
      return head.key;
    });
    return out.data({ trusted: key }, () => out.line(`The key ${key} is vouched for from now on.`));
  },
});
