/**
 * What is known of a row's cost, for the case that its bar is missed: by the id of the row. The shares are from processor
 * profiles of 6,000 calls and from counting system calls; they are not measured again with each run.
 */
const STATE_TWICE =
  'The log itself stays below the bar. What is added or changed lies in the file a second time, as state that can be searched and listed, with its indexes; that is counted here.';

const IN_BATCHES =
  'Calls that wait together share two signed commits and one sync, in batches of up to 32. What is left is processor time on one thread. For a new task, SQLite’s statements take about a quarter of it, its log another tenth, hashes and signatures a tenth, garbage collection a tenth, and the rest is lines, JSON, validation and rules.';

export const WHERE = {
  'cold-start-initialize':
    'The bundle is larger than the bare one by schemas, domains and the log, and Node has to read and compile it.',
  'cold-start-call':
    'The first call waits for the database: SQLite’s library is loaded, the schema is checked, and the first rows are written.',
  read: 'A read is recorded as well: two audit rows, the kept arguments and one signed commit to the write-ahead log, and a look whether the path still leads to the open file. On a fast virtual machine, the bare call is answered before the client’s core falls asleep; after a quarter of a millisecond it has, and waking it takes another 30 µs.',
  write:
    'A write has two signed commits, one that the call is seen and one with its effect, and one `fdatasync`.',
  'in-flight-task_get':
    'On one thread. Of about 52 µs, reading the task takes 9, two audit rows with their hashes 10, the signed commit 9, and lines, JSON and validation the rest.',
  'in-flight-task_create': IN_BATCHES,
  'in-flight-task_update': IN_BATCHES,
  'in-flight-thought_record': IN_BATCHES,
  'rivals-two':
    'The faster ones sync nothing. A write of Colibri has two signed commits and waits for the disk; when another process has written last, it also reads again what it knew of the rows. Both processes and the client share two cores.',
  'rivals-two-first':
    'The faster ones sync nothing, and run less code for a write. In its first thousand calls, V8 compiles Colibri’s code for about half a second, on the two cores that both processes and the client share; until then a write takes up to twice the processor time.',
  'postgres-write':
    'Half of it is processor time of the server process, two signatures among it; PostgreSQL takes the other half for a dozen statements and two commits.',
  'postgres-in-flight':
    'Calls that wait together share lock, head, questions and commits. What is left is processor time on one thread.',
  'postgres-far': 'It is three round trips. The rest is work, as in the write over a socket.',
  'growth-task_next_actions':
    'An empty database has nothing to answer with; the full one answers with 20 tasks. Reading and writing down these is the difference, not the size: see the figures at 1,000 tasks.',
  'verify-log':
    'On one thread. Of 3.8 µs a row, reading is 0.9, the hash of its text 0.6, its link, leaf and node 0.5, and taking its text apart to see that it is one that Colibri writes 0.9.',
  'verify-all':
    'The audit rows take nearly half of it. Reading and hashing what lies beside them takes a sixth, reading and hashing each row of state another, and SQLite’s look at indexes and pages as much.',
  wait: 'Verification works in short slices and lets other calls in between. A call waits for a slice, and on a busy machine both wait for a core.',
  'memory-calls':
    'It is room that V8 takes for its heap before it collects; the bare server takes more, as its reference shows.',
  'tools-list':
    'The list is schema for the most part: names, types, bounds and annotations of 14 tools, with one sentence each.',
  'disk-thought': STATE_TWICE,
  'disk-task': STATE_TWICE,
};
