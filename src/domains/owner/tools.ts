import { defineTool, type Tool } from '../../tool.ts';
import { ruled } from '../ruled.ts';
import { OWNER_RULES } from './rules.ts';
import * as schema from './schema.ts';

/** What only the owner does, from the command line: none of it can be reached over MCP. */
export function ownerTools(): Tool[] {
  return [
    defineTool({
      name: 'owner_adopt',
      title: 'Adopt log',
      summary: 'Accept the log as it is, and sign it from here on.',
      family: 'owner',
      input: schema.AdoptInput,
      output: schema.AdoptOutput,
      ...ruled(OWNER_RULES.owner_adopt),
    }),
  ];
}
