import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proving } from '../contract/proves.ts';
import { StayingCommand, startColibri } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import { Playground } from '../driver/playground.ts';
import { until } from '../driver/server-process.ts';

let colibri: Playground;
let served: StayingCommand;
let url: URL;

beforeAll(async () => {
  colibri = new Playground();
  const server = await colibri.start();
  await server.call('task_create', { title: 'Roof', project: 'house' });
  await server.closeInput();
  [served, url] = await start(['serve', '--json']);
});

afterAll(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

async function start(args: readonly string[]): Promise<[StayingCommand, URL]> {
  const command = new StayingCommand(colibri, args, { holdsInput: true });
  await command.printed('\n');
  return [command, new URL(/http:\/\/[^\s"]+/.exec(command.stdout)?.[0] ?? '')];
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** One request, with exactly these headers and this path. */
function ask(
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      { host: '127.0.0.1', port: url.port, method, path, headers: { host: url.host, ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part) => {
          text += part;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers }),
        );
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Sends bytes and answers everything that came back until the connection was closed. */
function sendRaw(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(Number(url.port), '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    socket.on('close', () => resolve(text));
    socket.on('error', () => undefined);
  });
}

describe('the address', () => {
  test(
    proving('live.closed', 'is a secret on the loopback address, at a port of its own or the one given'),
    async () => {
      const [second, other] = await start(['serve', '--no-open']);
      const free = other.port;
      await second.ended('SIGTERM');
      const [third, given] = await start(['serve', '--json', '--port', free]);
      const taken = await startColibri(colibri, ['serve', '--port', free]);
      const wrong = await startColibri(colibri, ['serve', '--port', '70000']);
      await third.ended('SIGTERM');

      expect(JSON.parse(served.stdout)).toEqual({ url: url.href });
      expect(url.hostname).toBe('127.0.0.1');
      expect(url.pathname).toMatch(/^\/[0-9a-f]{64}\/$/);
      expect(other.port).not.toBe(url.port);
      expect(other.pathname).not.toBe(url.pathname);
      expect(given.port).toBe(free);
      expect(taken).toMatchObject({ code: 2 });
      expect(wrong).toMatchObject({ code: 2 });
    },
  );

  test(proving('live.closed', 'answers on no other address of the machine'), async () => {
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((one) => one?.internal === false && one.family === 'IPv4')
      .map((one) => one?.address ?? '');

    const reached = await Promise.all(
      others.map(
        (address) =>
          new Promise<boolean>((resolve) => {
            const socket = connect({ port: Number(url.port), host: address, timeout: 2_000 });
            socket
              .on('connect', () => resolve(true))
              .on('error', () => resolve(false))
              .on('timeout', () => resolve(false));
          }),
      ),
    );

    expect(reached).not.toContain(true);
  });
});

describe('on a terminal', () => {
  const hasScript = spawnSync('script', ['--version']).status === 0;

  test.skipIf(!hasScript)(
    proving('live.closed', 'the browser is given a file of its owner’s, and no program the address'),
    async () => {
      const [tools, seen] = [colibri.path('tools'), colibri.path('opened')];
      mkdirSync(tools);
      // What the desktop would do: look at the file that it is given.
      const opener = `#!/bin/sh\n{ echo "$@"; stat -c %a "$1"; cat "$1"; } > ${seen}.part; mv ${seen}.part ${seen}\n`;
      writeFileSync(join(tools, 'xdg-open'), opener, { mode: 0o755 });
      const command = new StayingCommand(colibri, ['serve'], {
        holdsInput: true,
        wrapper: ['sh', '-c', 'exec script -qec "$*" /dev/null', 'sh'],
        env: { PATH: `${tools}:${process.env.PATH}` },
      });
      await command.printed('Ctrl-C');
      await until(
        () => existsSync(seen),
        20_000,
        () => `nothing was opened: ${command.stdout}`,
      );
      const address = /http:\/\/\S+/.exec(command.stdout)?.[0] ?? '';
      const [args = '', mode, ...content] = readFileSync(seen, 'utf8').split('\n');
      await command.ended('SIGTERM');

      expect(args).toMatch(/^\/\S+\.html$/);
      expect(mode).toBe('600');
      expect(content.join('\n')).toContain(`content="0;url=${address}"`);
      await until(
        () => !existsSync(args),
        10_000,
        () => `${args} is still there`,
      );
    },
  );
});

describe('who does not know the token', () => {
  const flipped = () => url.pathname.replace(/[0-9a-f](?=\/$)/, (digit) => (digit === '0' ? '1' : '0'));

  test.each([
    ['no token', () => '/'],
    ['another token', flipped],
    ['half of it', () => url.pathname.slice(0, 33)],
    ['a longer one', () => `${url.pathname.slice(0, -1)}0/`],
    ['it behind something', () => `/x${url.pathname}`],
    ['a way around', () => `/x/..${url.pathname}`],
    ['it as a query', () => `/?token=${url.pathname.slice(1, -1)}`],
    ['an absolute address', () => `http://127.0.0.1:${url.port}/head`],
    ['the icon', () => '/favicon.ico'],
  ])(proving('live.closed', 'gets nothing with %s'), async (_, path) => {
    const { status, body } = await ask(path());

    expect([status, body]).toEqual([404, '']);
  });
});

describe('who knows it', () => {
  test(
    proving(
      'live.closed',
      'gets a page that nothing else may frame, keep or read, and that may ask only its server',
    ),
    async () => {
      const { status, body, headers } = await ask(url.pathname);
      const policy = String(headers['content-security-policy']);

      expect(status).toBe(200);
      expect(body).toContain('{"live":true}');
      expect(policy).toMatch(
        /^default-src 'none'; connect-src 'self'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/,
      );
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(body).not.toContain(url.pathname.slice(1, -1));
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
      });
      expect(headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  test(
    proving('live.closed', 'is not heard under another name, which is how a rebound name would come'),
    async () => {
      const hosts = [
        'evil.example',
        `evil.example:${url.port}`,
        `localhost:${url.port}`,
        '127.0.0.1',
        `127.0.0.1:${url.port}.evil.example`,
      ];
      const answers = await Promise.all(
        hosts.map((host) => ask(`${url.pathname}head`, { headers: { host } })),
      );

      expect(answers.map(({ status, body }) => [status, body])).toEqual(hosts.map(() => [403, '']));
    },
  );

  test(proving('live.closed', 'is not heard from another page'), async () => {
    const from = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: `http://localhost:${url.port}` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ] as Record<string, string>[];
    const answers = await Promise.all(from.map((headers) => ask(`${url.pathname}head`, { headers })));
    const own = await ask(`${url.pathname}head`, {
      headers: { origin: url.origin, 'sec-fetch-site': 'same-origin' },
    });

    // The page itself: other pages may lead to it, but not fetch it.
    const pages = await Promise.all(from.map((headers) => ask(url.pathname, { headers })));

    expect(answers.map(({ status, body }) => [status, body])).toEqual(from.map(() => [403, '']));
    expect(pages.map(({ status }) => status)).toEqual([403, 403, 403, 200, 200]);
    expect(own.status).toBe(200);
  });

  test(proving('live.closed', 'can only read'), async () => {
    const before = openDatabase(colibri.dbPath, { readOnly: true });
    const count = () => before.prepare('SELECT count(*) AS rows FROM actions').get();
    const rows = count();
    const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'];
    const answers = await Promise.all(methods.map((method) => ask(`${url.pathname}head`, { method })));
    const body = await ask(`${url.pathname}head`, { method: 'POST', body: '{"a":1}' });
    for (const name of ['summary', 'board', 'trail', 'sessions', 'choices'])
      await ask(`${url.pathname}${name}`);

    expect(answers.map(({ status }) => status)).toEqual(methods.map(() => 405));
    expect(body.status).toBe(403);
    expect(count()).toEqual(rows);
    before.close();
  });

  test.each([
    'nothing',
    'constructor',
    'trail?after=-1',
    'trail?after=1e9',
    'trail?since=yesterday',
    `trail?words=${'x'.repeat(600)}`,
    'cards?from=99999999999999999999',
    'since?from=0&to=1',
    'since?from=5&to=2',
    'head?at=x',
  ])(proving('live.bounded', 'is told that %s makes no sense'), async (question) => {
    const { status, body } = await ask(`${url.pathname}${question}`);

    expect(status).toBe(400);
    expect(body.length).toBeLessThan(100);
  });

  test.each([
    ['call?id=%23999999', 'T-none'],
    ['call?id=%2300', ''],
    ['task?id=T-9999', ''],
    ["task?id=T-0001'--", ''],
    ['session?id=A-0001', ''],
    ['trail?words=%25_!%00%E2%80%AE', ''],
    ['board?project=%27%20OR%201=1', ''],
    ['sessions?from=1000000', ''],
  ])(proving('live.bounded', 'gets an answer without rows to %s'), async (question) => {
    const { status, body } = await ask(`${url.pathname}${question}`);

    expect(status).toBe(200);
    expect(body.indexOf('\n')).toBe(body.length - 1);
  });
});

describe('requests that are no requests', () => {
  test(proving('live.bounded', 'are dropped, and the page goes on'), async () => {
    const { pathname, host } = url;
    const sent = [
      '\0\0\0\0\r\n\r\n',
      'GET\r\n\r\n',
      `GET ${pathname}head HTTP/1.1\r\nHost: ${host}\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
      `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET ${pathname}head HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`,
      `GET ${pathname}head HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
      `GET ${pathname}head HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
      `CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n`,
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    ];
    const answers = await Promise.all(sent.map(sendRaw));

    expect(answers.filter((answer) => answer.includes('200 OK'))).toEqual([]);
    expect((await ask(`${pathname}head`)).status).toBe(200);
  });

  test(
    proving(
      'live.bounded',
      'and connections that say nothing or half a request end by themselves, others being answered',
    ),
    async () => {
      const halves = Array.from({ length: 60 }, (_, i) =>
        sendRaw(i % 2 === 0 ? '' : `GET ${url.pathname}head HTTP/1.1\r\nHo`),
      );

      const meanwhile = await ask(`${url.pathname}head`);
      const ended = await Promise.race([Promise.all(halves).then(() => true), sleep(20_000, false)]);

      expect(meanwhile.status).toBe(200);
      expect(ended).toBe(true);
    },
  );

  test(
    proving('live.bounded', 'a reader that does not read holds no more than its own answers'),
    async () => {
      const lines = `GET ${url.pathname}board HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`;
      const sockets = Array.from({ length: 40 }, () => {
        const socket = connect(Number(url.port), '127.0.0.1', () => socket.write(lines.repeat(50)));
        socket.pause().on('error', () => undefined);
        return socket;
      });
      await sleep(500);
      let status = 0;
      for (let tries = 0; tries < 50 && status !== 200; tries += 1) {
        ({ status } = await ask(`${url.pathname}head`));
        await sleep(100);
      }
      for (const socket of sockets) socket.destroy();

      expect(status).toBe(200);
      expect(served.exit).toBeUndefined();
      expect(served.stderr).toBe('');
    },
  );
});

describe('the end', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    proving('live.ends', 'comes with %s'),
    async (signal) => {
      const [command] = await start(['serve', '--json']);

      expect(await command.ended(signal)).toEqual({ code: 0, signal: null });
    },
  );

  test(proving('live.ends', 'comes with the end of its input, and with that of its parent'), async () => {
    const [piped] = await start(['serve', '--json']);
    piped.closeInput();
    expect(await piped.ended()).toEqual({ code: 0, signal: null });

    // A shell that starts it and is killed; its input is a terminal's or nobody's.
    const shell = new StayingCommand(colibri, ['serve', '--json'], {
      holdsInput: true,
      wrapper: ['sh', '-c', '"$@" </dev/null & echo "pid $!"; wait', 'sh'],
    });
    await shell.printed('}');
    const pid = Number(/pid (\d+)/.exec(shell.stdout)?.[1]);
    await shell.ended('SIGKILL');
    const isThere = () => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    await until(
      () => !isThere(),
      10_000,
      () => 'it outlived its parent',
    );
  });
});
