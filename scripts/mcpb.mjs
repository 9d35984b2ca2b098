// npm run mcpb [-- OUT]: makes the MCPB bundle, one file that a desktop client installs. It holds the built server, what npm would
// install with it, and mcpb/manifest.json. Packed by MCPB's own tool, which npm fetches into a temporary folder.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { install } from '../bench/npm.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version, type, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const out = resolve(process.argv[2] ?? join(root, 'dist', `${name}-${version}.mcpb`));
const folder = join(root, 'dist', 'mcpb');
const tool = join(install('@anthropic-ai/mcpb', '2.1.2'), 'node_modules', '.bin', 'mcpb');

rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, 'dist'), { recursive: true });
const built = readdirSync(join(root, 'dist')).filter((file) => /^server.*\.js$/.test(file));
for (const file of [...built.map((each) => `dist/${each}`), 'dist/third-party-licenses.txt', 'LICENSE'])
  copy(file, file);
copy('mcpb/manifest.json', 'manifest.json');
// The server reads its version from there.
writeFileSync(
  join(folder, 'package.json'),
  `${JSON.stringify({ name, version, type, dependencies }, null, 2)}\n`,
);
for (const path of installedPaths()) copy(path, path);

run(tool, ['validate', join(folder, 'manifest.json')]);
run(tool, ['pack', folder, out]);
console.log(`${out}: ${Math.round(statSync(out).size / 1000).toLocaleString('en')} kB`);

/** What npm installs with the package, without what is only for development. */
function installedPaths() {
  const { stdout } = spawnSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], {
    cwd: root,
    encoding: 'utf8',
  });
  return stdout
    .split('\n')
    .filter((path) => path.includes('node_modules'))
    .map((path) => relative(root, path));
}

function copy(from, to) {
  cpSync(join(root, from), join(folder, to), { recursive: true, dereference: true });
}

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${program} ${args[0]} failed: ${error?.message ?? `${stdout}${stderr}`}`);
}
