import { expect } from 'vitest';
import { canonical } from '../driver/audit-file.ts';
import { type FuzzLine, fuzzLines } from '../driver/fuzz.ts';
import type { Playground } from '../driver/playground.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs, until } from '../driver/server-process.ts';
import { toolsMissing } from '../driver/surface.ts';
import { figure, tier } from '../driver/tier.ts';
import { proves } from './proves.ts';

const LINES = tier(300, 20_000);
const DEPTH_MAX = 64;
const RSS_GROWTH_MAX = 100_000_000;

const noThoughts = await toolsMissing('task_create', 'task_get', 'thought_record', 'thought_record_list');

proves(
  ['protocol.one-answer', 'protocol.stays-up', 'protocol.pure-stdout', 'protocol.bounded-memory'],
  `R22: ${LINES} hostile lines: each readable id is answered once, the rest by an error, and the server lives`,
  async ({ colibri }) => {
    const random = seededRandom('hostile lines');
    const server = await colibri.start();
    const lines = [...fuzzLines(random, LINES)];
    await server.call('server_ping');
    const rssBefore = server.rssBytes;

    await sendInPieces(server, random, lines);
    await answersArrived(server, lines.filter(({ due }) => due.kind !== 'silence').length);

    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
    expect(differences(lines, server)).toEqual([]);
    figure('R22', { lines: LINES, rss_growth_mb: Math.round((server.rssBytes - rssBefore) / 1e6) });
    expect(server.rssBytes - rssBefore).toBeLessThan(RSS_GROWTH_MAX);
    expect((await server.closeInput()).code).toBe(0);
    expect(colibri.readAudit().findings).toEqual([]);
  },
  { timeoutMs: 60_000 + LINES * 20 },
);

proves(
  'protocol.bounded-memory',
  'a client that sends faster than it is served is made to wait, not kept in memory',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    const lines = `${callLine('flood', 'server_ping', '{}')}\n`.repeat(5_000);

    for (let sent = 0; sent < 200_000; sent += 5_000) server.write(lines);
    // A server that takes it all in has done so by then; one that makes us wait has not.
    await until(
      () => server.unsentBytes === 0,
      4_000,
      () => '',
    ).catch(() => undefined);
    const rss = server.rssBytes;
    await server.killHard();

    server.takeUnclaimed();
    expect(rss).toBeLessThan(200_000_000);
  },
);

proves(
  'json.depth',
  'R24: arguments nested to the limit are served and recorded, one level more is refused',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);

    const within = await server.call('thought_record', thought({ metadata: { a: nested(DEPTH_MAX - 2) } }));
    const beyond = await server.call('thought_record', thought({ metadata: { a: nested(DEPTH_MAX - 1) } }));

    expect(within.error).toBeUndefined();
    expect(beyond.error).toMatchObject({
      code: 'INVALID_PARAMS',
      message: expect.stringContaining(`${DEPTH_MAX}`),
    });
    expect(colibri.readAudit().findings).toEqual([]);
  },
  { unless: noThoughts },
);

proves(
  ['json.depth', 'path.order'],
  'reading back what is nested to the limit is recorded like any other call',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    await server.call('thought_record', thought({ metadata: { a: nested(DEPTH_MAX - 2) } }));

    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });

    expect(envelope?.ok).toBe(true);
    expect(colibri.readAudit().rows.slice(-2)).toMatchObject([
      { stage: 'enter', tool: 'thought_record_list' },
      { stage: 'exit', tool: 'thought_record_list', outcome: 'ok' },
    ]);
  },
  { unless: noThoughts },
);

proves(
  ['json.depth', 'protocol.stays-up', 'rejected.pair'],
  'R24: any depth is INVALID_PARAMS, recorded with a hash, and harms nobody',
  async ({ colibri }) => {
    const server = await colibri.start();
    // A line holds 1 MB, and so half a million levels of arrays; a sixth of that of objects.
    const depths = [DEPTH_MAX + 1, 1_000, 10_000, ...tier([100_000], [100_000, 170_000])];

    for (const depth of depths) {
      const text = `${'['.repeat(depth)}${']'.repeat(depth)}`;
      for (const args of [
        `{"x":${text}}`,
        text,
        JSON.stringify(`{"x":${text}}`),
        `{"x":${'{"y":'.repeat(depth)}1${'}'.repeat(depth)}}`,
      ]) {
        const { result } = await server.sendLine(callLine('deep', 'server_ping', args), 'deep');
        expect(result?.structuredContent).toMatchObject({ ok: false, error: { code: 'INVALID_PARAMS' } });
      }
    }
    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
    const { rows, findings } = colibri.readAudit();
    const entered = rows.filter((row) => row.stage === 'enter' && !row.schema_valid);
    expect(findings).toEqual([]);
    expect(entered).toHaveLength(depths.length * 4);
    expect(entered.filter((row) => row.args_hash === null)).toEqual([]);
  },
);

