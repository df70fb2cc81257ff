// Reads the answers of one connection, one after the other, from bytes as they arrive: HTTP/1.1 and 1.0, bodies by
// length, in chunks and until the close. Whatever is not exactly HTTP is an error, because a guess could take the
// bytes of one answer for another. Sources: RFC 9112, 2.2, 4, 5, 6, 7, 9; ADR 135.

import type { HttpHeaders } from '../../domain/text.ts';

/** Gets the parts of an answer. It may call `stop` of the parser meanwhile. */
export interface ResponseSink {
  /** Once per answer. Interim answers (1xx) are skipped. */
  onResponseStart(status: number, headers: HttpHeaders): void;
  /** `chunk`: a copy that the sink may keep. */
  onResponseData(chunk: Buffer): void;
}

/** The error for bytes that are not an answer of HTTP: the connection cannot be used any more. */
export class InvalidResponse extends Error {
  readonly code = 'INVALID_RESPONSE';
}

type State = 'head' | 'sized body' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' | 'open body' | 'over';

/** The bound of a head, and of all trailers and all chunk extensions of one answer, in bytes: that of Node. */
const MAX_HEAD_BYTES = process.getBuiltinModule('node:http').maxHeaderSize; // see server/sockets/listeners.ts
const MAX_ANSWER_HEADERS = 256;
/** Interim answers before the final one. */
const MAX_INTERIM = 16;
/** A line with the size of a chunk. */
const MAX_SIZE_LINE = 1_024;
/** Chunks under this size are joined: each piece takes some 200 bytes of memory, and work of its own. */
const SMALL_CHUNK_BYTES = 1_024;
/** The most bytes of joined chunks. */
const MAX_JOINED_BYTES = 16_384;
/** Heads up to this size are remembered. */
const MAX_REMEMBERED_CHARACTERS = 1_024;

/**
 * The parser of one connection. Its sink gets the parts of an answer as they arrive; `reset` begins the next answer.
 */
export class ResponseParser {
  #state: State = 'head';
  /** Bytes of an incomplete head, or of an incomplete line of a chunked body. */
  #partial: Buffer | undefined;
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  /** A small chunk, or several in one piece, that its sink gets after the next ones of the same bytes. */
  #joined: Buffer | undefined;
  #joinedBytes = 0;
  #interim = 0;
  /** Bytes of chunk extensions and trailers. */
  #extraBytes = 0;
  #hasMore = false;
  /** The last head and its text: a server repeats it except for the date. */
  #headText = '';
  #head: Head | undefined;

  /** True after an answer when the connection can carry another request. */
  get isReusable(): boolean {
    return this.#state === 'over' && !this.#hasMore && this.#head?.isKept === true;
  }

  /** The time for which the server keeps the connection without a request, in ms; undefined when it does not say. */
  get keepAliveMs(): number | undefined {
    return this.#head?.keepAliveMs;
  }

  /** The next bytes belong to another answer. */
  reset(): void {
    this.#state = 'head';
    this.#partial = undefined;
    this.#interim = 0;
    this.#extraBytes = 0;
    this.#hasMore = false;
  }

  /** Stops reporting this answer. */
  stop(): void {
    this.#state = 'over';
    this.#hasMore = true;
  }

  /**
   * Takes the next bytes, whose memory is the caller's. Its sink gets all of the body in them before this returns or throws. True
   * when the answer is over. Throws InvalidResponse.
   */
  push(bytes: Buffer, sink: ResponseSink): boolean {
    try {
      return this.#read(bytes, sink);
    } finally {
      if (this.#joined !== undefined) this.#giveJoined(this.#joined, sink);
    }
  }

  #read(bytes: Buffer, sink: ResponseSink): boolean {
    let at = 0;
    while (at < bytes.length) {
      switch (this.#state) {
        case 'head':
          at = this.#readHead(bytes, at, sink);
          break;
        case 'sized body':
        case 'chunk':
          at = this.#readBody(bytes, at, sink);
          break;
        case 'open body':
          sink.onResponseData(copyOf(bytes, at, bytes.length));
          return false;
        case 'over':
          this.#hasMore = true;
          return true;
        default:
          at = this.#readLine(bytes, at);
      }
    }
    return this.#state === 'over';
  }

