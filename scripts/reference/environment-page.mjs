import { code, GENERATED, list, page, table } from './markdown.mjs';

/** docs/reference/environment.md */
export function environmentPage({ VARIABLES, MODES, capabilitiesFor }, { tools }) {
  return page(
    '# Environment',
    GENERATED,
    'Colibri is configured only through environment variables. They are read once, at the start. An empty value counts as not set.',
    table(
      ['Variable', 'Meaning', 'Takes', 'Default'],
      Object.entries(VARIABLES).map(([name, { means, takes, otherwise }]) => [
        code(name),
        means,
        takes,
        otherwise,
      ]),
    ),
    'If a value is not valid, the server exits with code 1 and a command with code 2 (`colibri doctor`, which reports it as a problem, with 1). The message lists every wrong variable, its value and what is allowed. A variable that begins with `AMS_` is also refused: it belongs to an older program and would otherwise be ignored silently. For an unknown `COLIBRI_` name, the server and `colibri doctor` give a warning with the nearest setting.',
    '## Modes',
    'The mode does not change while the process runs. `tools/list` shows only the tools that it allows; a call to another tool is recorded and refused.',
    table(
      ['Mode', 'Tools', 'Database'],
      MODES.map((mode) => [
        code(mode),
        admitted(tools, capabilitiesFor(mode)),
        DATABASES[capabilitiesFor(mode).database],
      ]),
    ),
    'In `READONLY` mode, calls are still recorded in the file. Without a database, calls are recorded on stderr at level `info`.',
    '## The workspace',
    [
      'Relative paths and the default database are relative to the workspace, which is the first of these:',
      '',
      '1. `COLIBRI_WORKSPACE`;',
      '2. `CLAUDE_PROJECT_DIR`, if a client sets it to an absolute path;',
      '3. the nearest folder, from the working directory upwards, that contains `.colibri` or `.git`;',
      '4. the per-user data folder, because desktop clients start servers in the root folder.',
    ].join('\n'),
    table(
      ['Platform', 'Data', 'Keys and what was last signed'],
      [
        [
          'Linux',
          '`$XDG_DATA_HOME/colibri`, else `~/.local/share/colibri`',
          '`$XDG_CONFIG_HOME/colibri`, else `~/.config/colibri`',
        ],
        ['macOS', '`~/Library/Application Support/colibri`', '`~/Library/Application Support/colibri`'],
        ['Windows', '`%LOCALAPPDATA%\\colibri`', '`%APPDATA%\\colibri`'],
      ],
    ),
    'If `HOME` is empty, relative or below `/proc`, the home folder from the system’s user database is used. If there is none, the start is refused, because a key must never be in the workspace.',
    '',
    'New folders and files are accessible only to their owner (0700 and 0600), whatever the umask. A folder named `.colibri` gets its own `.gitignore`. If other users can enter it or the key folder, the next start says so and closes it; `colibri doctor` also reports other folders of yours that others can write to. Links, pipes and devices in place of these files are never followed or read.',
  );
}

const DATABASES = {
  file: 'the file',
  memory: 'in memory; nothing touches the disk',
  none: 'none is opened',
};

function admitted(tools, { admits }) {
  const names = tools.filter(admits).map((tool) => tool.name);
  if (names.length === tools.length) return `all ${tools.length}`;
  return list(names);
}
