import { code, GENERATED, list, page, table } from './markdown.mjs';

/** docs/reference/environment.md */
export function environmentPage({ VARIABLES, MODES, capabilitiesFor }, { tools }) {
  return page(
    '# Environment',
    GENERATED,
    'Colibri is configured by environment variables alone. They are read once, at the start. An empty value counts as not set.',
    table(
      ['Variable', 'Meaning', 'Takes', 'Otherwise'],
      Object.entries(VARIABLES).map(([name, { means, takes, otherwise }]) => [
        code(name),
        means,
        takes,
        otherwise,
      ]),
    ),
    'A value that is not allowed stops the start with exit code 1. The message names every wrong variable at once, what it was and what it takes. A variable that begins with `AMS_` is refused too: it belongs to an older program and would be ignored silently otherwise. A `COLIBRI_` name that is no setting is a warning with the nearest real name.',
    '## Modes',
    'A mode holds until the process ends. `tools/list` shows only what it admits; a call to another tool is recorded and refused.',
    table(
      ['Mode', 'Tools', 'Database'],
      MODES.map((mode) => [
        code(mode),
        admitted(tools, capabilitiesFor(mode)),
        DATABASES[capabilitiesFor(mode).database],
      ]),
    ),
    'In `READONLY` the calls themselves are still recorded in the file. Without a database, calls are recorded on stderr at level `info`.',
    '## The workspace',
    [
      'Relative paths and the default database start at the workspace. It is, in this order:',
      '',
      '1. `COLIBRI_WORKSPACE`;',
      '2. `CLAUDE_PROJECT_DIR`, where a client sets it to an absolute path;',
      '3. upwards from the working directory, the first folder with a `.colibri` or a `.git` in it;',
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
    'If `HOME` is empty, relative or below `/proc`, the home folder that the system has on record is used. Without one, the start is refused: a key never goes into the workspace.',
    '',
    'New folders are made for their owner only (0700), new files too (0600), whatever the umask. A folder named `.colibri` gets a `.gitignore` of its own. If other users can enter it, or the folder of the keys, a start says so and closes it; `colibri doctor` also names a folder of your own that others can write to. Links, pipes and devices in the place of these files are never followed or read.',
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
