import { board } from './board.ts';
import { call } from './call.ts';
import type { Command } from './command.ts';
import { doctor } from './doctor.ts';
import { init } from './init.ts';
import { log } from './log.ts';
import { obsidian } from './obsidian.ts';
import { show } from './show.ts';

/** Every command, in the order the help lists them. */
export const COMMANDS: readonly Command[] = [init, call, board, log, show, obsidian, doctor];
