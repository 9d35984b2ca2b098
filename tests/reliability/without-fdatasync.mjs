// Loaded before the server by NODE_OPTIONS: makes its fdatasync do nothing, to see whether a test would notice.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

fs.fdatasync = (_fd, callback) => setImmediate(callback, null);
fs.fdatasyncSync = () => undefined;
syncBuiltinESMExports();
