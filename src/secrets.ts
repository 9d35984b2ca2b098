/** Not inside a longer word. A line end that was written as `\n` is not a word, though it ends in a letter. */
const START = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))`;
/** The same for a pattern that would run from each hyphen to the end of the text: only where such a run begins. */
const RUN_START = String.raw`(?:(?<![A-Za-z0-9_\\-])|(?<=\\[nrt]))`;
const END = '(?![A-Za-z0-9_-])';

/**
 * Every repetition is bounded or cannot run into another start of the same pattern, so time grows with the length of the
 * text and no faster. A bound is well above the longest form seen.
 */
const KINDS = [
  kind('private key', 'AGE-SECRET', `${START}AGE-SECRET-KEY-1[A-Z0-9]{50,70}`),
  kind(
    'private key',
    'PRIVATE\\+KEY',
    String.raw`PRIVATE\+KEY\+[^\s+]{1,256}\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{40,64}`,
  ),
  kind('AWS key', 'A(?:KI|SI|BI)A', `${START}A(?:KI|SI|BI)A[A-Z2-7]{16}${END}`),
  kind(
    'AWS secret',
    '[sS](?:ecret|ECRET)_?[aA](?:ccess|CCESS)',
    String.raw`(?<=secret_?access_?key["']?\s{0,3}[:=>]\s{0,3}["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    'i',
  ),
  kind('GitHub token', 'gh[pousr]_', 'gh[pousr]_[A-Za-z0-9]{36,255}'),
  kind('GitHub token', 'github_pat_', String.raw`github_pat_\w{40,255}`),
  kind(
    'GitLab token',
    'gl[a-z]{2,5}-',
    `${START}gl(?:pat|ptt|oas|dt|rt|rtr|cbt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{20,255}`,
  ),
  kind('Slack token', 'xox', String.raw`${START}xox(?:e\.xox)?[abceoprs]-[A-Za-z0-9-]{10,255}`),
  kind('Slack token', 'xapp-', `${START}xapp-[0-9]-[A-Za-z0-9-]{10,255}`),
  kind('Slack webhook', 'hooks\\.slack', String.raw`(?<=hooks\.slack(?:-gov)?\.com/)[A-Za-z0-9_/-]{20,255}`),
  kind('Stripe key', '[rs]k_(?:live|test)', `${START}[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}`),
  kind('Stripe key', 'whsec_', `${START}whsec_[A-Za-z0-9+/=]{24,255}`),
  kind('Google key', 'AIza', 'AIza[A-Za-z0-9_-]{35}'),
  kind('Google key', 'GOCSPX-', 'GOCSPX-[A-Za-z0-9_-]{28}'),
  kind('Google token', 'ya29\\.', String.raw`${START}ya29\.[A-Za-z0-9_-]{30,1024}`),
  kind('Anthropic key', 'sk-ant-', `${START}sk-ant-[A-Za-z0-9_-]{20,255}`),
  kind('OpenAI key', 'sk-[A-Za-z0-9_-]{16}', `${START}sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,255}`),
  kind('OpenAI key', 'sk-[A-Za-z0-9]{16}', `${START}sk-[A-Za-z0-9]{32,255}${END}`),
  kind('OpenRouter key', 'sk-or-', `${START}sk-or-v1-[0-9a-f]{64}`),
  kind('Groq key', 'gsk_', `${START}gsk_[A-Za-z0-9]{40,255}`),
  kind('xAI key', 'xai-', `${START}xai-[A-Za-z0-9]{60,255}`),
  kind('npm token', 'npm_', `${START}npm_[A-Za-z0-9]{36}${END}`),
  kind('PyPI token', 'pypi-', `${START}pypi-AgE[A-Za-z0-9_-]{40,1024}`),
  kind('Hugging Face token', 'hf_', `${START}hf_[A-Za-z0-9]{30,255}`),
  kind('Docker token', 'dckr_', `${START}dckr_[a-z]{3}_[A-Za-z0-9_-]{20,255}`),
  kind('JWT', 'eyJ', String.raw`${RUN_START}[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
  kind('Azure key', '(?:ccount|ccess)Key=', '(?<=(?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{40,88}={0,2}'),
  kind('SendGrid key', 'SG\\.', String.raw`${START}SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}`),
  kind('Twilio key', 'SK[0-9a-f]{8}', `${START}SK[0-9a-f]{32}${END}`),
  kind('Telegram token', ':AA', `(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}${END}`),
  kind('DigitalOcean token', 'do[opr]_v1_', `${START}do[opr]_v1_[0-9a-f]{64}`),
  // Its first part is a number in base 64, which begins with one of these.
  kind(
    'Discord token',
    '[MNO][DTjz][AEIMQUYcgk][A-Za-z0-9_-]{16}',
    String.raw`${START}[MNO][DTjz][AEIMQUYcgk][A-Za-z0-9_-]{20,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}${END}`,
  ),
  kind(
    'Discord webhook',
    'api/webhooks/',
    String.raw`(?<=discord(?:app)?\.com/api/webhooks/)[0-9]{10,25}/[A-Za-z0-9_-]{40,100}`,
  ),
  kind('Vault token', 'hv[sbr]\\.', String.raw`${START}hv[sbr]\.[A-Za-z0-9_-]{24,512}`),
  kind('Shopify token', 'shp[a-z]{2}_', `${START}shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}${END}`),
  kind('Databricks token', 'dapi[0-9a-f]{8}', `${START}dapi[0-9a-f]{32}`),
  kind('Linear key', 'lin_api_', `${START}lin_api_[A-Za-z0-9]{32,255}`),
  kind(
    'password',
    '://[^\\s/?#@]{1,256}@',
    // A name in braces or in capitals behind a dollar is a placeholder for a password, and asterisks were a password.
    String.raw`(?<=[A-Za-z]://[^\s/?#:@"'<>]{0,128}:)(?!(?:\$\{?[A-Z_]{2,64}\}?|\$?\{{1,2}[^\s{}@]{1,64}\}{1,2}|\*{1,64}|%s)@)[^\s/?#"'<>@]{1,256}(?=@)`,
  ),
  kind(
    'credentials',
    '[uU](?:thorization|THORIZATION)',
    String.raw`(?<=authorization\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?(?:bearer|basic|token|digest)\s{1,3})(?![$<{*[])[^\s"'\\<>,;)\x60]{4,4096}`,
    'i',
  ),
];

