/**
 * Text that strangers wrote, as Markdown that only shows it. Without this a thought could hold a query block, a script of
 * a plug-in or a link that loads something, and the vault would run it.
 */
export function inert(text: string): string {
  return text
    .replace(/[\\`*_{}[\]<>#|$%~^=!&]/g, '\\$&')
    .replace(/^(\s*)([-+:]|\d+[.)])/gm, '$1\\$2')
    .replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (c) =>
      c === '\n' || c === '\t' ? c : '\ufffd',
    );
}

/** Text of several lines inside a callout or a quote. */
export function quoted(text: string): string {
  return inert(text)
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

/** YAML front matter. Every JSON value is YAML as well, so no value can break out of its line. */
export function frontMatter(fields: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return ['---', ...lines.map(([key, value]) => `${key}: ${JSON.stringify(value)}`), '---'].join('\n');
}

export function wikilink(name: string): string {
  return `[[${name}]]`;
}
