// Reads server-sent events from bytes as they arrive. The data of an event is a view of the bytes of the socket, so that a large
// result is neither decoded nor copied. The readers of a stream interpret the events. Source: WHATWG HTML, "Server-sent events".

import { BYTES_PER_PIECE, inOwnMemory } from '../../domain/memory/held-bytes.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const NEWLINE = Buffer.from('\n');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Letters of the longest known field name; longer names are not decoded. */
const MAX_NAME_LENGTH = 'event'.length;
/** Longer types are cut: no known one is as long, and the budget of incomplete answers does not count them. */
const MAX_TYPE_LENGTH = 64;

/** The bytes that count for each line of data besides its own, so that a million empty lines are not free. */
const LINE_BYTES = 64;

const HEADER_VALUE = /^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]{0,1022}[\x21-\x7e\x80-\xff])?$/;

/** A reader for one stream. It holds at most `limitBytes` of an incomplete event. */
export class SseReader {
  readonly #limitBytes: number;
  readonly #onEvent: (data: Buffer, type: string) => void;
  /** The pieces of a line whose end has not arrived. */
  #pieces: Buffer[] = [];
  #data: Buffer[] = [];
  /** The first of them, which came with earlier chunks. */
  #keptLines = 0;
  #type = '';
  heldBytes = 0;
  #hasStarted = false;
  #endedByReturn = false;
  retryMs: number | undefined;
  /** Id of the current event, and of the following ones without an id. */
  #eventId = '';
  /** Id of the last complete event that the stream can be resumed after; '' when there is none. */
  lastEventId = '';

  constructor(limitBytes: number, onEvent: (data: Buffer, type: string) => void) {
    this.#limitBytes = limitBytes;
    this.#onEvent = onEvent;
  }

  /** Takes the next bytes and reports the events that they complete. False once an event exceeds the limit. */
  push(chunk: Buffer): boolean {
    let start = 0;
    // CR LF may be split over two chunks: the LF belongs to the line that the CR ended.
    if (this.#endedByReturn && chunk.length > 0) {
      this.#endedByReturn = false;
      if (chunk[0] === LINE_FEED) start = 1;
    }
    let feed = chunk.indexOf(LINE_FEED, start);
    let carriage = chunk.indexOf(CARRIAGE_RETURN, start);
    while (feed !== -1 || carriage !== -1) {
      const byReturn = carriage !== -1 && (feed === -1 || carriage < feed);
      const end = byReturn ? carriage : feed;
      const isEmpty = this.#endLine(chunk.subarray(start, end));
      start = end + 1;
      // Further empty lines end nothing, and a compressed body may have millions of them.
      while (isEmpty && (chunk[start] === LINE_FEED || chunk[start] === CARRIAGE_RETURN)) start += 1;
      if (byReturn) {
        if (start === chunk.length) this.#endedByReturn = true;
        else if (chunk[start] === LINE_FEED) start += 1;
      }
      if (feed !== -1 && feed < start) feed = chunk.indexOf(LINE_FEED, start);
      if (carriage !== -1 && carriage < start) carriage = chunk.indexOf(CARRIAGE_RETURN, start);
    }
    if (start < chunk.length) {
      this.#pieces.push(inOwnMemory(chunk.subarray(start)));
      this.heldBytes += chunk.length - start + BYTES_PER_PIECE;
    }
    if (this.#data.length > this.#keptLines) this.#keepLines();
    return this.heldBytes <= this.#limitBytes;
  }

  /** Keeps the lines of an event whose end has not arrived, without the comments around them. */
  #keepLines(): void {
    const lines = this.#data.splice(this.#keptLines);
    this.#data.push(inOwnMemory(joinLines(lines)));
    this.#keptLines = this.#data.length;
    this.heldBytes += BYTES_PER_PIECE;
  }

  /** Whether the line is empty. */
  #endLine(rest: Buffer): boolean {
    let line = rest;
    if (this.#pieces.length > 0) {
      for (const piece of this.#pieces) this.heldBytes -= piece.length + BYTES_PER_PIECE;
      this.#pieces.push(rest);
      line = Buffer.concat(this.#pieces);
      this.#pieces = [];
    }
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      if (line.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK))
        line = line.subarray(BYTE_ORDER_MARK.length);
    }
    const isEmpty = line.length === 0;
    if (isEmpty) this.#endEvent();
    else this.#field(line);
    return isEmpty;
  }

  #field(line: Buffer): void {
    const colon = line.indexOf(COLON);
    if (colon === 0) return; // a comment
    const nameEnd = colon === -1 ? line.length : colon;
    const name = line.toString('latin1', 0, Math.min(nameEnd, MAX_NAME_LENGTH + 1));
    let from = Math.min(nameEnd + 1, line.length);
    if (line[from] === SPACE) from += 1;
    if (name === 'data') {
      this.#data.push(line.subarray(from));
      this.heldBytes += line.length - from + LINE_BYTES;
    } else if (name === 'event') {
      this.#type = line.toString('utf8', from, from + MAX_TYPE_LENGTH);
    } else if (name === 'retry') {
      const digits = line.toString('latin1', from);
      if (/^\d{1,9}$/.test(digits)) this.retryMs = Number(digits);
    } else if (name === 'id') {
      // Sent back in a header, byte by byte; an id that a header cannot hold counts as none.
      const id = line.toString('latin1', from);
      this.#eventId = HEADER_VALUE.test(id) ? id : '';
    }
  }

  #endEvent(): void {
    const type = this.#type === '' ? 'message' : this.#type;
    this.#type = '';
    this.lastEventId = this.#eventId;
    if (this.#data.length === 0) return;
    const data = joinLines(this.#data);
    this.#data = [];
    this.#keptLines = 0;
    this.heldBytes = 0;
    this.#onEvent(data, type);
  }
}

function joinLines(lines: readonly Buffer[]): Buffer {
  const [only] = lines;
  if (only !== undefined && lines.length === 1) return only;
  return Buffer.concat(lines.flatMap((line, index) => (index === 0 ? [line] : [NEWLINE, line])));
}