  /** The server closed the connection. Throws InvalidResponse when the answer is incomplete. */
  end(): void {
    if (this.#state === 'open body') this.#state = 'over';
    else if (this.#state !== 'over') throw closedEarly();
  }

  #readHead(bytes: Buffer, at: number, sink: ResponseSink): number {
    const before = this.#partial?.length ?? 0;
    const rest = at === 0 ? bytes : bytes.subarray(at);
    const all = this.#partial === undefined ? rest : Buffer.concat([this.#partial, rest]);
    const length = all.indexOf(HEAD_END);
    if (length > MAX_HEAD_BYTES || (length === -1 && all.length > MAX_HEAD_BYTES))
      throw new InvalidResponse(`its headers have more than ${MAX_HEAD_BYTES} bytes`);
    if (length === -1) {
      checkBeginning(all);
      this.#partial = before === 0 ? Buffer.from(all) : all;
      return bytes.length;
    }
    this.#partial = undefined;
    const text = all.toString('latin1', 0, length);
    const head = text === this.#headText && this.#head !== undefined ? this.#head : headOf(text);
    this.#headText = text.length <= MAX_REMEMBERED_CHARACTERS ? text : '';
    this.#head = head;
    this.#begin(head, sink);
    return at + length + HEAD_END.length - before;
  }

  #begin(head: Head, sink: ResponseSink): void {
    const { status, body } = head;
    if (status < 200) {
      this.#interim += 1;
      if (status === 101)
        throw new InvalidResponse('it changes to another protocol, which was not asked for');
      if (this.#interim > MAX_INTERIM) throw new InvalidResponse(`more than ${MAX_INTERIM} interim answers`);
      return;
    }
    if (body === 'chunked') this.#state = 'chunk size';
    else if (body === 'until close') this.#state = 'open body';
    else {
      this.#left = body;
      this.#state = body === 0 ? 'over' : 'sized body';
    }
    sink.onResponseStart(status, head.headers);
  }

  #readBody(bytes: Buffer, at: number, sink: ResponseSink): number {
    const to = Math.min(bytes.length, at + this.#left);
    const mayJoin = this.#state === 'chunk' && to - at < SMALL_CHUNK_BYTES;
    this.#left -= to - at;
    if (this.#left === 0) this.#state = this.#state === 'chunk' ? 'chunk end' : 'over';
    if (mayJoin) this.#join(bytes, at, to, sink);
    else {
      if (this.#joined !== undefined) this.#giveJoined(this.#joined, sink);
      sink.onResponseData(copyOf(bytes, at, to));
    }
    return to;
  }

  #join(bytes: Buffer, at: number, to: number, sink: ResponseSink): void {
    const length = to - at;
    let joined = this.#joined;
    if (joined !== undefined && this.#joinedBytes + length > MAX_JOINED_BYTES) {
      this.#giveJoined(joined, sink);
      joined = undefined;
    }
    if (joined === undefined) this.#joined = copyOf(bytes, at, to);
    else {
      if (this.#joinedBytes + length > joined.length) {
        const rest = this.#joinedBytes + bytes.length - at;
        joined = Buffer.allocUnsafe(Math.min(rest, MAX_JOINED_BYTES));
        this.#joined?.copy(joined, 0, 0, this.#joinedBytes);
        this.#joined = joined;
      }
      bytes.copy(joined, this.#joinedBytes, at, to);
    }
    this.#joinedBytes += length;
  }

  #giveJoined(joined: Buffer, sink: ResponseSink): void {
    const length = this.#joinedBytes;
    this.#joined = undefined;
    this.#joinedBytes = 0;
    sink.onResponseData(length === joined.length ? joined : joined.subarray(0, length));
  }

  /** A line of a chunked body. */
  #readLine(bytes: Buffer, at: number): number {
    const before = this.#partial?.length ?? 0;
    const newline = bytes.indexOf(LF, at);
    const to = newline === -1 ? bytes.length : newline + 1;
    const maxBytes = this.#state === 'trailers' ? MAX_HEAD_BYTES : MAX_SIZE_LINE;
    if (before + to - at > maxBytes) throw new InvalidResponse('a line of its chunked body is too long');
    const part = bytes.subarray(at, to);
    const line = this.#partial === undefined ? part : Buffer.concat([this.#partial, part]);
    if (newline === -1) {
      this.#partial = before === 0 ? Buffer.from(part) : line;
      return to;
    }
    this.#partial = undefined;
    if (line.at(-2) !== CR) throw new InvalidResponse('a line of its chunked body does not end with CR LF');
    this.#takeLine(line.toString('latin1', 0, line.length - 2));
    return to;
  }

  #takeLine(line: string): void {
    switch (this.#state) {
      case 'chunk end':
        if (line !== '') throw new InvalidResponse('a chunk is longer than its size');
        this.#state = 'chunk size';
        return;
      case 'chunk size': {
        const digits = CHUNK_SIZE.exec(line)?.[1];
        if (digits === undefined) throw new InvalidResponse('the size of a chunk is invalid');
        this.#countExtra(line.length - digits.length);
        this.#left = Number.parseInt(digits, 16);
        this.#state = this.#left === 0 ? 'trailers' : 'chunk';
        return;
      }
      default:
        if (line === '') this.#state = 'over';
        else if (!FIELD.test(line)) throw new InvalidResponse('a trailer is invalid');
        this.#countExtra(line.length);
    }
  }

