/**
 * One row a field of a JSON Schema object: where it stands, what it holds, its bounds, whether it must be there.
 * Objects inside are flattened: `tasks[].title`.
 */
export function fieldsOf(schema, path = '') {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = `${path}${name}`;
    const inner = field.type === 'array' ? field.items : field;
    const nested =
      inner?.properties === undefined ? [] : fieldsOf(inner, `${at}${field.type === 'array' ? '[]' : ''}.`);
    return [
      { path: at, type: typeOf(field), bounds: boundsOf(field), required: required.has(name) },
      ...nested,
    ];
  });
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum !== undefined) return 'one of a few words';
  switch (schema.type) {
    case 'string':
      return 'text';
    case 'integer':
      return 'whole number';
    case 'array':
      return `list of ${plural(typeOf(schema.items ?? {}))}`;
    case undefined:
      return 'any value';
    default:
      return schema.type;
  }
}

const PLURALS = {
  text: 'texts',
  object: 'objects',
  'whole number': 'whole numbers',
  'one of a few words': 'words',
};

function plural(type) {
  return PLURALS[type] ?? type;
}

/** The bounds as a person reads them; empty where there are none. */
function boundsOf(schema) {
  if (schema.enum !== undefined) return schema.enum.map((word) => `\`${word}\``).join(' ');
  const items = schema.type === 'array' ? boundsOf(schema.items ?? {}) : '';
  const parts = [
    range(schema.minLength, schema.maxLength, 'characters'),
    schema.pattern === undefined ? '' : schema.pattern === '\\S' ? 'not blank' : `\`${schema.pattern}\``,
    range(schema.minimum, schema.maximum === Number.MAX_SAFE_INTEGER ? undefined : schema.maximum, ''),
    range(schema.minItems, schema.maxItems, 'items'),
    schema.type === 'array' && items !== '' ? `each ${items}` : '',
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function range(min, max, unit) {
  if (min === undefined && max === undefined) return '';
  const words = unit === '' ? '' : ` ${unit}`;
  if (max === undefined) return `at least ${min}${words}`;
  if (min === undefined) return `at most ${max}${words}`;
  return `${min} to ${max}${words}`;
}
