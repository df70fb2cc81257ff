// The format of server-sent events: headers of a stream, comments, lines of data, and how an event is written to a socket. Source: the HTML standard, "Server-sent events".

import type { ServerResponse } from 'node:http';
import { latin1Of, SMALL_BYTES } from '../respond.ts';

export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Headers of every open event stream, as `[name, value, …]`: no proxy may store, buffer or compress it. */
export const EVENT_STREAM_HEADERS: readonly string[] = [
  ...['Content-Type', EVENT_STREAM_TYPE, 'Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
];

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export const END = '\n\n';

/** A line that clients ignore. */
export function commentText(text: string): string {
  return `: ${text}\n\n`;
}

/** Heads that can be written in one latin1 text with the bytes of an event. */
const ASCII = /^[\n\x20-\x7e]*$/;

/** Writes one event; `head` is everything before its data. One write to the socket takes less CPU than three. */
export function writeEvent(response: ServerResponse, head: string, data: Uint8Array | string): void {
  const lines = inLines(data);
  if (typeof lines === 'string') response.write(`${head}${lines}${END}`);
  else if (lines.byteLength <= SMALL_BYTES && ASCII.test(head)) {
    response.write(`${head}${latin1Of(lines)}${END}`, 'latin1');
  } else {
    // Node would copy the bytes to write them together with the text.
    response.cork();
    response.write(head);
    response.write(lines);
    response.write(END);
    response.uncork();
  }
}

/** JSON text for the field `data`. Line breaks occur only between its tokens, so that a client can join the lines again. */
export function inLines(data: Uint8Array | string): Uint8Array | string {
  if (typeof data === 'string') return data.replaceAll(/\r\n|\r|\n/g, BREAK);
  return data.includes(LINE_FEED) || data.includes(CARRIAGE_RETURN) ? bytesInLines(data) : data;
}

const BREAK = '\ndata: ';
const BREAK_BYTES = Buffer.from(BREAK);

/** Without intermediate text, which may take twice the memory of the bytes. */
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
