/** Every bound of Colibri in one place, with its reason. Beyond one you get an error, never a stall. */
export const LIMITS = Object.freeze({
  /** One JSON-RPC line. In UTF-8 every legal call fits; 100,000 emojis written as escapes do not. */
  lineBytesMax: 1_048_576,
  /** Nesting of arguments. JSON.stringify overflows the stack somewhere past 1,000 levels. */
  depthMax: 64,
  /** Values in the arguments of one call, counted at every depth. The fullest legal metadata has about 8,000. */
  argumentValuesMax: 20_000,
  /** An id of JSON-RPC is echoed back, so it is bounded too. */
  requestIdCharsMax: 256,
  /** Names that end up in every audit row. */
  actorCharsMax: 128,
  toolNameCharsMax: 64,
  /** Unread answers, together with the requests the client sent meanwhile; above this nothing is read, and no call starts. */
  unsentBytesMax: 2_097_152,
  /** Text of a task and of a thought. */
  titleCharsMax: 256,
  descriptionCharsMax: 8_000,
  reasonCharsMax: 2_000,
  thoughtCharsMax: 5_000,
  nameCharsMax: 128,
  /** How a database is called: the path of a file, or the name of one on a server. */
  placeCharsMax: 4_096,
  labelsMax: 20,
  labelCharsMax: 64,
  dependenciesMax: 100,
  estimateHoursMax: 1_000,
  evidenceItemsMax: 100,
  evidenceCharsMax: 512,
  metadataBytesMax: 16_384,
  /** A text that is shown. No call can bring in a longer one, so it came from elsewhere; it is left out, and the output says so. */
  shownTextBytesMax: 1_048_576,
  /** Pages of the listing tools. */
  tasksPageMax: 500,
  nextActionsMax: 100,
  thoughtsPageMax: 500,
  /** Calls in the history of a task, and characters of each text in it; the whole texts are in the task and its trail. */
  historyCallsMax: 50,
  historyTextCharsMax: 200,
  /** Words of one search; the rest of a longer text is ignored. */
  searchWordsMax: 64,
  searchCharsMax: 8_000,
  /** Requests without an answer, including cancelled calls that have not ended; above this nothing is read. */
  pendingRequestsMax: 2_000,
  /** How often a server that is not reading checks whether its client is gone. */
  peekMs: 500,
  /** How long after an answer the event loop waits for the next request without sleeping, while requests come that fast. */
  awakeMsMax: 0.15,
  /** How often the event loop turns meanwhile, at most, whatever the clock says. The time is over after a hundred of them. */
  awakeTurnsMax: 1_000,
  /** How many requests in a row must have come that fast before it does. */
  quickRequestsMin: 8,
  /** Zod issues shown for one rejected call. */
  issuesMax: 20,
  /** Calls that share their commits: beyond 32, a call gets hardly any cheaper, and the first of them waits longer. */
  batchCallsMax: 32,
  /** Characters of their arguments, as JSON: what is held in memory twice, and written by one transaction. */
  batchBytesMax: 262_144,
  /** How long the next batch of writes waits for the answers of the last one to leave, and then for its callers to come back. */
  holdMsMax: 2,
  /** A sync that no other call waits for stops the event loop, unless the last one took longer than this. */
  flushHereMsMax: 1,
  /** How long ago the database was found in its place, at most, where a commit begins without looking again: a look takes as long as a row. */
  lookAgainMs: 1,
  /** How long a writer waits for another process that holds the database. */
  lockWaitMsMax: 10_000,
  /** How long a server waits for a database that was lost during a commit: a failover takes a minute or two. */
  reconnectMsMax: 120_000,
  /** How long an erasure waits for readers of an older state to end. */
  purgeWaitMsMax: 10_000,
  /** Tries for the lock, about a tenth of a millisecond apart, before there are pauses: together about as long as another process takes for one call. */
  lockTriesSoon: 24,
  /** Pause between two tries for the lock, drawn at random below this; below ten times this after many tries. */
  lockRetryMsMax: 5,
  /** Above this size, the write-ahead log is merged into the file and started over: after `quietMs` or, if others are busy, by the next commit. */
  logBytesMax: 6_291_456,
  /** Above this size, the next commit merges it in any case, unless somebody reads from it. */
  logBytesOverdue: 25_165_824,
  /** Readers that block a merge: once the log has grown by this much since, a writer waits briefly for them. */
  logGrowthPatient: 131_072,
  /** Once it has grown by this much, one of them is slow, and no writer waits any longer. */
  logGrowthHopeless: 10_485_760,
  /** Work that few calls should wait for is done when there was no commit for this long. */
  quietMs: 20,
  /** Others are busy if another process has committed, or somebody has searched, less than this long ago. */
  busyMs: 1_000,
  /** How long a stop waits for the call that is running. */
  stopWaitMsMax: 5_000,
  /** After the end of input: calls that have not started by then are refused. */
  drainMsMax: 2_000,
  /** How long a stop waits for the last signature; what is unsigned then is signed after the next start. */
  signAtStopMsMax: 1_500,
  /** How often the server checks that its parent process exists; without other signs, it exits within 3 s. */
  parentCheckMs: 1_000,
  /** Pause before another try to open a database that another process has locked, or that cannot be reached. */
  bootRetryMs: 250,
  /** On a server: how often a process looks after the session that says that it is there. Well below the minute after which it counts as gone. */
  presenceMs: 15_000,
  /** How often a process looks for open calls of machines that are gone. */
  explainEveryMs: 60_000,
  /** The live page: headers of a request, a request as a whole, and a connection on which nothing moves. */
  pageHeaderBytesMax: 8_192,
  pageRequestMsMax: 5_000,
  pageIdleMsMax: 30_000,
  /** Connections, and requests that are answered at once. A browser keeps six connections, whatever the number of tabs. */
  pageConnectionsMax: 128,
  pageRequestsMax: 32,
  /** Unread answers to tabs; above this, the oldest are dropped. */
  pageUnreadBytesMax: 33_554_432,
  /** Rows that a writer remembers from one transaction to the next, while nobody else commits. A task takes about 2 kB. */
  knownRowsMax: 500,
  /** So many new tasks are entered into the index of words together: after `quietMs` or, if others are busy, by the next new task. */
  newTasksDue: 128,
  /** With so many, the next new task enters them in any case. A search looks at each that waits: 10 to 30 ms for all of these. */
  newTasksMax: 1_024,
  /** Read connections kept open; additional ones are closed after use. */
  idleReadersMax: 2,
  /** Time after which a long read yields to the event loop, and a batch commits its transaction. */
  sliceMsMax: 10,
  /** The same for a batch on a database server, where calls wait more than they work. */
  remoteBatchMsMax: 100,
});
