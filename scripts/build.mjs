// Bundles the server so that it starts with plain `node`: half the cold start of loose modules.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** @type {import('esbuild').BuildOptions} */
export const bundleOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: `node${engines.node.replace(/\D/g, '')}`,
  minify: true,
  legalComments: 'none',
  // The first finds its binaries beside itself; the second is loaded by those who need it.
  external: ['@photostructure/sqlite', 'pg'],
  logLevel: 'warning',
};

/** What few sessions need. It is a file of its own, which a start need not read. */
const LATER = ['src/domains/skills/front-matter.ts', 'src/storage/postgres/engine.ts', 'src/verify/chain.ts'];

/** Makes one module of them: one for each would split what they share into many small files. */
const later = {
  name: 'later',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      if (kind !== 'dynamic-import') return undefined;
      const file = relative(root, resolve(resolveDir, path));
      if (!LATER.includes(file)) throw new Error(`${file} is imported when needed: add it to LATER`);
      return { path: 'later', namespace: 'later' };
    });
    onLoad({ filter: /^later$/, namespace: 'later' }, () => ({
      contents: LATER.map((file) => `export * from './${file}';`).join('\n'),
      resolveDir: root,
    }));
  },
};

if (realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) {
  const server = await build({
    ...bundleOptions,
    metafile: true,
    // The SDK brings a JSON Schema validator of 150 KB for requests this server never makes.
    alias: { '@modelcontextprotocol/server/_shims': './scripts/sdk-shims.mjs' },
    entryPoints: ['src/server.ts'],
    outdir: 'dist',
    splitting: true,
    chunkNames: 'server-[name]',
    plugins: [later],
  });
  const cli = await build({
    ...bundleOptions,
    metafile: true,
    entryPoints: ['src/cli/program.ts'],
    outfile: 'dist/cli.js',
  });
  writeFileSync(new URL('../dist/verify.html', import.meta.url), await buildPage());
  const inputs = [server, cli].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  writeFileSync(new URL('../dist/third-party-licenses.txt', import.meta.url), licensesOf(inputs));
}

/** The licences of the packages that are bundled: they ask to travel with the code. */
function licensesOf(inputs) {
  const names = inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  const texts = [...new Set(names)].sort().map((name) => {
    const folder = new URL(`../node_modules/${name}/`, import.meta.url);
    const { version, license } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} is bundled and brings no licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), 'utf8').trim()}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

/** The report and verifier as one file that asks for nothing: script and style inside, allowed by their digests. */
async function buildPage() {
  const read = (name) => readFileSync(new URL(`../src/report/page/${name}`, import.meta.url), 'utf8');
  const worker = await buildForBrowser(new URL('../src/report/page/worker/worker.ts', import.meta.url), {});
  const script = await buildForBrowser(new URL('../src/report/page/main.ts', import.meta.url), {
    WORKER_SOURCE: JSON.stringify(worker),
  });
  const { code } = await transform(read('page.css'), { loader: 'css', minify: true });
  const style = code.trim();
  const policy = [
    "default-src 'none'",
    `script-src ${digestOf(script)}`,
    `style-src ${digestOf(style)}`,
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types colibri-worker',
  ].join('; ');
  const parts = { POLICY: policy, STYLE: style, SCRIPT: script };
  return read('page.html').replace(/@([A-Z]+)@/g, (_, name) => parts[name]);
}

/** The verifier and its rules as they are, with what src/integrity takes from Node replaced. */
async function buildForBrowser(entry, define) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [fileURLToPath(entry)],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    charset: 'utf8',
    define,
    alias: { 'node:crypto': './src/report/page/shims/node-crypto.ts' },
    inject: ['src/report/page/shims/buffer.ts'],
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

function digestOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
