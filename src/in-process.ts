import { type Booted, bootStorage } from './boot.ts';
import { systemClock } from './clock.ts';
import type { Config } from './config.ts';
import type { Diagnostics } from './diagnostics.ts';
import { composeCall } from './middleware/compose.ts';
import type { Envelope } from './middleware/envelope.ts';
import { createToolLock } from './middleware/tool-lock.ts';
import type { StorageEngine } from './storage/engine.ts';
import type { Tool } from './tool.ts';
import type { LogSigner } from './trust/signer.ts';

/** The five stages on the configured database, for a person at the command line. */
export interface Stages {
  call(tool: string, args: unknown, actor: string): Promise<Envelope>;
  readonly storage: StorageEngine;
  readonly signer: LogSigner | undefined;
}

/**
 * Opens the database as the server does and runs `work` with the same five stages, marked as coming from the command
 * line. The catalogue is the caller's: the owner's acts are reachable here and nowhere else.
 */
export async function withStages<T>(
  config: Config,
  diagnostics: Diagnostics,
  tools: (booted: Booted) => readonly Tool[],
  work: (stages: Stages) => Promise<T>,
): Promise<T> {
  const booted = await bootStorage({
    config,
    clock: systemClock,
    diagnostics,
    onUncertain: (error) => diagnostics.error(error.message),
  });
  const { opened, storage, signer } = booted;
  try {
    const call = composeCall({
      tools: new Map(tools(booted).map((tool) => [tool.name, tool])),
      lock: createToolLock(),
      clock: systemClock,
      source: 'cli',
      log: diagnostics.error,
      admission: { mode: config.mode, degraded: () => booted.degraded },
      ready: () => Promise.resolve(booted),
    });
    return await work({ call, storage, signer });
  } finally {
    await signer?.stop();
    await opened?.close();
  }
}
