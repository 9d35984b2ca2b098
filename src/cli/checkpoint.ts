import { systemClock } from '../clock.ts';
import { parseCheckpoint } from '../integrity/checkpoint.ts';
import { LogFolder } from '../log/log-folder.ts';
import { type Adoption, adopt } from './adopt.ts';
import { type Command, EXIT } from './command.ts';
import { type Signed, signNow, withWritable } from './signing.ts';

/** Signs the head of the log now and prints the note. */
export const checkpoint: Command = {
  name: 'checkpoint',
  usage: '[--adopt]',
  summary: 'sign the head of the log now and print the signed note',
  details:
    'The note says how many audit rows there are and what their common hash is. Keep it anywhere outside this machine: "colibri verify --against NOTE" then shows whether the history before it was changed. Exit 1 when the log does not extend what was signed before.',
  options: {
    adopt: {
      type: 'boolean',
      help: 'after a refusal: accept the database as it is, and say what protection is given up',
    },
  },
  positionals: [0, 0],
  async run({ values, out, config: readConfig }) {
    const config = readConfig();
    const { adoption, signed } = await withWritable(config, async (storage) => {
      const adopted =
        values.adopt === true ? await adopt(config, storage, new Date(systemClock.now())) : undefined;
      return { adoption: adopted, signed: await signNow(config, storage) };
    });
    const key = signed.note === undefined ? undefined : keyOf(config.configDir, signed.note);
    out.data(describe(signed, adoption, key), () => {
      if (adoption !== undefined) tell(adoption, out.line);
      if (signed.note !== undefined) process.stdout.write(signed.note);
      else out.error(signed.refused);
    });
    return signed.note === undefined ? EXIT.found : EXIT.fine;
  },
};

function describe(signed: Signed, adoption: Adoption | undefined, key: string | undefined): object {
  return {
    ...(signed.note === undefined
      ? { refused: signed.refused }
      : { ...headOf(signed.note), key, note: signed.note }),
    ...(adoption !== undefined && {
      adopted: adoption.reason !== undefined,
      reason: adoption.reason,
      given_up: adoption.givenUp,
    }),
  };
}

function tell(adoption: Adoption, line: (text?: string) => void): void {
  if (adoption.reason === undefined) {
    line('There was nothing to adopt: the database extends what was signed last.');
  } else {
    line(`It was refused because ${adoption.reason}`);
    for (const sentence of adoption.givenUp) line(sentence);
    line('Servers that run now go on refusing until they are started again.');
  }
  line();
}

function headOf(note: string): { origin: string; size: number; root: string } {
  const { origin, size, root } = parseCheckpoint(note.slice(0, note.indexOf('\n\n') + 1));
  return { origin, size, root };
}

function keyOf(configDir: string, note: string): string | undefined {
  return new LogFolder(configDir, headOf(note).origin).verifierKey();
}
