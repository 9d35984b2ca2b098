/** SPEC section 3 and DESIGN 3.12: what somebody else made must not act. */
export const NOTHING_FROM_OUTSIDE = {
  'programs.powerless': 'No program that a repository names is run, by whichever key, in whichever layout.',
  'programs.located': 'A program is not looked for in the current folder, nor among those of the project.',
  'programs.environment': 'A program gets a clean environment: no variable from outside leads it elsewhere.',
  'programs.bounded':
    'A program that does not answer in ten seconds, or git that wants 256 MB at once, is ended, and the answer says so.',
  'programs.links':
    'Git is not let write through a link, and moves no reference but the one for checkpoints.',
  'programs.safe-directory':
    'A repository of another user is not read; the message says so and names the command that allows it.',
  'files.no-links':
    'No file or folder is written, changed or deleted through a link or a journal that somebody planted.',
  'files.no-hang': 'A pipe, a device or an endless file in the place of a file of ours keeps nobody waiting.',
  'files.modes': 'New files are 0600 and new folders 0700, whatever the umask.',
  'files.open-folder': 'A folder that others can enter is reported, and closed where it is Colibri’s own.',
  'files.commands': 'A command that Colibri recommends is safe to paste, whatever a folder is called.',
  'files.home': 'An empty or relative HOME never puts a key into the workspace.',
} as const;
