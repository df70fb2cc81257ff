// The text of server-sent events, whoever sends them: the headers of a stream, its comments, its lines.
// Writing it to a socket is event-stream.ts and mcp-stream.ts. Source: the HTML standard, "Server-sent events".

export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Headers of every event stream that goes on, names and values in turn: nothing on the way may keep, hold back or compress it. */
export const EVENT_STREAM_HEADERS: readonly string[] = [
  ...['Content-Type', EVENT_STREAM_TYPE, 'Cache-Control', 'no-cache, no-transform'],
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
  if (typeof data !== 'string') {
    if (!data.includes(LINE_FEED) && !data.includes(CARRIAGE_RETURN)) return data;
    return inLines(Buffer.from(data).toString('utf8'));
  }
  return data.replaceAll(/\r\n|\r|\n/g, '\ndata: ');
}
