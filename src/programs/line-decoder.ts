// Splits a stream of bytes into lines of bounded length. It works on bytes, because a chunk may end within a character.

import { LIMITS } from '../domain/limits.ts';
import {
  BYTES_PER_PIECE,
  type Holding,
  type InstanceHeldBytes,
  UNCOUNTED_BYTES,
} from '../domain/memory/held-bytes.ts';

/** Both methods are called during `write`. */
export interface LineListener {
  /** One line without its line end. The bytes stay valid; they may share memory with the chunk. */
  onLine(line: Buffer): void;
  /** A line over the bound has ended; only its edges are left. */
  onOversize(line: OversizeLine): void;
}

export interface OversizeLine {
  /** The first and the last bytes of the line, at most EDGE_BYTES of each. */
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly bytes: number;
  /** True for a line that was not over the bound, but was dropped because its memory was needed. */
  readonly isCut: boolean;
}

/** Bytes kept of each end of a line over the bound: enough to find the id of a JSON-RPC answer. */
export const EDGE_BYTES = 256;

interface UnfinishedLine {
  pieces: Buffer[];
  bytes: number;
  /** The first and last bytes of the line, set instead of the pieces once they were dropped. */
  edges?: { readonly head: Buffer; tail: Buffer };
  isCut: boolean;
  holding?: Holding | undefined;
}

/** Feed it chunks with `write`. Line ends are LF or CRLF; a last line without its end is dropped. */
export class LineDecoder {
  readonly #listener: LineListener;
  readonly #limitBytes: number;
  readonly #budget: InstanceHeldBytes | undefined;
  #line: UnfinishedLine = { pieces: [], bytes: 0, isCut: false };

  /** `memory`: counts incomplete lines. Default: not counted. */
  constructor(
    listener: LineListener,
    limitBytes: number = LIMITS.backendMessageBytes,
    budget?: InstanceHeldBytes,
  ) {
    this.#listener = listener;
    this.#limitBytes = limitBytes;
    this.#budget = budget;
  }

  /** Takes the next bytes of the stream. The chunk is not copied: do not reuse it. */
  write(chunk: Buffer): void {
    let start = 0;
    let end = chunk.indexOf(LINE_FEED);
    while (end !== -1) {
      this.#finish(chunk.subarray(start, end));
      start = end + 1;
      end = chunk.indexOf(LINE_FEED, start);
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** Drops an unfinished line. */
  close(): void {
    this.#line.holding?.release();
    this.#line.pieces = [];
  }

  #finish(piece: Buffer): void {
    // Nearly every line lies in one chunk.
    if (this.#line.bytes === 0 && piece.length <= this.#limitBytes) {
      this.#listener.onLine(withoutReturn(piece));
      return;
    }
    this.#keep(piece);
    const { pieces, bytes, edges, isCut, holding } = this.#line;
    this.#line = { pieces: [], bytes: 0, isCut: false }; // first, because the listener may throw
    holding?.release();
    if (edges) this.#listener.onOversize({ ...edges, bytes, isCut });
    else this.#listener.onLine(withoutReturn(Buffer.concat(pieces, bytes)));
  }

  #keep(piece: Buffer): void {
    const line = this.#line;
    line.bytes += piece.length;
    if (line.edges !== undefined) {
      line.edges.tail = lastBytes([line.edges.tail, piece]);
      return;
    }
    line.pieces.push(piece);
    if (line.bytes > this.#limitBytes) dropPieces(line);
    else if (line.holding !== undefined || line.bytes > UNCOUNTED_BYTES) this.#count(line);
  }

  #count(line: UnfinishedLine): void {
    line.holding ??= this.#budget?.hold(() => {
      line.isCut = true;
      dropPieces(line);
    });
    line.holding?.set(line.bytes + line.pieces.length * BYTES_PER_PIECE);
  }
}

function dropPieces(line: UnfinishedLine): void {
  line.holding?.release();
  line.edges = { head: firstBytes(line.pieces), tail: lastBytes(line.pieces) };
  line.pieces = [];
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The first bytes of all pieces together; no piece gives more than its own first bytes to them. */
function firstBytes(pieces: readonly Buffer[]): Buffer {
  return Buffer.concat(pieces.map((piece) => piece.subarray(0, EDGE_BYTES))).subarray(0, EDGE_BYTES);
}

function lastBytes(pieces: readonly Buffer[]): Buffer {
  return Buffer.concat(pieces.map((piece) => piece.subarray(-EDGE_BYTES))).subarray(-EDGE_BYTES);
}

function withoutReturn(line: Buffer): Buffer {
  return line[line.length - 1] === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}
