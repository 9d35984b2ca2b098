import type { ForgedLog } from '../forge.ts';
import * as legal from '../legal.ts';
import { type Forgery, forbidden, row } from './forgery.ts';

// Lies about where the log went: what follows its end, what pretends to be its beginning, and who ended it.

function transfers(
  id: string,
  forge: (log: ForgedLog) => ReturnType<Forgery['forge']>,
  more: Partial<Forgery> = {},
): Forgery {
  return { id: `transfer: ${id}`, holds: 'everywhere', forge, ...more };
}

export const TRANSFER_FORGERIES: readonly Forgery[] = [
  transfers('a call follows it', (log) => {
    legal.transfer(log);
    legal.create(log);
    return row('forbidden', log.last.fields.sequence_no, 'tool');
  }),
  transfers('a read comes before the receipt', (log) => {
    legal.transfer(log);
    const { sequence_no } = legal.read(log).fields;
    legal.receive(log);
    return [row('forbidden', sequence_no, 'tool'), row('forbidden', log.last.fields.sequence_no, 'tool')];
  }),
  transfers('a log is received that nobody transferred', (log) => {
    legal.receive(log);
    return row('forbidden', log.last.fields.sequence_no, 'tool');
  }),
  transfers('it is received twice', (log) => {
    legal.transfer(log);
    legal.receive(log);
    legal.receive(log);
    return row('forbidden', log.last.fields.sequence_no, 'tool');
  }),
  transfers('it counts other rows', (log) => {
    const exit = legal.transfer(log, { result: { rows: 1 } });
    return forbidden(exit, 'rows');
  }),
  transfers('it answers with another place', (log) => {
    const exit = legal.transfer(log, { result: { to: 'postgres:other' } });
    return forbidden(exit, 'to');
  }),
  transfers('by a client', (log) => {
    const exit = legal.transfer(log, { source: 'mcp' });
    return row('forbidden', exit.fields.sequence_no, 'source');
  }),
];
