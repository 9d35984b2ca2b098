import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { countTokens } from './tokens.mjs';

const TOKENS_MAX = 2_900;

/** What the list of tools costs a model before it has done anything. */
export async function toolsList({ bare, install }) {
  const [floor, colibri] = [await listOf(bare), await listOf(SERVER)];
  const { count, by } = await countTokens({ install });
  const list = listFigures(colibri, count);
  const { tools, bytes, tokens } = list;
  return {
    list,
    rows: [
      {
        id: 'tools-list',
        what: `tools/list, ${tools} tools`,
        unit: 'tokens',
        reference: listFigures(floor, count).tokens,
        reference_is: 'bare SDK server with one tool',
        p50: tokens,
        value: tokens,
        bar: `at most ${TOKENS_MAX.toLocaleString('en')} tokens`,
        limit: TOKENS_MAX,
        note: `${bytes.toLocaleString('en')} bytes; tokens ${by}`,
      },
    ],
  };
}

/** What a list of tools weighs. */
export function listFigures(tools, tokensOf) {
  const text = JSON.stringify(tools);
  return { tools: tools.length, bytes: Buffer.byteLength(text), tokens: tokensOf(text) };
}

async function listOf(script) {
  return await inScratch(async (_folder, env) => {
    const client = connect(script, { env });
    await client.initialize();
    const { result } = await client.request('tools/list', {});
    await client.close();
    return result.tools;
  });
}
