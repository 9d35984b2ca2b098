/** SPEC section 2: configuration, protocol, boot, modes, stop. */
export const START_MODES_STOP = {
  'config.variables-only':
    'Settings come from COLIBRI_* variables; a name that only looks like one is ignored with a warning.',
  'config.frozen': 'The environment is read once, at the start, into something nobody can change.',
  'config.mode':
    'COLIBRI_MODE takes FULL, READONLY, TEST and MINIMAL, is FULL when unset, and refuses the rest.',
  'config.db-path': 'COLIBRI_DB_PATH names the database file; a relative one starts at the workspace.',
  'config.project': 'COLIBRI_PROJECT is the project of a call that may leave it out and does.',
  'config.projects': 'With COLIBRI_PROJECTS only the listed projects exist.',
  'config.workflow': 'COLIBRI_WORKFLOW decides the workflow of a task that names none; kanban when unset.',
  'config.agent-id': 'COLIBRI_AGENT_ID is the actor of every record.',
  'config.skills-dir':
    'COLIBRI_SKILLS_DIR is where skills are read from; .agents/skills, then .claude/skills, in the workspace when unset, and never the home folder.',
  'config.startup-timeout': 'COLIBRI_STARTUP_TIMEOUT_MS bounds the whole boot.',
  'config.log-level': 'COLIBRI_LOG_LEVEL decides how much goes to stderr, and nothing else.',
  'config.refusal':
    'An invalid value ends the start with exit 1 and names the variable, what it was and what is allowed.',
  'config.ams': 'A set AMS_* variable ends the start with exit 1 and is named with its value.',
  'workspace.client': 'The workspace is the folder the client names in CLAUDE_PROJECT_DIR.',
  'workspace.nearest':
    'Else it is the nearest folder at or above the working directory that holds .colibri or .git.',
  'workspace.user-folder': 'Else it is the per-user data folder: desktop clients start servers in /.',
  'workspace.worktree':
    'In a git worktree the default database is that of the main worktree, and evidence comes from the worktree itself.',
  'workspace.gitignore': 'The folder .colibri keeps itself out of git.',
  'files.private': 'The database’s folder is created 0700 and its files are 0600, whatever the umask.',

  'protocol.handshake':
    'Every revision that opens with initialize is served, in its own version where it is known.',
  'protocol.modern':
    'Revision 2026-07-28 is served without a handshake: server/discover, and each request on its own.',
  'protocol.modern-results':
    'Modern results say they are complete and which server made them; lists say how long they keep.',
  'protocol.both-eras':
    'One process speaks whichever era its client opens with; a probe of the other era is an error, not an end.',
  'protocol.version-per-request':
    'An unsupported protocol version is -32022 with the supported ones, first or later.',
  'protocol.envelope': 'A modern request without the required _meta is refused with the reason.',
  'protocol.one-answer': 'Every request with an id gets exactly one answer.',
  'protocol.parse-error': 'A line that is not JSON is -32700.',
  'protocol.invalid-request': 'A malformed message is -32600, with its id where one can be read.',
  'protocol.tolerant-framing':
    'Unknown top-level keys, Windows line ends, a byte order mark, blank lines and any chunking are taken.',
  'protocol.utf8': 'A line that is not UTF-8 is refused, never quietly mended.',
  'protocol.line-limit': 'A line over the limit is answered, under its id, by an error that names the limit.',
  'protocol.stays-up': 'Whatever comes in, the server stays up and answers the next request.',
  'protocol.unknown-method': 'A method it does not have is -32601.',
  'protocol.cancelled': 'After a cancellation nothing more is sent for that id.',
  'protocol.bounded-memory':
    'Memory stays bounded under hostile input and under a client that does not read.',
  'protocol.instructions': 'The instructions tell a model in a few sentences how to work with the tools.',
  'protocol.pure-stdout': 'stdout carries JSON-RPC and nothing else, ever.',

  'surface.closed': 'The surface is the fourteen tools and nothing else: no resources, no prompts.',
  'surface.fixed': 'tools/list has one fixed order and does not vary by connection or era.',

  'boot.transport-first': 'initialize and tools/list are answered before the database is open.',
  'boot.gate': 'A tools/call that arrives early waits and is then served.',
  'boot.order': 'What a crash left is explained before the first call is served.',
  'boot.timeout': 'Past the startup limit the process ends with exit 75 and says why.',
  'boot.degraded':
    'With a database that cannot be opened the server stays up: ping and health answer, health says degraded and why.',
  'boot.degraded-tools':
    'Then every other tool answers ERR_INIT_FAILED with the reason and a remedy, in its family’s pattern.',
  'boot.untouched':
    'A file it cannot use is left byte for byte as it was; it never starts over on an empty one.',
  'runtime.no-sqlite':
    'Where no usable SQLite can be loaded, the server and every command say so, and what to do; exit 2, 1 from doctor.',
  'runtime.same-findings':
    'Texts that are not UTF-8 or hold U+0000, and integers beyond 2^53, give the same findings on every Node.',
  'runtime.quiet': 'No Node prints a warning of its own on the terminal.',
  'boot.locked': 'A server that starts on a locked file answers, and serves as soon as the file is free.',
  'boot.own-schema':
    'Tables, indexes, triggers and views are exactly those of this version; otherwise the database is not used and the error says what is unexpected.',
  'boot.skills': 'Skills are loaded before the gate opens.',

  'modes.full': 'FULL admits every tool and works on the file.',
  'modes.readonly': 'READONLY admits the tools that do not mutate, on the file, and still writes audit rows.',
  'modes.test': 'TEST admits every tool, in memory; nothing touches the disk.',
  'modes.minimal': 'MINIMAL admits ping and health, opens no database and audits to the log.',
  'modes.fixed': 'The mode is fixed for the life of the process.',
  'modes.one-flag': 'The flag that says a tool mutates drives gating and annotations alike.',
  'modes.list': 'tools/list shows the admitted tools only.',
  'modes.denied':
    'A call to a tool that is not admitted is audited and answered HANDLER_ERROR with TOOL_NOT_ADMITTED.',

  'stop.end-of-input':
    'End of stdin: what was received is answered, the database is merged and closed, exit 0.',
  'stop.signal': 'SIGTERM and SIGINT: no new call, the running one ends and answers, exit 0.',
  'stop.bounded': 'A stop waits for the running call 5 s at most.',
  'stop.merged': 'A stop leaves no write-ahead log behind.',
  'stop.answered': 'A call that is not begun because of a stop is told so.',
  'stop.no-orphan': 'A client that dies, whichever way, leaves no process behind.',
  'stop.second-signal': 'A second signal ends the process at once.',
} as const;
