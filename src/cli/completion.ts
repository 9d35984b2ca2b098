import { type Command, command, type Options, UsageError } from './command.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The command that prints what a shell needs to complete the others. It is given them, because it is one of them itself. */
export function completionFor(commands: () => readonly Command[], common: Options): Command {
  return command({
    name: 'completion',
    usage: SHELLS.join('|'),
    summary: 'print the completion script for your shell',
    details:
      'bash: add \'eval "$(colibri completion bash)"\' to ~/.bashrc. zsh: add \'eval "$(colibri completion zsh)"\' to ~/.zshrc, after compinit. fish: colibri completion fish > ~/.config/fish/completions/colibri.fish',
    positionals: [1, 1],
    words: SHELLS,
    async run({ positionals: [shell = ''], out }) {
      const script = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell];
      if (script === undefined)
        throw new UsageError(`There are completions for ${SHELLS.join(', ')}, not "${shell}".`);
      out.verbatim(script(commands(), common));
      return 0;
    },
  });
}

interface Option {
  readonly name: string;
  readonly short: string | undefined;
  readonly help: string;
  /** What its value can be; undefined for an option without a value. */
  readonly values: readonly string[] | undefined;
  /** Whether its value can be a file. */
  readonly isFile: boolean;
}

const FILE_VALUES = /FILE|PATH|DIR|CHECKPOINT|KEY/;

function optionsOf({ options }: Command, common: Options): Option[] {
  return Object.entries({ ...options, ...common }).map(([name, { short, value, choices, help }]) => ({
    ...{ name, short, help },
    values: value === undefined ? undefined : (choices ?? []),
    isFile: FILE_VALUES.test(value ?? ''),
  }));
}

/** Every word here is of the table of commands, but a help text may hold any character. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Bash knows words only: those that fit what stands before the cursor. An option's value is looked up by command and option. */
function bashScript(commands: readonly Command[], common: Options): string {
  const names = commands.map(({ name }) => name).join(' ');
  const cases = commands.flatMap((one) => {
    const options = optionsOf(one, common);
    const values = options.flatMap(({ name, short, values: words, isFile }) =>
      words === undefined
        ? []
        : [
            `      ${one.name}:--${name}${short === undefined ? '' : `|${one.name}:-${short}`}) choices=${quoted(words.join(' '))}; files=${isFile} ;;`,
          ],
    );
    const flags = options.map(({ name }) => `--${name}`).join(' ');
    return [
      ...values,
      `      ${one.name}:*) choices=${quoted([flags, ...(one.words ?? [])].join(' '))}; files=true ;;`,
    ];
  });
  return `# Completion of colibri for bash.
_colibri() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" choices files=false
  if [ "$COMP_CWORD" -eq 1 ]; then
    choices=${quoted(names)}
  else
    case "\${COMP_WORDS[1]}:$previous" in
${cases.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ] && [ "$files" = true ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _colibri colibri`;
}

/** Zsh brings what it takes to run the completion of bash. */
function zshScript(commands: readonly Command[], common: Options): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands, common)}`;
}

function fishScript(commands: readonly Command[], common: Options): string {
  const lines = commands.flatMap((one) => {
    const here = quoted(`__fish_seen_subcommand_from ${one.name}`);
    return [
      `complete -c colibri -n __fish_use_subcommand -f -a ${one.name} -d ${quoted(one.summary)}`,
      ...(one.words === undefined
        ? []
        : [`complete -c colibri -n ${here} -a ${quoted(one.words.join(' '))}`]),
      ...optionsOf(one, common).map(({ name, short, help, values, isFile }) => {
        const words = quoted(values?.join(' ') ?? '');
        const value = values === undefined ? '' : isFile ? ' -r' : ` -x -a ${words}`;
        return `complete -c colibri -n ${here} -l ${name}${short === undefined ? '' : ` -s ${short}`} -d ${quoted(help)}${value}`;
      }),
    ];
  });
  return ['# Completion of colibri for fish.', ...lines].join('\n');
}
