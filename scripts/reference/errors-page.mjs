import { code, GENERATED, json, list, page, table } from './markdown.mjs';
import { ANY_CALL, AT_START, errorsOf } from './sentences.mjs';

const REMEDIES = {
  'fix-input': 'Change the arguments as the message says, then call again.',
  retry: 'Call again with the same arguments.',
  'ask-owner': 'The caller cannot fix this. Tell the person who runs the server what the message says.',
  'unknown-outcome': 'The call may or may not have been stored. Look it up before you repeat it.',
};

/** docs/reference/errors.md */
export function errorsPage({ ERRORS }, { tools, errors }) {
  return page(
    '# Errors',
    GENERATED,
    'Each message says what is wrong and what to do next. `details` contains the same as values for programs. The meaning of a code never changes.',
    table(
      ['Code', 'Means', 'Remedy', 'Answered by'],
      Object.entries(ERRORS).map(([name, { remedy, text }]) => [
        code(name),
        text,
        remedy,
        placesOf(name, tools),
      ]),
    ),
    '## Remedies',
    table(
      ['Remedy', 'What to do'],
      [...new Set(Object.values(ERRORS).map(({ remedy }) => remedy))].map((name) => [
        name,
        REMEDIES[name] ?? '',
      ]),
    ),
    '## Two patterns',
    'Errors from the rules of a domain reach the client in one of two patterns, depending on the tool’s family. `isError` is set in both.',
    table(
      ['Tools', 'Pattern', 'A domain error arrives as'],
      [
        [
          list(namesOf(tools, isPatternB)),
          'B',
          '`ok: true`, and inside `data` an object with `ok: false` and the code',
        ],
        [
          list(namesOf(tools, (tool) => !isPatternB(tool))),
          'A',
          '`ok: false` with code `HANDLER_ERROR` and a message that begins with the code',
        ],
      ],
    ),
    'Every other error is pattern A for every tool. `INVALID_PARAMS`, `AUDIT_ENTER_FAILED` and `HANDLER_ERROR` come from the stages and are themselves the code. Errors of a mode, the storage or the start (`TOOL_NOT_ADMITTED`, `ERR_STORAGE_…`, `ERR_INIT_FAILED`) are inside a `HANDLER_ERROR`. An unknown tool name is a [JSON-RPC error](protocol.md#errors-of-json-rpc).',
    '### Pattern B',
    exampleOf(errors.transition),
    '### Pattern A',
    exampleOf(errors.missing),
    '### Refused input',
    exampleOf(errors.rejected),
  );
}

function exampleOf({ tool, args, envelope }) {
  return [`\`${tool}\` with`, json(args), 'is answered', json(envelope)].join('\n\n');
}

function placesOf(name, tools) {
  if (ANY_CALL.includes(name)) return 'any call';
  if (AT_START.includes(name)) return 'the start, on stderr, with exit code 1';
  const own = namesOf(tools, (tool) => errorsOf(tool.name).includes(name));
  if (own.length > 0) return list(own);
  throw new Error(`say in scripts/reference/sentences.mjs who answers with ${name}`);
}

function namesOf(tools, wanted) {
  return tools.filter(wanted).map((tool) => tool.name);
}

function isPatternB({ family }) {
  return family === 'tasks' || family === 'proof';
}
