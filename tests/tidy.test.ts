import { readdirSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** A source file: its path below src/ with forward slashes, and its text. */
interface Source {
  readonly path: string;
  readonly text: string;
}

const sources = filesBelow('src', /\.ts$/).filter(({ path }) => !path.startsWith('__tests__/'));

/** Which folder may import from which. Every folder may import the shared files of the root and itself. */
const IMPORTS: Readonly<Record<string, readonly string[]>> = {
  integrity: [],
  storage: ['integrity'],
  log: ['integrity', 'storage'],
  middleware: ['integrity', 'storage', 'log'],
  transport: ['middleware'],
  trust: ['integrity', 'storage', 'log'],
  domains: ['integrity', 'storage', 'log'],
  verify: ['integrity', 'storage', 'log', 'trust', 'domains'],
  integrations: ['integrity', 'storage', 'log', 'domains'],
  export: ['integrity', 'storage', 'log', 'trust', 'domains', 'integrations', 'verify'],
  report: ['integrity', 'storage', 'log', 'trust', 'domains', 'verify', 'export'],
  cli: [
    ...['integrity', 'storage', 'log', 'middleware', 'trust', 'domains', 'verify', 'integrations', 'export'],
    'report',
  ],
};

/** Root files that put the parts together; the parts do not know them. Only the command line may. */
const ENTRANCES = ['tools.ts', 'registry.ts', 'schema.ts', 'rules.ts', 'workflows.ts', 'holders.ts'];
const COMPOSITION = ['server.ts', 'boot.ts', 'catalogue.ts'];

interface Import {
  readonly from: string;
  /** A path below src/, or a package. */
  readonly to: string;
}

const imports: readonly Import[] = sources.flatMap(importsOf);
const inside = imports.filter(({ to }) => to.endsWith('.ts'));
const show = ({ from, to }: Import) => `${from} imports ${to}`;

describe('imports', () => {
  test('every folder of src has its line in the table', () => {
    const folders = new Set(sources.map(({ path }) => folderOf(path)).filter((folder) => folder !== ''));

    expect([...folders].filter((folder) => !(folder in IMPORTS))).toEqual([]);
  });

  test('point inward, along the table', () => {
    const wrong = inside.filter(({ from, to }) => {
      const [here, there] = [folderOf(from), folderOf(to)];
      return here !== '' && there !== '' && here !== there && !IMPORTS[here]?.includes(there);
    });

    expect(wrong.map(show)).toEqual([]);
  });

  test('reach what puts the house together from the command line only', () => {
    const wrong = inside.filter(
      ({ from, to }) => COMPOSITION.includes(to) && !['', 'cli'].includes(folderOf(from)),
    );

    expect(wrong.map(show)).toEqual([]);
  });

  test('enter a domain through its tools, its schemas or its pure rules, and never from another domain', () => {
    const entering = inside.filter(
      ({ from, to }) => domainOf(to) !== undefined && domainOf(from) !== domainOf(to),
    );
    const aside = entering.filter(({ to }) => !ENTRANCES.includes(posix.basename(to)));
    const across = entering.filter(({ from }) => domainOf(from) !== undefined);

    expect(aside.map(show)).toEqual([]);
    expect(across.map(show)).toEqual([]);
  });

  test('of the rules of the verifier name nothing from Node', () => {
    const wrong = imports.filter(
      ({ from, to }) => from.startsWith('verify/rules/') && to.startsWith('node:'),
    );

    expect(wrong.map(show)).toEqual([]);
  });

  test('see storage through its port: engines are behind it', () => {
    // The demo tampers with a copy of a file, as anybody who has it could.
    const mayOpen = ['storage/open.ts', 'cli/demo.ts'];
    const wrong = inside.filter(({ from, to }) => {
      const engine = /^storage\/\w+\//.exec(to)?.[0];
      return engine !== undefined && !from.startsWith(engine) && !mayOpen.includes(from);
    });

    expect(wrong.map(show)).toEqual([]);
  });

  test.each([
    ['the MCP SDK', /^@modelcontextprotocol\//, /^transport\//],
    ['a SQLite driver', /^(@photostructure\/sqlite|node:sqlite)$/, /^storage\/sqlite\//],
    ['a PostgreSQL client', /^pg$/, /^storage\/postgres\//],
    ['a YAML reader', /^js-yaml$/, /^domains\/skills\//],
    ['what starts programs', /^node:child_process$/, /^trust\/programs\.ts$/],
    ['what listens', /^node:(http|net)$/, /^report\/live\/http\.ts$/],
  ])('name %s in one place', (_, library, place) => {
    const wrong = imports.filter(({ from, to }) => library.test(to) && !place.test(from));

    expect(wrong.map(show)).toEqual([]);
  });

  test('name nothing that speaks to another machine', () => {
    const wrong = imports.filter(({ to }) => /^node:(https|http2|tls|dgram|inspector)$/.test(to));

    expect(wrong.map(show)).toEqual([]);
  });
});

/** What only some files may say, and where a file may say it for a reason of its own. */
const RESERVED: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly home: RegExp;
  readonly because: Readonly<Record<string, string>>;
}[] = [
  {
    what: 'process.env is read',
    pattern: /\bprocess\.env\b/,
    home: /^config\.ts$/,
    because: {
      'cli/main.ts':
        'NO_COLOR, TERM, COLUMNS, PAGER, LESS and LESSCHARSET are conventions of terminals, not settings of Colibri.',
    },
  },
  {
    what: 'time and chance are asked for',
    pattern:
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\brandomBytes\b|\brandomUUID\b|\brandomFillSync\b|\bperformance\.now\b/,
    home: /^clock\.ts$/,
    because: {
      'storage/sqlite/connection.ts':
        'The wait for another process is real, whatever clock a test has put in.',
      'storage/sqlite/engine.ts': 'How long ago the files were looked at is real time.',
      'storage/postgres/engine.ts': 'A lost connection is looked for again in real time.',
      'cli/output.ts': 'A progress bar is drawn in real time.',
      'report/page/worker/open.ts':
        'The page is a program of its own, and the clock of the reader is its clock.',
      'report/page/main.ts': 'How often the live page draws is real time.',
      'report/page/worker/worker.ts': 'Progress is shown in real time.',
    },
  },
  {
    what: 'the dialect of an engine is spoken',
    pattern:
      /\browid\b|\bMATCH\b|\biif\(|\btypeof\(\w+\) |\bhex\(\w*(?:content|chain)|\bjson_\w+\(|\b(?:pragma|PRAGMA)\b|\bpragma_|\bsqlite_\w+|\bgroup_concat\b|\binstr\(|\bINSERT OR\b|\bunixepoch\b|\bGLOB\b|\bts(?:vector|query)\b|\bpg_\w+|\bILIKE\b|\bstrpos\(|\bFOR UPDATE\b|::(?:text|bigint|jsonb)\b/,
    home: /^storage\//,
    because: { 'cli/demo.ts': 'It tampers with a copy of a file, as anybody who has it could.' },
  },
  {
    what: 'a column is given a name that engines spell differently',
    pattern: /\bSELECT\b[^;']*\bAS [a-z]+[A-Z]/,
    home: /^storage\//,
    because: {},
  },
  {
    what: 'processes are looked at',
    pattern: /\/proc\/|\bprocess\.kill\(/,
    home: /^(storage|trust)\//,
    because: {
      'config.ts': 'A folder below /proc is refused.',
      'runtime.ts': 'It looks at the threads of its own process.',
    },
  },
  {
    what: 'the files of a database are named',
    pattern: /-(?:wal|shm|journal)\b|SQLite format/,
    home: /^storage\//,
    because: { 'cli/verify.ts': 'It tells what it was given by how that begins.' },
  },
  {
    what: 'stdout is touched',
    pattern: /\bprocess\.stdout\b|\bconsole\.(log|info|debug|table|dir)\(/,
    home: /^(transport|cli)\//,
    because: {},
  },
  {
    what: 'a terminal is written to',
    pattern: /\bstd(?:out|err)\.write\(|\bconsole\.error\(/,
    home: /^cli\/output\.ts$/,
    because: { 'server.ts': 'The server says on stderr why it cannot start, through the same rule.' },
  },
];

describe('only there', () => {
  test.each(RESERVED)('$what', ({ pattern, home, because }) => {
    const elsewhere = sources.filter(
      ({ path, text }) =>
        !home.test(path) && !Object.hasOwn(because, path) && pattern.test(withoutComments(text)),
    );

    expect(elsewhere.map(({ path }) => path)).toEqual([]);
  });

  test.each(RESERVED)('$what: every exception is still needed', ({ pattern, because }) => {
    const needed = sources.filter(({ text }) => pattern.test(withoutComments(text))).map(({ path }) => path);

    expect(needed).toEqual(expect.arrayContaining(Object.keys(because)));
  });
});

describe('never', () => {
  test('console.log, in source or tests', () => {
    const found = [...sources, ...filesBelow('tests', /\.ts$/)].filter(({ text }) =>
      /\bconsole\.log\(/.test(withoutComments(text)),
    );

    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('a default export', () => {
    const found = sources.filter(({ text }) => /^export default\b|\bas default\b/m.test(text));

    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('a note to do something without the number of an issue', () => {
    const found = [...sources, ...filesBelow('tests', /\.ts$/), ...filesBelow('scripts', /\.mjs$/)].flatMap(
      ({ path, text }) =>
        text
          .split('\n')
          .filter((line) => /(\/\/|^\s*\*).*\b(TO-?DO|FIXME|XXX)\b/.test(line) && !/#\d+/.test(line))
          .map((line) => `${path}: ${line.trim()}`),
    );

    expect(found).toEqual([]);
  });

  test('a path of this machine', () => {
    const mine = [ROOT, dirname(ROOT), homedir()].filter(
      (path) => path !== '/' && !tmpdir().startsWith(path) && !path.startsWith(tmpdir()),
    );
    const texts = ['src', 'tests', 'scripts', 'bench', 'docs'].flatMap((folder) =>
      filesBelow(folder, /\.(ts|mjs|md|json|html)$/),
    );
    const found = texts.flatMap(({ path, text }) =>
      mine.filter((place) => text.includes(`${place}${sep}`)).map((place) => `${path} names ${place}`),
    );

    expect(found).toEqual([]);
  });
});

/** Static, dynamic and type imports, and re-exports. */
function importsOf({ path, text }: Source): Import[] {
  const named = withoutComments(text).matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g);
  return [...named].map(([, to = '']) => ({
    from: path,
    to: to.startsWith('.') ? posix.join(posix.dirname(path), to) : to,
  }));
}

function folderOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : '';
}

function domainOf(path: string): string | undefined {
  return /^domains\/([^/]+)\//.exec(path)?.[1];
}

/** Good enough for this house's formatting: no comment starts inside a text here. */
function withoutComments(text: string): string {
  return text.replace(/\/\*.*?\*\//gs, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

function filesBelow(folder: string, name: RegExp): Source[] {
  const base = join(ROOT, folder);
  return list(base)
    .filter((path) => name.test(path))
    .map((path) => ({ path: relative(base, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }));
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    // A folder that does not exist yet has nothing wrong in it.
    return [];
  }
}
