import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { publint } from 'publint';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Manifest {
  readonly version: string;
  readonly main: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(read('package.json')) as Manifest & Readonly<Record<string, unknown>>;

describe('the package', () => {
  const packed = pack();
  const paths = packed.files.map(({ path }) => path);

  test('holds what is built, the verifiers in Python and the skill, and nothing else', () => {
    expect(paths.filter((path) => !/^docs\/(colibri_\w+|verify-[a-z]+)\.py$/.test(path))).toEqual([
      '.agents/skills/colibri/SKILL.md',
      'LICENSE',
      'README.md',
      'dist/cli.js',
      ...['dist/server-chunk.js', 'dist/server-later.js', 'dist/server.js'],
      ...['dist/third-party-licenses.txt', 'dist/verify.html'],
      'package.json',
    ]);
    expect(paths).toEqual(
      expect.arrayContaining(['bundle', 'database', 'thoughts'].map((what) => `docs/verify-${what}.py`)),
    );
  });

  test('S4: is small, and installs only what cannot be bundled', async () => {
    expect(packed.size).toBeLessThan(600_000);
    expect(packed.unpackedSize).toBeLessThan(1_700_000);
    for (const bundled of ['zod', 'js-yaml', '@modelcontextprotocol/server'])
      expect(manifest.dependencies).not.toHaveProperty([bundled]);
    expect((await importedPackages()).filter((name) => !(name in manifest.dependencies))).toEqual([]);
  });

  test('S6: promises no module interface, only programs, and all of them are in it', () => {
    expect(manifest).not.toHaveProperty('exports');
    expect(manifest.main).toBe('dist/server.js');
    expect(manifest.scripts.start).toBe('node dist/server.js');
    for (const file of [manifest.main, ...Object.values(manifest.bin)]) expect(paths).toContain(file);
    // npx PACKAGE runs the program of the same name.
    expect(Object.keys(manifest.bin)).toEqual(['colibri', 'colibri-mcp']);
    expect(read('dist/cli.js')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  test('has nothing that publint warns of', async () => {
    const { messages } = await publint({ pkgDir: 'package', pack: { files: packedFiles(paths) } });

    // A suggestion to have `exports`, which would promise a module interface.
    expect(messages.filter(({ type }) => type !== 'suggestion')).toEqual([]);
    expect(messages.map(({ code }) => code)).toEqual(['HAS_ESM_MAIN_BUT_NO_EXPORTS']);
  });

  test('carries the licence of each package in the bundles', () => {
    const licences = read('dist/third-party-licenses.txt');

    for (const name of ['@modelcontextprotocol/server', 'js-yaml', 'zod'])
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
  });
});

describe('what other programs read', () => {
  const json = <T>(path: string) => JSON.parse(read(path)) as T;

  test('is what package.json and the code say, all of one version', () => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/formats.mjs', '--check'], {
      cwd: ROOT,
      encoding: 'utf8',
    });

    expect([status, stderr]).toEqual([0, '']);
    const server = json<{ version: string; packages: { version: string }[] }>('server.json');
    const versions = [server.version, ...server.packages.map((entry) => entry.version)];
    for (const file of ['mcpb/manifest.json', 'plugin/.claude-plugin/plugin.json'])
      versions.push(json<Manifest>(file).version);
    for (const file of ['plugin/.mcp.json', 'plugin/hooks/hooks.json'])
      versions.push(/colibri-mcp@([\d.]+)/.exec(read(file))?.[1] ?? file);
    expect(new Set(versions)).toEqual(new Set([manifest.version]));
  });

  test('the entry in the MCP registry is the package, with a sentence short enough', () => {
    const server = json<{ name: string; description: string; packages: { identifier: string }[] }>(
      'server.json',
    );

    expect(server.name).toBe(manifest.mcpName);
    expect(server.description.length).toBeLessThanOrEqual(100);
    expect(server.packages.map(({ identifier }) => identifier)).toEqual([manifest.name]);
  });

  test('the container file ends as a user without rights, with nothing secret in it', () => {
    const steps = read('Dockerfile')
      .split('\n')
      .filter((line) => /^[A-Z]+ /.test(line));
    const last = steps.slice(steps.findLastIndex((line) => line.startsWith('FROM ')));

    expect(last.filter((line) => line.startsWith('USER '))).toEqual(['USER node']);
    expect(last.findIndex((line) => line.startsWith('USER'))).toBeLessThan(
      last.findIndex((line) => /^(ENTRYPOINT|CMD)/.test(line)),
    );
    for (const copied of ['package.json', 'package-lock.json', '.npmrc'])
      expect(read('Dockerfile')).toContain(copied);
    expect(read('.dockerignore').split('\n')).toEqual(
      expect.arrayContaining(['.git', '.colibri', 'node_modules']),
    );
  });

  test('the workflows name no secret, and publish with provenance what release:check passed', () => {
    const [ci, release] = ['ci', 'release'].map((name) => read(`.github/workflows/${name}.yml`));

    expect(`${ci}${release}`).not.toMatch(/secrets\.|_TOKEN: '(?!\$\{\{ github\.token)/);
    expect(release).toMatch(/release:check[\s\S]*npm publish --provenance/);
    expect(release).toContain('id-token: write');
  });
});

describe('S5: the lockfile', () => {
  const lock = JSON.parse(read('package-lock.json')) as {
    readonly version: string;
    readonly packages: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  const installed = Object.entries(lock.packages).filter(([path]) => path !== '');

  test('has an integrity for every package and names no registry', () => {
    expect(installed.filter(([, { integrity }]) => !/^sha512-/.test(String(integrity)))).toEqual([]);
    expect(installed.filter(([, entry]) => 'resolved' in entry)).toEqual([]);
    expect(read('package-lock.json')).not.toMatch(
      /https?:\/\/(?!opencollective|github|tidelift|paypal)\S*regist/,
    );
    expect(read('.npmrc')).toContain('omit-lockfile-registry-resolved=true');
  });

  test('has every platform’s part of every package that has parts', () => {
    const missing = installed.flatMap(([path, { optionalDependencies }]) =>
      Object.keys(Object(optionalDependencies))
        .filter(
          (name) =>
            !(`node_modules/${name}` in lock.packages || `${path}/node_modules/${name}` in lock.packages),
        )
        .map((name) => `${path}: ${name}`),
    );

    expect(missing).toEqual([]);
  });

  test('is of this version', () => {
    expect([lock.version, lock.packages['']?.version]).toEqual([manifest.version, manifest.version]);
  });
});

interface Packed {
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function pack(): Packed {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const { stdout, stderr } = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
  const [packed] = JSON.parse(stdout || '[]') as Packed[];
  if (packed === undefined) throw new Error(`npm pack said: ${stderr}`);
  return packed;
}

/** Every package that a built file asks for. */
async function importedPackages(): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['dist/server.js', 'dist/cli.js'],
    ...{ bundle: true, write: false, metafile: true, outdir: 'nowhere' },
    ...{ platform: 'node', format: 'esm', packages: 'external' },
  });
  return Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports.map(({ path }) => path))
    .filter((path) => !path.startsWith('node:') && !path.startsWith('.'));
}

function packedFiles(paths: readonly string[]) {
  return paths.map((path) => ({ name: `package/${path}`, data: readFileSync(join(ROOT, path)) }));
}