  #countExtra(bytes: number): void {
    this.#extraBytes += bytes;
    if (this.#extraBytes > MAX_HEAD_BYTES) throw new InvalidResponse('its chunks have too many extensions');
  }
}

/** The server closed the connection before the end of the answer. Without stack frames, see GatewayError. */
export function closedEarly(): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error('the server closed the connection');
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code: 'ECONNRESET' });
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LF = 0x0a;
const CR = 0x0d;

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const BEGINNING = 'HTTP/1.';
const NO_LINE = /(?:^|[^\r])\n|[^\t\n\r\x20-\x7e\x80-\xff]/;
/** A name, a colon, a value; not the folded lines of older versions. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)$/;
const LENGTH = /^\d{1,15}$/;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const KEEP_ALIVE = /(?:^|[,; ])timeout *= *(\d{1,9})/i;

/** The content of the head of an answer. */
interface Head {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: number | 'chunked' | 'until close';
  readonly isKept: boolean;
  readonly keepAliveMs: number | undefined;
}

function headOf(text: string): Head {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const [, minor, digits] = STATUS_LINE.exec(statusLine) ?? [];
  if (digits === undefined) throw new InvalidResponse('its first line is not a status of HTTP/1.1');
  if (lines.length > MAX_ANSWER_HEADERS)
    throw new InvalidResponse(`it has more than ${MAX_ANSWER_HEADERS} headers`);
  const headers = headersOf(lines);
  const status = Number(digits);
  const body = bodyOf(status, minor === '1', headers);
  const connection = String(headers.connection ?? '').toLowerCase();
  const options = connection.split(',').map((option) => option.trim());
  const isKept = minor === '1' ? !options.includes('close') : options.includes('keep-alive');
  const seconds = KEEP_ALIVE.exec(String(headers['keep-alive'] ?? ''))?.[1];
  return {
    status,
    headers,
    body,
    isKept: isKept && !options.includes('close') && body !== 'until close',
    keepAliveMs: seconds === undefined ? undefined : Number(seconds) * 1_000,
  };
}

function headersOf(lines: readonly string[]): HttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (const line of lines) {
    const [, written = '', value = ''] = FIELD.exec(line) ?? [];
    if (written === '') throw new InvalidResponse('a header is invalid');
    const name = written.toLowerCase();
    const before = headers[name];
    const trimmed = value.trimEnd();
    if (before === undefined) headers[name] = trimmed;
    else headers[name] = [before, trimmed].flat();
  }
  return headers;
}

/** Two lengths could mean two bodies. Source: RFC 9112, 6.3. */
function bodyOf(status: number, isHttp11: boolean, headers: HttpHeaders): Head['body'] {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (length !== undefined && (typeof length !== 'string' || !LENGTH.test(length)))
    throw new InvalidResponse('its content-length is invalid');
  if (coding !== undefined) {
    if (typeof coding !== 'string' || coding.toLowerCase() !== 'chunked' || !isHttp11)
      throw new InvalidResponse('its transfer-encoding is not chunked');
    if (length !== undefined)
      throw new InvalidResponse('it has both a content-length and a transfer-encoding');
  }
  if (status < 200 || status === 204 || status === 304) return 0;
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'until close' : Number(length);
}

/** An incomplete head that cannot become valid any more is not waited for. */
function checkBeginning(bytes: Buffer): void {
  const text = bytes.toString('latin1');
  if (!BEGINNING.startsWith(text.slice(0, BEGINNING.length)) || NO_LINE.test(text))
    throw new InvalidResponse('it is not HTTP/1.1');
}

function copyOf(bytes: Buffer, from: number, to: number): Buffer {
  const copy = Buffer.allocUnsafe(to - from);
  bytes.copy(copy, 0, from, to);
  return copy;
}
