import { call } from './call.ts';
import type { Command } from './command.ts';

/** Every command, in the order the help lists them. */
export const COMMANDS: readonly Command[] = [call];
