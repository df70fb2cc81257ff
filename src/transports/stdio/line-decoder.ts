// Splits a stream of bytes into lines of bounded length. It works on bytes, because a chunk may end within a character.

import {
  type Holding,
  type InstanceHeldBytes,
  PIECE_BYTES,
  UNCOUNTED_BYTES,
} from '../../domain/held-bytes.ts';
import { LIMITS } from '../../domain/limits.ts';

/** Both methods are called during `write`. */
export interface LineListener {
  /** One line without its line end. The bytes stay valid; they may share memory with the chunk. */
  onLine(line: Buffer): void;
  /** A line over the bound has ended; only its edges are left. */
  onOversize(line: OversizeLine): void;
}

export interface OversizeLine {
  /** Its first and its last bytes, at most EDGE_BYTES of each. */
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly bytes: number;
  /** The line was not over the bound, but was dropped because its memory was needed. */
  readonly isCut: boolean;
}

/** Bytes kept of each end of a line over the bound: enough to find the id of a JSON-RPC answer. */
export const EDGE_BYTES = 256;

/** Feed it chunks with `write`. Line ends are LF or CRLF; a last line without its end is dropped. */
export class LineDecoder {
  readonly #listener: LineListener;
  readonly #limitBytes: number;
  /** The unfinished line, or only its edges once it is over the bound. */
  #pieces: Buffer[] = [];
  #edges: { readonly head: Buffer; tail: Buffer } | undefined;
  #bytes = 0;
  readonly #memory: InstanceHeldBytes | undefined;
  #holding: Holding | undefined;
  #isCut = false;

  /** `memory`: counts incomplete lines. Default: not counted. */
  constructor(
    listener: LineListener,
    limitBytes: number = LIMITS.backendMessageBytes,
    memory?: InstanceHeldBytes,
  ) {
    this.#listener = listener;
    this.#memory = memory;
    this.#limitBytes = limitBytes;
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
    this.#holding?.release();
    this.#pieces = [];
  }

  #finish(piece: Buffer): void {
    // Nearly every line lies in one chunk.
    if (this.#bytes === 0 && piece.length <= this.#limitBytes) {
      this.#listener.onLine(withoutReturn(piece));
      return;
    }
    this.#keep(piece);
    const pieces = this.#pieces;
    const edges = this.#edges;
    const bytes = this.#bytes;
    const isCut = this.#isCut;
    // Reset first: the listener may throw.
    this.#pieces = [];
    this.#edges = undefined;
    this.#bytes = 0;
    this.#isCut = false;
    this.#holding?.release();
    this.#holding = undefined;
    if (edges) this.#listener.onOversize({ ...edges, bytes, isCut });
    else this.#listener.onLine(withoutReturn(Buffer.concat(pieces, bytes)));
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#edges !== undefined) {
      this.#edges.tail = lastBytes([this.#edges.tail, piece]);
      return;
    }
    this.#pieces.push(piece);
    if (this.#bytes > this.#limitBytes) this.#dropPieces();
    else this.#count();
  }

  #count(): void {
    if (this.#holding === undefined && this.#bytes <= UNCOUNTED_BYTES) return;
    this.#holding ??= this.#memory?.hold(() => {
      this.#isCut = true;
      this.#dropPieces();
    });
    this.#holding?.set(this.#bytes + this.#pieces.length * PIECE_BYTES);
  }

  #dropPieces(): void {
    this.#holding?.release();
    this.#edges = { head: firstBytes(this.#pieces), tail: lastBytes(this.#pieces) };
    this.#pieces = [];
  }
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
