import { SERVER } from './build.mjs';
import { connect, inScratch } from './client.mjs';
import { countTokens } from './tokens.mjs';

const TOKENS_MAX = 2_900;

/** What the list of tools costs a model before it has done anything. */
export async function toolsList({ bare, install }) {
  const [floor, colibri] = [await listOf(bare), await listOf(SERVER)];
  const bytes = (tools) => Buffer.byteLength(JSON.stringify(tools));
  const { count, by } = await countTokens({ install });
  const tokens = count(JSON.stringify(colibri));
  return {
    rows: [
      {
        id: 'tools-list',
        what: `tools/list, ${colibri.length} tools`,
        unit: 'tokens',
        reference: count(JSON.stringify(floor)),
        reference_is: 'bare SDK server with one tool',
        p50: tokens,
        value: tokens,
        bar: `at most ${TOKENS_MAX.toLocaleString('en')} tokens`,
        limit: TOKENS_MAX,
        note: `${bytes(colibri).toLocaleString('en')} bytes; tokens ${by}`,
      },
    ],
  };
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
