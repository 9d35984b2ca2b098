import { expect } from 'vitest';
import type { Message } from '../../driver/message.ts';
import { forgeCall, proves, sizeIn } from '../log-desk.ts';

// A call that the rules allow, appended by somebody without the key. It is no other finding than that nobody signed it.

proves(
  ['head.foreign', 'checkpoint.unsigned'],
  'V2: a row appended under a running server is named and signed over neither by it nor by the next start',
  async (desk) => {
    await desk.work();
    const server = await desk.colibri.start();
    await desk.ok(server, 'server_ping', {});
    const signed = desk.positions().length;
    forgeCall(desk);
    const appended = desk.positions().length;

    const found = await desk.verify();
    const answer = await server.call('thought_record', {
      task_id: 'T-0001',
      type: 'plan',
      content: 'goes on',
    });
    const running = await desk.health(server);
    await server.closeInput();
    const next = await desk.refusalAtStart();

    expect(found.findings).toEqual([
      expect.objectContaining({ kind: 'foreign', record: `#${signed + 1} to #${appended}` }),
    ]);
    expect(found).toMatchObject({ intact_through: signed, checkpointed_through: signed });
    expect(answer.envelope).toMatchObject({ ok: true });
    expect(unsignedIn(answer.message)).toContain('did not sign');
    expect(running.status).toBe('degraded');
    expect(next.health.log.refused).toContain('did not sign');
    expect(sizeIn(desk.head)).toBe(signed);
    expect(sizeIn(desk.lastSigned)).toBe(signed);
  },
);

proves(
  ['head.foreign', 'checkpoint.adopt'],
  'V2: only the owner accepts such a row, on the record, and then the log is signed again',
  async (desk) => {
    await desk.work();
    const server = await desk.colibri.start();
    await desk.ok(server, 'server_ping', {});
    await server.closeInput();
    forgeCall(desk);

    const adopted = await desk.run('checkpoint', '--adopt', '--json');
    await desk.moreWork();
    const verdict = await desk.verify();

    expect(JSON.parse(adopted.stdout)).toMatchObject({ adopted: true });
    expect(verdict).toMatchObject({ ok: true, checkpointed_through: verdict.size });
    expect(desk.colibri.readAudit().rows).toContainEqual(
      expect.objectContaining({ tool: 'owner_adopt', source: 'cli' }),
    );
  },
);

function unsignedIn(message: Message): string | undefined {
  return (message.result?._meta as Record<string, string> | undefined)?.['colibri/unsigned'];
}