proves(
  'json.depth',
  'R24: a hundred thousand unknown fields and a million items are refused without a stall',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const fields = Array.from({ length: 90_000 }, (_, i) => `"${i.toString(36)}":1`).join();
    const words = Array.from({ length: 13_000 }, (_, i) => `"${'descriptiom'.repeat(5)}${i}":1`).join();
    const items = `[${'1,'.repeat(500_000)}1]`;

    for (const args of [`{${fields}}`, `{${words}}`, `{"labels":${items}}`, items]) {
      const began = server.cpuMs;
      const { result } = await server.sendLine(callLine('wide', 'task_create', args), 'wide');
      expect(result?.structuredContent).toMatchObject({ error: { code: 'INVALID_PARAMS' } });
      expect(server.cpuMs - began).toBeLessThan(2_000);
      expect(JSON.stringify(result).length).toBeLessThan(100_000);
    }
  },
  { unless: noThoughts },
);

proves(
  'json.surrogates',
  'R25: a lone surrogate is refused wherever it stands, also inside JSON text',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const lone = '\ud83d';
    const hidden = JSON.stringify({ title: lone, project: 'demo' });
    const attempts: [tool: string, args: unknown][] = [
      ['task_create', { title: lone, project: 'demo' }],
      ['task_create', { title: 'a', project: 'demo', labels: ['ok', `x${lone}`] }],
      ['task_create', { title: 'a', project: 'demo', description: `${lone}x` }],
      ['task_create', { title: 'a', project: 'demo', [`x${lone}`]: 1 }],
      ['task_create', hidden],
      ['task_create', { title: 'a', project: 'demo', labels: JSON.stringify([lone]) }],
      ['thought_record', thought({ content: `${lone}!` })],
      ['thought_record', thought({ metadata: { [lone]: 1 } })],
      ['thought_record', thought({ metadata: { a: { b: [lone] } } })],
      ['thought_record', thought({ metadata: JSON.stringify({ a: [lone] }) })],
      ['task_list', { search: lone }],
    ];

    for (const [tool, args] of attempts) {
      expect([args, (await server.call(tool, args)).error?.code]).toEqual([args, 'INVALID_PARAMS']);
    }
    expect(colibri.readAudit().findings).toEqual([]);
  },
  { unless: noThoughts },
);

proves(
  'json.numbers',
  'R26: integers beyond 2^53 and numbers beyond a double are refused, also inside JSON text',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const args = (metadata: string) =>
      `{"task_id":"T-0001","type":"plan","content":"c","metadata":${metadata}}`;

    for (const number of [
      '9007199254740992',
      '9007199254740993',
      '-9007199254740993',
      '1e300',
      '1e400',
      '-1e400',
      '123456789012345678901',
    ]) {
      for (const metadata of [`{"n":${number}}`, `{"a":[[${number}]]}`, JSON.stringify(`{"n":${number}}`)]) {
        const { result } = await server.sendLine(
          callLine('number', 'thought_record', args(metadata)),
          'number',
        );
        expect([metadata, result?.structuredContent]).toMatchObject([
          metadata,
          { error: { code: 'INVALID_PARAMS' } },
        ]);
      }
    }
  },
  { unless: noThoughts },
);

proves(
  ['json.numbers', 'json.canonical'],
  'R26: numbers that are taken come back with the same canonical text',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const metadata = {
      zero: -0,
      small: 1e-7,
      smaller: 5e-324,
      one: 1.0,
      third: 1 / 3,
      big: 9_007_199_254_740_991,
      sum: 0.1 + 0.2,
    };

    const { error } = await server.call('thought_record', thought({ metadata }));
    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });

    expect(error).toBeUndefined();
    const listed = (envelope?.data?.thoughts as { metadata: unknown }[] | undefined)?.[0];
    expect(canonical(listed?.metadata)).toBe(canonical(metadata));
  },
  { unless: noThoughts },
);

proves(
  'json.names',
  'R27: __proto__ or any other odd name among the arguments is refused, never dropped',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const attempts: [tool: string, args: string][] = [
      ['server_ping', '{"__proto__":{"polluted":1}}'],
      ['server_ping', '{"__proto__":1}'],
      ['server_ping', '{"\\u0000arguments":{},"x":1}'],
      ['server_ping', JSON.stringify('{"__proto__":{"polluted":1}}')],
      ['task_create', '{"title":"a","project":"demo","__proto__":{"description":"x"}}'],
      ['thought_record', '{"task_id":"T-0001","type":"plan","content":"c","metadata":{"__proto__":{"a":1}}}'],
      [
        'thought_record',
        '{"task_id":"T-0001","type":"plan","content":"c","metadata":{"a":[{"__proto__":1}]}}',
      ],
      ['thought_record', '{"task_id":"T-0001","type":"plan","content":"c","metadata":"{\\"__proto__\\":1}"}'],
    ];

    for (const [tool, args] of attempts) {
      const { result } = await server.sendLine(callLine('proto', tool, args), 'proto');
      expect([tool, args, result?.structuredContent]).toMatchObject([
        tool,
        args,
        { error: { code: 'INVALID_PARAMS' } },
      ]);
    }
  },
  { unless: noThoughts },
);

