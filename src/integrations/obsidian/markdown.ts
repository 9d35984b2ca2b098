/**
 * Text that strangers wrote, as Markdown that only shows it. Without this, a thought could hold a query block, a plug-in's
 * script or a link that loads something, and the vault would run it.
 */
export function inert(text: string): string {
  return text
    .replace(/[\\`*_{}[\]<>#|$%~^=!&]/g, '\\$&')
    .replace(/^(\s*)([-+:]|\d+[.)])/gm, '$1\\$2')
    .replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (c) =>
      c === '\n' || c === '\t' ? c : '\ufffd',
    );
}

/** Several lines of text inside a callout or a quote. */
export function quoted(text: string): string {
  return inert(text)
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

/** YAML front matter. Every JSON value is also YAML, so no value can break out of its line. */
export function frontMatter(fields: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return ['---', ...lines.map(([key, value]) => `${key}: ${JSON.stringify(value)}`), '---'].join('\n');
}

export function wikilink(name: string): string {
  return `[[${name}]]`;
}
