export const GENERATED =
  '*Written by `node scripts/reference.mjs` from the code. Do not edit: change the code, then run it again.*';

/** A Markdown table. Cells may hold anything but line breaks. */
export function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export function code(text) {
  return `\`${text}\``;
}

export function list(words, quote = code) {
  return words.map(quote).join(', ');
}

export function json(value) {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

/** Joins blocks with one blank line and ends the file with a newline. */
export function page(...blocks) {
  return `${blocks
    .flat()
    .filter((block) => block !== undefined && block !== '')
    .join('\n\n')}\n`;
}