proves(
  'json.names',
  'R27: other names of the prototype are plain data, as fields and as tools',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const metadata = {
      constructor: { prototype: 1 },
      prototype: 2,
      toString: 'x',
      hasOwnProperty: [true],
      valueOf: null,
    };

    await server.call('thought_record', thought({ metadata }));
    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });

    expect(envelope?.data?.thoughts).toMatchObject([{ metadata }]);
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await server.call(name, {})).message.error?.code).toBe(-32602);
      expect((await server.call('server_ping', { [`${name}_`]: 1, constructor: 1 })).error?.code).toBe(
        'INVALID_PARAMS',
      );
    }
  },
  { unless: noThoughts },
);

proves(
  'json.text',
  'R25: any well-formed text comes back as it was sent',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);
    const texts = [
      'line\u2028para\u2029end',
      'caf\u00e9 / cafe\u0301',
      `e${'\u0301'.repeat(4_000)}`,
      '\u202egnp.exe\u202c \u200f\u200b\ufeff',
      '😀👩‍👩‍👧‍👦\u{10ffff}',
      "'); DROP TABLE tasks; --",
      '%_\\"\'`<script>',
      ' leading and trailing \t',
    ];

    for (const [i, text] of texts.entries()) {
      await server.call('task_create', { title: text.slice(0, 256), description: text, project: 'demo' });
      await server.call(
        'thought_record',
        thought({ content: text, metadata: { [text.slice(0, 50)]: text } }),
      );
      const task = await server.call('task_get', { task_id: `T-${String(i + 2).padStart(4, '0')}` });
      expect(task.envelope?.data).toMatchObject({ title: text.slice(0, 256), description: text });
    }
    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001', verify_chain: true });
    expect(envelope?.data).toMatchObject({
      chain_valid: true,
      thoughts: texts.map((text) => ({ content: text, metadata: { [text.slice(0, 50)]: text } })),
    });
    expect(colibri.readAudit().findings).toEqual([]);
  },
  { unless: noThoughts },
);

proves(
  ['json.text', 'envelope.teaches'],
  'R25: U+0000, which SQL would cut a text at, is refused by name',
  async ({ colibri }) => {
    const server = await withOneTask(colibri);

    const title = await server.call('task_create', { title: 'a\u0000b', project: 'demo' });
    const deep = await server.call('thought_record', thought({ metadata: { a: ['\u0000'] } }));

    for (const { error } of [title, deep]) {
      expect(error).toMatchObject({ code: 'INVALID_PARAMS', message: expect.stringContaining('U+0000') });
    }
  },
  { unless: noThoughts },
);

async function withOneTask(colibri: Playground): Promise<ServerProcess> {
  const server = await colibri.start();
  await server.call('task_create', { title: 'a task', project: 'demo' });
  return server;
}

function thought(fields: object): object {
  return { task_id: 'T-0001', type: 'decision', content: 'because', ...fields };
}

/** `levels` arrays inside each other. */
function nested(levels: number): unknown {
  return JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
}

function callLine(id: string, tool: string, args: string): string {
  return `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`;
}

/** As a stream comes: cut anywhere, several lines at once. */
async function sendInPieces(
  server: ServerProcess,
  random: Random,
  lines: readonly FuzzLine[],
): Promise<void> {
  const all = Buffer.concat(lines.flatMap(({ bytes }) => [bytes, Buffer.from('\n')]));
  for (let at = 0; at < all.length; ) {
    const size = random.oneIn(3) ? random.between(1, 50) : random.between(1_000, 60_000);
    server.write(all.subarray(at, at + size));
    at += size;
    if (random.oneIn(5)) await sleepMs(0);
  }
}

async function answersArrived(server: ServerProcess, due: number): Promise<void> {
  const arrived = () => server.messages.filter((message) => message.method === undefined).length;
  // Two for the handshake and the ping before. What never comes is told by `differences`, so the wait just ends.
  await until(
    () => arrived() >= due + 2,
    15_000 + LINES,
    () => '',
  ).catch(() => undefined);
}

/** Lines whose answer is missing, and answers no line explains. */
function differences(lines: readonly FuzzLine[], server: ServerProcess): string[] {
  const answers = server
    .takeUnclaimed()
    .map(({ id, error }) => (id === null ? `error ${error?.code}` : `id ${JSON.stringify(id)}`));
  const open = new Map<string, number>();
  for (const answer of answers) open.set(answer, (open.get(answer) ?? 0) + 1);
  const unanswered: string[] = [];
  for (const { bytes, due } of lines) {
    if (due.kind === 'silence') continue;
    const key = due.kind === 'error' ? `error ${due.code}` : `id ${JSON.stringify(due.id)}`;
    const count = open.get(key) ?? 0;
    if (count === 0) unanswered.push(`no answer (${key}): ${bytes.toString('utf8').slice(0, 200)}`);
    else open.set(key, count - 1);
  }
  const surplus = [...open]
    .filter(([, count]) => count > 0)
    .map(([key, count]) => `${count} too many: ${key}`);
  return [...unanswered, ...surplus];
}
