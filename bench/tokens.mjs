import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { install, installedFolder } from './npm.mjs';
import { progress } from './progress.mjs';

const [PACKAGE, VERSION] = ['gpt-tokenizer', '4.0.0'];
// Measured with the tokenizer: 4.0 for a list that is mostly schema, as ours is, and up to 4.6 for one with much prose.
const BYTES_PER_TOKEN = 4;

/**
 * Counts tokens by the o200k encoding, of a tokenizer that is installed beside the rivals. Models of other makers count
 * some percent differently. Where it is not there and cannot be had, or may not be fetched, an estimate by bytes.
 */
export async function countTokens({ install: mayInstall }) {
  try {
    const folder = mayInstall ? install(PACKAGE, VERSION) : installedFolder(PACKAGE, VERSION);
    if (folder !== undefined) {
      const module = join(folder, 'node_modules', PACKAGE, 'esm', 'encoding', 'o200k_base.js');
      const { encode } = await import(pathToFileURL(module).href);
      return { by: 'by the o200k encoding', count: (text) => encode(text).length };
    }
  } catch (error) {
    progress(`no tokenizer: ${error.message}`);
  }
  return {
    by: `estimated at ${BYTES_PER_TOKEN} bytes each`,
    count: (text) => Math.round(Buffer.byteLength(text) / BYTES_PER_TOKEN),
  };
}
