/** The longest line a bundle may hold. A call that finishes a task others wait for writes one effect for each. */
const LINE_BYTES_MAX = 67_108_864;

const NEWLINE = 0x0a;

/** A stream by a stranger that cannot be taken apart into lines. */
export class LinesError extends Error {
  override readonly name = 'LinesError';
}

/** The lines of a file, without their newlines. The last one must have one too: a file that was cut off does not pass. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      yield rest.length === 0 ? piece : Buffer.concat([...rest, piece]);
      rest = [];
      restBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    rest.push(chunk.subarray(start));
    restBytes += chunk.length - start;
    if (restBytes > bytesMax) throw new LinesError(`a line is longer than ${bytesMax} bytes`);
  }
  if (restBytes > 0) throw new LinesError('the last line does not end');
}

/** Lines of text gathered into chunks that are worth a write. */
export async function* chunked(
  lines: AsyncIterable<string> | Iterable<string>,
  bytes = 262_144,
): AsyncGenerator<Buffer> {
  let text = '';
  for await (const line of lines) {
    text += line;
    if (text.length < bytes) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}
