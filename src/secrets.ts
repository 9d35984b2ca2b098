const { raw } = String;

/** Not inside a longer word. A line end that was written as `\n` is not a word, though it ends in a letter. */
const START = raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))`;
const END = raw`(?![\w-])`;

/** Each repetition is bounded, far above the longest form seen, or cannot meet another start: time is linear in the text. */
const KINDS = [
  begins('private key', 'AGE-SECRET-KEY-1', '[A-Z0-9]{50,70}'),
  begins('private key', raw`PRIVATE\+KEY\+`, raw`[^\s+]{1,256}\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{40,64}`, ''),
  begins('AWS key', 'A(?:KI|SI|BI)A', `[A-Z2-7]{16}${END}`),
  begins('GitHub token', 'gh[pousr]_', '[A-Za-z0-9]{36,255}', ''),
  begins('GitHub token', 'github_pat_', raw`\w{40,255}`, ''),
  begins('GitLab token', 'gl(?:pat|ptt|oas|dt|rt|rtr|cbt|ft|imt|agent|soat|ffct)-', '[A-Za-z0-9_.-]{20,255}'),
  begins('Slack token', raw`xox(?:e\.xox)?[abceoprs]-`, '[A-Za-z0-9-]{10,255}'),
  begins('Slack token', 'xapp-', '[0-9]-[A-Za-z0-9-]{10,255}'),
  begins('Stripe key', '[rs]k_(?:live|test)_', '[A-Za-z0-9]{16,255}'),
  begins('Stripe key', 'whsec_', '[A-Za-z0-9+/=]{24,255}'),
  begins('Google key', 'AIza', raw`[\w-]{35}`, ''),
  begins('Google key', 'GOCSPX-', raw`[\w-]{28}`, ''),
  begins('Google token', raw`ya29\.`, raw`[\w-]{30,1024}`),
  begins('Anthropic key', 'sk-ant-', raw`[\w-]{20,255}`),
  begins('OpenAI key', 'sk-(?:proj|svcacct|admin)-', raw`[\w-]{20,255}`),
  begins('OpenAI key', 'sk-[A-Za-z0-9]{16}', `[A-Za-z0-9]{16,239}${END}`),
  begins('OpenRouter key', 'sk-or-v1-', '[0-9a-f]{64}'),
  begins('Groq key', 'gsk_', '[A-Za-z0-9]{40,255}'),
  begins('xAI key', 'xai-', '[A-Za-z0-9]{60,255}'),
  begins('npm token', 'npm_', `[A-Za-z0-9]{36}${END}`),
  begins('PyPI token', 'pypi-', raw`AgE[\w-]{40,1024}`),
  begins('Hugging Face token', 'hf_', '[A-Za-z0-9]{30,255}'),
  begins('Docker token', 'dckr_', raw`[a-z]{3}_[\w-]{20,255}`),
  begins('SendGrid key', raw`SG\.`, raw`[\w-]{16,32}\.[\w-]{32,64}`),
  begins('Twilio key', 'SK[0-9a-f]{8}', `[0-9a-f]{24}${END}`),
  begins('DigitalOcean token', 'do[opr]_v1_', '[0-9a-f]{64}'),
  // Its first part is a number in base 64, which begins with one of these.
  begins(
    'Discord token',
    raw`[MNO][DTjz][AEIMQUYcgk][\w-]{16}`,
    raw`[\w-]{4,11}\.[\w-]{6}\.[\w-]{27,45}${END}`,
  ),
  begins('Vault token', raw`hv[sbr]\.`, raw`[\w-]{24,512}`),
  begins('Shopify token', 'shp(?:at|ca|pa|ss)_', `[0-9A-Fa-f]{32}${END}`),
  begins('Databricks token', 'dapi[0-9a-f]{8}', '[0-9a-f]{24}'),
  begins('Linear key', 'lin_api_', '[A-Za-z0-9]{32,255}'),
  kind(
    'AWS secret',
    '[sS](?:ecret|ECRET)_?[aA](?:ccess|CCESS)',
    raw`(?<=secret_?access_?key["']?\s{0,3}[:=>]\s{0,3}["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    'i',
  ),
  kind('Slack webhook', raw`hooks\.slack`, raw`(?<=hooks\.slack(?:-gov)?\.com/)[A-Za-z0-9_/-]{20,255}`),
  // Only where a run of its characters begins: from each hyphen it would run to the end of the text.
  kind('JWT', 'eyJ', raw`(?:(?<![\w\\-])|(?<=\\[nrt]))[\w-]{10,}\.eyJ[\w-]{8,}\.[\w-]{8,}`),
  kind('Azure key', '(?:ccount|ccess)Key=', '(?<=(?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{40,88}={0,2}'),
  kind('Telegram token', ':AA', raw`(?<![0-9])[0-9]{8,10}:AA[\w-]{33}${END}`),
  kind('Discord webhook', 'webhooks/', raw`(?<=discord(?:app)?\.com/api/webhooks/)\d{10,25}/[\w-]{40,100}`),
  kind(
    'password',
    raw`://[^\s/?#@]{1,256}@`,
    // A name in braces or in capitals behind a dollar is a placeholder for a password, and asterisks were a password.
    raw`(?<=[A-Za-z]://[^\s/?#:@"'<>]{0,128}:)(?!(?:\$\{?[A-Z_]{2,64}\}?|\$?\{{1,2}[^\s{}@]{1,64}\}{1,2}|\*{1,64}|%s)@)[^\s/?#"'<>@]{1,256}(?=@)`,
  ),
  kind(
    'credentials',
    '[uU](?:thorization|THORIZATION)',
    raw`(?<=authorization\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?(?:bearer|basic|token|digest)\s{1,3})(?![$<{*[])[^\s"'\\<>,;)\x60]{4,4096}`,
    'i',
  ),
];

/** A secret that is known by its beginning. */
function begins(name: string, prefix: string, rest: string, before = START) {
  return kind(name, prefix, before + prefix + rest);
}

/**
 * A form that only a secret has. The pattern matches the secret alone: what names it, such as `AccountKey=`, may stay. The
 * hint is in each text with such a secret and in few others, and quicker to look for.
 */
function kind(name: string, hint: string, pattern: string, flags = '') {
  return { name, hint: new RegExp(hint), pattern: new RegExp(pattern, `g${flags}`) };
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

/** What whoever sent secrets is told, given what was taken out and where. */
export function redactedNote(notes: readonly string[]): string {
  return `Colibri does not store secrets. Before storing this call, it removed: ${notes.join('; ')}. Do not send them again.`;
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
    clean = redactKeyBlocks(clean, found);
    for (const { name, hint, pattern } of KINDS) {
      if (!hint.test(clean)) continue;
      clean = clean.replace(pattern, (secret) => {
        found(name);
        return mark(name, secret.length);
      });
    }
    if (clean === before) return clean;
  }
  return mark('secrets', text.length);
}

const PASSES_MAX = 8;

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
