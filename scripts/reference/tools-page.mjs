import { code, GENERATED, json, list, page, table } from './markdown.mjs';
import { fieldsOf } from './schema-fields.mjs';
import { ANY_CALL, errorsOf, meaningOfInput, meaningOfOutput, rulesOf } from './sentences.mjs';

/** docs/reference/tools.md */
export function toolsPage(source, { tools, answers }) {
  return page(
    '# Tools',
    GENERATED,
    `Colibri has ${tools.length} tools and no resources or prompts. [Errors](errors.md) lists every code. [Protocol](protocol.md) shows how an answer is wrapped; the outputs described here are the \`data\` of the envelope.`,
    table(
      ['Tool', 'Does', 'Effect', 'Modes'],
      tools.map((tool) => [
        `[\`${tool.name}\`](#${tool.name})`,
        tool.summary,
        tool.effect,
        list(source.MODES.filter((mode) => source.capabilitiesFor(mode).admits(tool))),
      ]),
    ),
    '`reads` and `writes` say what a tool does to stored state. This decides which modes allow the tool, which annotations clients see, and whether the call runs in a write transaction. No tool deletes anything, so every tool has `destructiveHint: false`.',
    '## For every tool',
    [
      '- Objects are strict: an unknown field is refused, and the message names the nearest known one. Some obvious mistakes are [repaired](protocol.md#repairs) first.',
      '- Limits are inclusive. Characters are Unicode code points, as JSON Schema counts them: an emoji may be one or several.',
      '- Ids look like `T-0001` (task), `Θ-0001` (thought) and `A-0001` (session), with at least four digits.',
      '- Times are ISO-8601 in UTC with milliseconds. From one record to the next, they never go backwards.',
      '- Names in `created_by`, `updated_by` and `recorded_by` are what the client claimed; they are not verified.',
      `- Any call can end with ${list(ANY_CALL)}. The codes below are specific to the tool.`,
    ].join('\n'),
    workflowsOf(source),
    tools.flatMap((tool) => sectionOf(source, tool, answers.get(tool.name))),
  );
}

function workflowsOf({ ARROWS, INITIAL }) {
  return [
    '## Workflows',
    'A task keeps the workflow it was created with. No step can be skipped. A status without a next step is final.',
    ...Object.entries(ARROWS).flatMap(([workflow, arrows]) => [
      `\`${workflow}\` begins in \`${INITIAL[workflow]}\`:`,
      table(
        ['From', 'To'],
        Object.entries(arrows).map(([from, to]) => [code(from), to.length === 0 ? 'final' : list(to)]),
      ),
    ]),
  ].join('\n\n');
}

function sectionOf(source, tool, example) {
  const input = fieldsOf(source.z.toJSONSchema(tool.input, { io: 'input' }));
  const output = fieldsOf(source.z.toJSONSchema(tool.output, { io: 'output' }));
  const rules = rulesOf(tool.name);
  const errors = errorsOf(tool.name);
  return [
    `## ${tool.name}`,
    `${tool.summary} *${tool.effect === 'reads' ? 'Reads only.' : 'Writes.'}*`,
    '**Input**',
    input.length === 0 ? 'None.' : inputTable(tool.name, input),
    rules.length === 0 ? '' : rules.map((rule) => `- ${rule}`).join('\n'),
    '**Output**',
    outputTable(tool.name, output),
    errors.length === 0 ? '' : `**Errors** ${list(errors, (name) => `[\`${name}\`](errors.md)`)}`,
    ...(example === undefined ? [] : ['**Example**', json(example.args), json(example.data)]),
  ];
}

function inputTable(tool, fields) {
  return table(
    ['Field', 'Type', 'Limits', 'Required', 'Meaning'],
    fields.map(({ path, type, bounds, required }) => [
      code(path),
      type,
      bounds,
      required ? 'yes' : '',
      meaningOfInput(tool, path),
    ]),
  );
}

function outputTable(tool, fields) {
  return table(
    ['Field', 'Type', 'Always', 'Meaning'],
    fields.map(({ path, type, required }) => [
      code(path),
      type,
      required ? 'yes' : '',
      meaningOfOutput(tool, path),
    ]),
  );
}
