import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, test } from 'vitest';
import { Playground } from '../../driver/playground.ts';

const SERVER = fileURLToPath(new URL('../../../dist/server.js', import.meta.url));

/** Starts the server as a host does, with the client of one generation of the official SDK. */
const CLIENTS = {
  'the client of SDK 2': async (env: Record<string, string>) => {
    const client = new Client({ name: 'second', version: '1' });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [SERVER], env, stderr: 'ignore' }),
    );
    return client;
  },
  'the client of SDK 1': async (env: Record<string, string>) => {
    const client = new ClientV1({ name: 'first', version: '1' });
    await client.connect(
      new TransportV1({ command: process.execPath, args: [SERVER], env, stderr: 'ignore' }),
    );
    return client;
  },
};

/** For each tool, a call that its domain refuses or that is wrong for any other reason; most tools have both. */
const REFUSED: readonly [string, object, string][] = [
  ['task_get', { task_id: 'T-9999' }, 'ERR_TASK_NOT_FOUND'],
  ['task_update', { task_id: 'T-0001', status: 'done' }, 'ERR_INVALID_TRANSITION'],
  ['task_create', { title: 'a', project: 'demo', parent_id: 'T-9999' }, 'ERR_TASK_NOT_FOUND'],
  ['task_next_actions', { project: 'nowhere' }, 'ERR_PROJECT_NOT_FOUND'],
  ['merkle_root', { session_id: 'A-9999' }, 'ERR_SESSION_NOT_FOUND'],
  ['merkle_finalize', { session_id: 'A-9999' }, 'ERR_SESSION_NOT_FOUND'],
  ['audit_session_start', { task_id: 'T-9999', auditor_id: 'me' }, 'ERR_TASK_NOT_FOUND'],
  ['thought_record', { task_id: 'T-9999', type: 'plan', content: 'x' }, 'HANDLER_ERROR'],
  ['audit_verify_chain', { task_id: 'T-9999' }, 'HANDLER_ERROR'],
  ['task_list', { limit: 'many' }, 'INVALID_PARAMS'],
  ['skill_list', { query: 'x' }, 'INVALID_PARAMS'],
  ['server_ping', { loud: true }, 'INVALID_PARAMS'],
];

type Answer = { readonly isError?: boolean; readonly structuredContent?: unknown };

describe.each(Object.entries(CLIENTS))('A4: %s', (_, connect) => {
  test('sees every refusal as an error and every success as none', async () => {
    const colibri = new Playground();
    const client = await connect({ ...colibri.environment });
    try {
      const call = async (name: string, args: object) =>
        (await client.callTool({ name, arguments: { ...args } })) as Answer;

      const made = await call('task_create', { title: 'a', project: 'demo' });
      expect(made).toMatchObject({ structuredContent: { ok: true, data: { task_id: 'T-0001' } } });
      expect(made.isError).toBeUndefined();
      for (const [tool, args, code] of REFUSED) {
        const answer = await call(tool, args);
        const error = { ok: false, error: { code } };
        const isPatternB = code.startsWith('ERR_');
        expect(answer, tool).toMatchObject({
          isError: true,
          structuredContent: isPatternB ? { ok: true, data: error } : error,
        });
      }
    } finally {
      await client.close();
      expect(await colibri.dispose()).toEqual([]);
    }
  });

  test('gets what is no domain error in pattern A from every tool', async () => {
    const colibri = new Playground();
    mkdirSync(dirname(colibri.dbPath), { recursive: true });
    writeFileSync(colibri.dbPath, 'not a database');
    const client = await connect({ ...colibri.environment });
    try {
      for (const [name, args] of REFUSED.filter(([, , code]) => code !== 'INVALID_PARAMS')) {
        const answer = (await client.callTool({ name, arguments: { ...args } })) as Answer;
        expect(answer, name).toMatchObject({
          isError: true,
          structuredContent: {
            ok: false,
            error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_INIT_FAILED: /) },
          },
        });
      }
    } finally {
      await client.close();
      expect(await colibri.dispose()).toEqual([]);
    }
  });
});
