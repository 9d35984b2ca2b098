/** SPEC section 3: the one path of every call, storage under it, the module, the envelopes. */
export const ONE_PATH = {
  'path.order': 'The five stages run in one order for every tools/call, reads and pings included.',
  'lock.fifo': 'Calls are served one at a time in the order they came, whatever tool they name.',
  'batch.commits':
    'Calls that wait together share their commits: the enter rows of all of them, then each handler with its exit row.',
  'batch.alone': 'A call of a batch that is refused or fails leaves the others as they are.',
  'batch.failed':
    'If the transaction of a batch fails, all its writes fail and none is stored; its reads are answered, and each call is closed once.',
  'batch.reads':
    'A point read sees what was written before it in its batch; any other read sees what is committed.',
  'long.order':
    'A call that lets others pass, a long verification, has its enter row before theirs and its exit row when it ends.',
  'lock.released': 'A call that fails leaves the way free for the next.',
  'validate.same-schema': 'What tools/list promises is what validation asks.',
  'enter.survives':
    'The enter row of a mutating call survives a crash of the process before its handler ends.',
  'enter.failure': 'A call that cannot be recorded is not begun: AUDIT_ENTER_FAILED.',
  'dispatch.unknown': 'An unknown tool ends as an error after it was audited.',
  'exit.facts': 'The exit row says outcome, duration, result hash, error code and effects.',
  'exit.failure-of-read': 'Failing to record the end of a read is logged and changes no answer.',
  'exit.failure-of-write':
    'Failing to record the end of a mutating call rolls it back, and the client gets HANDLER_ERROR.',
  'write.whole': 'The writes of a mutating call and its exit row exist together or not at all.',
  'write.rolled-back': 'When a handler fails its writes are gone and an exit row of its own says so.',
  'write.durable': 'A mutating call is answered only after an fsync; nothing acknowledged is lost to a kill.',
  'read.one-commit': 'The two rows of a reading call stand together and cost no fsync.',
  'rejected.pair':
    'Rejected input leaves one pair of rows: schema_valid false, a hash and not the arguments.',
  'unknown.pair': 'An unknown tool leaves one such pair.',
  'storage.full':
    'A full disk is ERR_STORAGE_FULL: nothing written, reads go on, writing works again when there is room.',
  'storage.planted':
    'Where somebody put a row in the place of a new one, a call writes nothing and says what to do.',
  'storage.uncertain':
    'After an I/O error in a commit the answer is ERR_STORAGE_UNCERTAIN, the process stops, and the next start records what happened.',
  'storage.in-place':
    'An answer is true of the file at the path: once that is another file, none or a shorter one, every call is ERR_STORAGE_UNCERTAIN and the process stops.',
  'processes.one-chain': 'Several processes on one file share one unbroken chain without gaps.',
  'processes.unique-ids': 'Ids never repeat, whichever process gives them out.',
  'processes.no-busy': 'No client sees a busy error while others write.',
  'processes.stuck':
    'Only a process stuck for more than 10 s with the lock makes the others answer ERR_STORAGE_BUSY.',
  'processes.slow-reader': 'A slow reader never blocks a writer.',
  'processes.first-start':
    'Processes that start at once, on no file or on a crashed one, all come up healthy.',

  'module.exports': 'src/server.ts has exactly the eleven named exports.',
  'module.cases': 'Every case T-1 … T-26 of its contract has a test.',
  'module.tool-config': 'What registers a tool says whether it mutates.',

  'envelope.success': 'Success is {ok: true, data}.',
  'envelope.pattern-a': 'System, skills and trail fail with {ok: false, error} and isError.',
  'envelope.pattern-b': 'Tasks and proofs carry a domain error inside a success.',
  'envelope.same-json': 'structuredContent is the envelope, and content[0].text is the same JSON.',
  'envelope.unknown-tool': 'An unknown tool is the JSON-RPC error -32602 and names the nearest ones.',
  'envelope.teaches': 'Every message says what was wrong, what was expected and what to do next.',
  'envelope.issues': 'INVALID_PARAMS carries the issues in its details.',
  'envelope.no-stack': 'No answer carries a stack trace or a raw dump of the validator.',
  'repair.arguments': 'Arguments left out, null, or an object as JSON text are taken for what they mean.',
  'repair.null': 'null for an optional field counts as absent.',
  'repair.json-text': 'An object or array sent as JSON text is parsed.',
  'repair.scalars':
    '"42" and "true" are taken where a number or boolean is due, and only where they are exact.',
  'repair.noted': 'A repair is noted in the audit row.',
  'repair.nothing-else': 'Anything else unknown or ill-typed is refused by name.',
} as const;
