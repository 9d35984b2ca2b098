import { anchor } from './anchor.ts';
import { board } from './board.ts';
import { call } from './call.ts';
import { checkpoint } from './checkpoint.ts';
import type { Command } from './command.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { exportBundle } from './export.ts';
import { init } from './init.ts';
import { log } from './log.ts';
import { obsidian } from './obsidian.ts';
import { prove } from './prove.ts';
import { report } from './report.ts';
import { show } from './show.ts';
import { verify } from './verify.ts';

/** Every command, in the order the help lists them. */
export const COMMANDS: readonly Command[] = [
  init,
  demo,
  call,
  board,
  log,
  show,
  verify,
  checkpoint,
  anchor,
  exportBundle,
  prove,
  report,
  obsidian,
  doctor,
];