/**
 * A form that only a secret has. The pattern matches the secret alone: what names it, such as `AccountKey=`, may stay. The
 * hint is in each text with such a secret and in few others, and quicker to look for.
 */
function kind(name: string, hint: string, source: string, flags = '') {
  return { name, hint: new RegExp(hint), pattern: new RegExp(source, `g${flags}`) };
}

/** Hints that begin alike are grouped: the engine then passes most characters after one comparison. */
const ANY_HINT = new RegExp(anyOf(['-----BEGIN', ...KINDS.map(({ hint }) => hint.source)]));

function anyOf(hints: readonly string[]): string {
  const byFirst = new Map<string, string[]>();
  for (const hint of hints) {
    // A class or a group is taken whole, and is a beginning of its own.
    const [first = ''] = /^(?:\[[^\]]*\]|\(.*?\)|.)/.exec(hint) ?? [];
    byFirst.set(first, [...(byFirst.get(first) ?? []), hint.slice(first.length)]);
  }
  return [...byFirst].map(([first, rests]) => `${first}(?:${rests.join('|')})`).join('|');
}

/** The shortest text that can hold a secret is a URL with a password of one character. */
const CHARS_MIN = 'a://:b@'.length;

/** Whether a closer look is worth it. No for nearly every text there is; what it lets pass holds no known secret. */
export function mayHoldSecret(text: string): boolean {
  return text.length >= CHARS_MIN && ANY_HINT.test(text);
}

/**
 * The text with each known secret replaced by a mark, `[redacted: GitHub token]`. A mark is never longer than what it
 * replaces, so a text that kept a limit keeps it. Doing it twice changes nothing more. `found` is told of each kind.
 */
export function redactText(text: string, found: (kind: string) => void = () => undefined): string {
  if (!mayHoldSecret(text)) return text;
  let clean = text;
  // What one pass takes out can set free what was glued to it. No honest text needs many passes.
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const before = clean;
    clean = redactOnce(clean, found);
    if (clean === before) return clean;
  }
  return mark('secrets', text.length);
}

const PASSES_MAX = 8;

function redactOnce(text: string, found: (kind: string) => void): string {
  let clean = redactKeyBlocks(text, found);
  for (const { name, hint, pattern } of KINDS) {
    if (!hint.test(clean)) continue;
    clean = clean.replace(pattern, (secret) => {
      found(name);
      return mark(name, secret.length);
    });
  }
  return clean;
}

function mark(kind: string, length: number): string {
  const whole = `[redacted: ${kind}]`;
  return whole.length <= length ? whole : '***'.slice(0, length);
}

const BLOCK_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const BLOCK_END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y;
/** A block has lines of base 64 near its top; a sentence that only talks about one has not. */
const BLOCK_LINE = /(?:^\s?|[\n\r][ \t]{0,8}|\\[nr])[A-Za-z0-9+/]{20}/;
const BLOCK_HEAD_CHARS_MAX = 400;

/** Key blocks, cut by hand: an expression that looks for an end that is not there would look again from each beginning. */
function redactKeyBlocks(text: string, found: (kind: string) => void): string {
  let clean = '';
  let kept = 0;
  for (const begin of text.matchAll(BLOCK_BEGIN)) {
    const inside = begin.index + begin[0].length;
    const dashes = text.indexOf('-----', inside);
    const body = text.slice(inside, dashes === -1 ? text.length : dashes);
    if (begin.index < kept || !BLOCK_LINE.test(body.slice(0, BLOCK_HEAD_CHARS_MAX))) continue;
    BLOCK_END.lastIndex = inside + body.length;
    const end = BLOCK_END.test(text) ? BLOCK_END.lastIndex : inside + body.length;
    found('private key');
    clean += text.slice(kept, begin.index) + mark('private key', end - begin.index);
    kept = end;
  }
  return clean + text.slice(kept);
}
