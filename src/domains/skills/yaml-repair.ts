/** The text after the repair, and the keys whose values it put into quotes. */
export interface Repaired {
  readonly text: string;
  readonly quoted: readonly string[];
}

/**
 * Quotes the plain values that YAML takes for something else: `description: Use when: asked`, `argument-hint: [a] [b]`,
 * `allowed-tools: *`. Lines are looked at one by one with plain searches; there is no pattern to run away with.
 */
export function quotePlainValues(text: string): Repaired {
  const lines = text.split('\n').map(blanksForTabs);
  const out: string[] = [];
  const quoted: string[] = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] ?? '';
    const field = asField(line);
    if (field === undefined || field.value === '') {
      out.push(line);
      i += 1;
      continue;
    }
    // Deeper lines after a value continue it, whatever they look like.
    const end = endOfDeeper(lines, i + 1, field.indent);
    const value = [field.value, ...lines.slice(i + 1, end).map((more) => more.trim())].join(' ').trimEnd();
    if (isMisread(value)) {
      out.push(`${' '.repeat(field.indent)}${field.key}: '${value.replaceAll("'", "''")}'`);
      quoted.push(field.key);
    } else {
      out.push(...lines.slice(i, end));
    }
    i = end;
  }
  return { text: out.join('\n'), quoted };
}

interface Field {
  readonly indent: number;
  readonly key: string;
  readonly value: string;
}

const KEY = /^[\w.-]+$/;

function asField(line: string): Field | undefined {
  const trimmed = line.trimStart();
  const colon = trimmed.indexOf(':');
  const key = trimmed.slice(0, Math.max(0, colon));
  const after = trimmed.slice(colon + 1);
  if (!KEY.test(key) || (after !== '' && !after.startsWith(' '))) return undefined;
  const value = after.trim();
  return { indent: line.length - trimmed.length, key, value: value.startsWith('#') ? '' : value };
}

function endOfDeeper(lines: readonly string[], from: number, indent: number): number {
  let end = from;
  for (let i = from; i < lines.length; i += 1) {
    const line = lines[i] ?? '';
    const trimmed = line.trimStart();
    if (trimmed === '') continue;
    if (line.length - trimmed.length <= indent) break;
    end = i + 1;
  }
  return end;
}

/** Whether a value that was meant as plain text means something else in YAML. */
function isMisread(value: string): boolean {
  switch (value[0]) {
    case '"':
    case "'":
    case '|':
    case '>':
    case '&':
      return false;
    case '@':
    case '`':
    case '%':
      return true;
    case '!':
      return value[1] !== '!' && value[1] !== '<';
    case '*':
      // A lone alias stays one, and is refused as one.
      return value === '*' || value.includes(' ');
    case '[':
      return closesEarly(value, '[', ']');
    case '{':
      return closesEarly(value, '{', '}');
    default:
      return isMisreadPlain(value);
  }
}

function isMisreadPlain(value: string): boolean {
  const comment = value.indexOf(' #');
  const text = comment === -1 ? value : value.slice(0, comment).trimEnd();
  return text.includes(': ') || text.endsWith(':') || text.startsWith('- ') || text.startsWith('? ');
}

/** Whether the bracket the value begins with is closed before its end and text follows. */
function closesEarly(value: string, open: string, close: string): boolean {
  let depth = 0;
  for (let i = 0; i < value.length; i += 1) {
    if (value[i] === open) depth += 1;
    if (value[i] === close) depth -= 1;
    if (depth === 0) {
      const rest = value.slice(i + 1).trim();
      return rest !== '' && !rest.startsWith('#');
    }
  }
  return false;
}

function blanksForTabs(line: string): string {
  const content = line.trimStart();
  const indent = line.slice(0, line.length - content.length);
  return indent.includes('\t') ? indent.replaceAll('\t', '  ') + content : line;
}
