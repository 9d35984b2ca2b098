// Loaded before the server by NODE_OPTIONS: a timer that nobody clears keeps it alive, and nothing ends it.
setInterval(() => undefined, 1_000);
process.exit = () => undefined;
