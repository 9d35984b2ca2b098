import type { Random } from './random.ts';

/** One made-up secret of each known kind. Built from parts, so that no scanner takes this file for a leak. */
export interface Secret {
  readonly kind: string;
  /** What must be found nowhere. */
  readonly secret: string;
  /** How it comes along: alone, or behind what names it. */
  readonly text: string;
}

export function allSecrets(random: Random): Secret[] {
  const some = (alphabet: string, count: number) =>
    Array.from({ length: count }, () => random.pick([...alphabet])).join('');
  const word = (count: number) => some(WORD, count);
  const hex = (count: number) => some(HEX, count);
  const plain = (kind: string, ...parts: string[]) => behind(kind, '', parts.join(''), '');
  const pem = (label: string) => {
    const body = Array.from({ length: 4 }, () => some(`${WORD}+/`, 64)).join('\n');
    return `-----${`BEGIN ${label}`}-----\n${body}\n-----${`END ${label}`}-----`;
  };
  return [
    plain('private key', pem(['RSA PRIVATE', 'KEY'].join(' '))),
    plain('private key', pem(['OPENSSH PRIVATE', 'KEY'].join(' '))),
    plain('private key', pem(['PRIVATE', 'KEY'].join(' ')).replaceAll('\n', '\\n')),
    plain('AWS key', 'AKI', 'A', some(BASE32, 16)),
    behind('AWS secret', 'aws_secret_access_key = ', some(`${WORD}+/`, 40), ''),
    plain('GitHub token', 'gh', 'p_', word(36)),
    plain('GitHub token', 'gh', 'o_', word(36)),
    plain('GitHub token', 'gh', 's_', word(36)),
    plain('GitHub token', 'github', '_pat_', word(22), '_', word(59)),
    plain('GitLab token', 'glp', 'at-', word(20)),
    plain('Slack token', 'xox', 'b-', some(DIGITS, 12), '-', some(DIGITS, 12), '-', word(24)),
    behind('Slack webhook', 'https://hooks.slack.com/', `services/T${word(9)}/B${word(9)}/${word(24)}`, ''),
    plain('Stripe key', 'sk', '_live_', word(24)),
    plain('Google key', 'AI', 'za', word(35)),
    plain('OpenAI key', 's', 'k-', word(48)),
    plain('OpenAI key', 's', 'k-proj-', word(60)),
    plain('Anthropic key', 's', 'k-ant-api03-', word(80)),
    plain('npm token', 'np', 'm_', word(36)),
    plain('PyPI token', 'py', 'pi-AgEIcHlwaS5vcmc', word(60)),
    plain('Hugging Face token', 'h', 'f_', word(34)),
    plain('JWT', 'ey', 'J', word(20), '.ey', 'J', word(40), '.', word(43)),
    behind('Azure key', 'AccountName=a;AccountKey=', `${some(`${WORD}+/`, 86)}==`, ';EndpointSuffix=core'),
    plain('SendGrid key', 'S', 'G.', word(22), '.', word(43)),
    plain('Twilio key', 'S', 'K', hex(32)),
    plain('Telegram token', some('123456789', 9), ':', 'AA', word(33)),
    plain('DigitalOcean token', 'do', 'p_v1_', hex(64)),
    plain('Discord token', 'M', 'Tk', word(21), '.', word(6), '.', word(27)),
    behind('Discord webhook', 'https://discord.com/api/webhooks/', `${some(DIGITS, 18)}/${word(68)}`, ''),
    behind('password', 'postgres://app:', word(24), '@db.example/main'),
    behind('credentials', 'Authorization: Bearer ', word(40), ''),
    behind('credentials', 'authorization: Basic ', `${word(24)}==`, ''),
  ];
}

const DIGITS = '0123456789';
const HEX = `${DIGITS}abcdef`;
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const WORD = `${DIGITS}abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ`;

function behind(kind: string, before: string, secret: string, after: string): Secret {
  return { kind, secret, text: `${before}${secret}${after}` };
}
