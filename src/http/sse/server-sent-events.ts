// The text of server-sent events, whoever sends them: the headers of a stream, its comments, its lines.
// Writing it to a socket is event-stream.ts and mcp-stream.ts. Source: the HTML standard, "Server-sent events".

export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Headers of every event stream that goes on, names and values in turn: nothing on the way may keep, hold back or compress it. */
export const EVENT_STREAM_HEADERS: readonly string[] = [
  ...['Content-Type', EVENT_STREAM_TYPE, 'Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
];

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** A line that readers skip. */
export function commentText(text: string): string {
  return `: ${text}\n\n`;
}

/**
 * JSON text as what follows `data: `. A line break may only stand between the tokens of it, so that the reader may join
 * the lines again.
 */
export function inLines(data: Uint8Array | string): Uint8Array | string {
  if (typeof data === 'string') return data.replaceAll(/\r\n|\r|\n/g, BREAK);
  return data.includes(LINE_FEED) || data.includes(CARRIAGE_RETURN) ? bytesInLines(data) : data;
}

const BREAK = '\ndata: ';
const BREAK_BYTES = Buffer.from(BREAK);

/** Without a text in between, which may take twice the memory of the bytes. */
function bytesInLines(data: Uint8Array): Uint8Array {
  let breaks = 0;
  for (let at = 0; at < data.length; at += 1) if (isBreak(data[at])) breaks += 1;
  const lines = Buffer.allocUnsafe(data.length + breaks * BREAK.length);
  let end = 0;
  for (let at = 0; at < data.length; at += 1) {
    const byte = data[at] ?? 0;
    if (!isBreak(byte)) {
      lines[end] = byte;
      end += 1;
    } else if (byte === LINE_FEED || data[at + 1] !== LINE_FEED) {
      lines.set(BREAK_BYTES, end);
      end += BREAK.length;
    }
  }
  return lines.subarray(0, end);
}

function isBreak(byte: number | undefined): boolean {
  return byte === LINE_FEED || byte === CARRIAGE_RETURN;
}
