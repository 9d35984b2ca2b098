import { expect } from 'vitest';
import { canonical, sha256, withDatabase } from '../../driver/audit-file.ts';
import { forgeCall, type LogDesk, proves } from '../log-desk.ts';

// Two forged rows of a call that only reads name an altered thought or task as their effect, and every hash fits.

proves(
  ['head.foreign', 'verdict.replay'],
  'V1: a thought altered by the effect of a forged call is found by every verifier and signed by nobody',
  async (desk) => {
    await workAndPing(desk);
    const signed = desk.head;
    forgeEffect(desk, 'thoughts', 'Θ-0001', { recorded_by: 'the boss' });

    const verdict = await desk.verify();
    const server = await desk.colibri.start();
    const chain = await server.call('audit_verify_chain', { task_id: 'T-0001' });
    const health = await desk.health(server);
    await server.closeInput();

    expect(verdict.findings.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['foreign', 'forbidden']),
    );
    expect(verdict.findings.map(({ record }) => record)).toContain('Θ-0001');
    expect(chain.envelope?.data).toMatchObject({ chain_valid: false });
    expect(health).toMatchObject({
      status: 'degraded',
      log: { refused: expect.stringContaining('did not sign') },
    });
    expect(desk.head).toBe(signed);
  },
);

proves(
  ['head.foreign', 'verdict.replay'],
  'V1: a task taken to done by the effect of a forged call, past every gate, is found',
  async (desk) => {
    await workAndPing(desk);
    forgeEffect(desk, 'tasks', 'T-0001', { status: 'done', progress: 100, created_by: 'the boss' });

    const { findings } = await desk.verify();

    expect(findings.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['foreign', 'forbidden']));
    expect(findings.map(({ record }) => record)).toContain('T-0001');
  },
);

async function workAndPing(desk: LogDesk): Promise<void> {
  await desk.work();
  const server = await desk.colibri.start();
  await desk.ok(server, 'server_ping', {});
  await server.closeInput();
}

const DERIVED = ['unmet', 'is_final', 'queue'];

function forgeEffect(desk: LogDesk, table: 'tasks' | 'thoughts', id: string, change: object): void {
  const number = Number(id.slice(2));
  const stored = withDatabase(desk.dbPath, (db) =>
    db.prepare(`SELECT * FROM ${table} WHERE id = ?`).get(number),
  ) as {
    position: number;
    urgency?: number;
  };
  const { urgency: _, ...columns } = stored;
  const row = { ...columns, ...change, position: desk.positions().length + 2 };
  const facts = Object.entries(row).filter(([name]) => !DERIVED.includes(name));
  const hash = sha256(canonical({ ...Object.fromEntries(facts), table }));
  forgeCall(desk, { exit: { effects: [{ table, id, hash, previous: stored.position }] } });
  desk.tamper((db) => {
    const names = Object.keys(row).filter((name) => name !== 'id');
    db.prepare(
      `UPDATE ${table} SET ${names.map((name) => `${name} = @${name}`).join(', ')} WHERE id = @id`,
    ).run(row);
  });
}
