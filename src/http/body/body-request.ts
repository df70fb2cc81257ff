// A request whose body can be collected as it is parsed. Node's stream would keep each piece, wake up in a later
// turn and emit five events, for a body that mostly comes with its headers. Source: ADR 176.

import { HTTP_LIMITS } from '../http-limits.ts';

/** An `import` of node:http reads all its exports; see server/sockets/listeners.ts. */
const { IncomingMessage } = process.getBuiltinModule('node:http');

/** Smaller pieces of one reading of the socket are joined: as they are, each would take some 200 bytes more. */
const SMALL_BYTES = 1_024;
const JOINED_BYTES = 16_384;
/** Pieces of one body, of any size. With more of them each has MIN_PIECE_BYTES on average: the work is that of pieces, not of bytes. */
const MAX_ANY_PIECES = 4_096;
const MIN_PIECE_BYTES = 16;
/** Pieces after which the connection rests: Node reads 64 KiB of one up to 32 times in a turn, and of all others, too. */
const MAX_PIECES_OF_READING = 100;
/** What a piece takes, about, in Node's parser of chunks and here. */
const PIECE_MS = 0.003;

/** The end of a connection whose body has too many and too small pieces. */
export class CrumbledBody extends Error {
  override readonly name = 'CrumbledBody';
}

/** Gets a body in pieces, then either its end or the loss of the connection. */
export interface BodySink {
  data(piece: Buffer): void;
  end(): void;
  gone(): void;
}

/**
 * A request whose body is either collected, or read as a stream. It ends its connection when the pieces of the body are too many
 * and too small, or too much of it comes after the answer. Source: ADR 401.
 */
export class BodyRequest extends IncomingMessage {
  #sink: BodySink | undefined;
  /** True once a piece of the body, or its end, was given to the stream. */
  #isStreamed = false;
  #isCollected = false;
  /** Small pieces of this turn, for the stream. Copied, or garbage collection would take them for lasting. */
  #joined: Buffer | undefined;
  #joinedBytes = 0;
  #pieces = 0;
  #bytes = 0;
  /** Those since the connection rested last. */
  #piecesOfReading = 0;
  #isResting = false;
  /** True when the stream has room for more, and its connection rests. */
  #isAwaited = false;
  /** True after the answer: nobody reads the body any more. */
  #isDiscarded = false;

  // The types of Node declare a property, and it is an accessor.
  static {
    const { prototype } = IncomingMessage;
    const ofStream = (request: BodyRequest): boolean => Reflect.get(prototype, 'readableEnded', request);
    Object.defineProperty(BodyRequest.prototype, 'readableEnded', {
      get(this: BodyRequest) {
        return this.#isCollected || ofStream(this);
      },
    });
  }

  /** False when a part of the body came before: it has to be read as a stream. */
  collectBody(sink: BodySink): boolean {
    if (this.#isStreamed || this.destroyed) return false;
    this.#sink = sink;
    this.read(0); // or Node would discard the body after the answer
    return true;
  }

  /** The sink gets nothing more; the rest is for the stream. */
  stopCollecting(): void {
    this.#sink = undefined;
  }

  /** Node calls it after the answer, if nobody has read the body. Its own would take all that comes, uncounted. */
  _dump(): void {
    if (this.#isDiscarded) return;
    this.#isDiscarded = true;
    this.#pieces = 0;
    this.#bytes = 0;
    this.resume();
  }

  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece === null) return this.#give(piece, encoding);
    if (this.destroyed) return false;
    this.#pieces += 1;
    this.#bytes += piece.length;
    const isCrumbled = this.#pieces > MAX_ANY_PIECES && this.#bytes < MIN_PIECE_BYTES * this.#pieces;
    if (isCrumbled || (this.#isDiscarded && this.#bytes > HTTP_LIMITS.drainedBytes)) {
      this.destroy(isCrumbled ? new CrumbledBody() : undefined);
      return false;
    }
    const mayGoOn = this.#isDiscarded || this.#give(piece, encoding);
    return mayGoOn && this.#mayReadOn();
  }

  override _read(size: number): void {
    if (this.#isResting) this.#isAwaited = true;
    else super._read(size);
  }

  /** Calls `goOn` when the connection may be read again, after pieces that took `tookMs`. A server has its own. */
  protected rest(_tookMs: number, goOn: () => void): void {
    goOn();
  }

  /**
   * False when enough pieces came: those that Node has read still come in this turn. Without chunks a reading is one piece: an
   * upload does not rest, since a rest is as long as all others want.
   */
  #mayReadOn(): boolean {
    this.#piecesOfReading += 1;
    if (this.#piecesOfReading === MAX_PIECES_OF_READING && this.headers['transfer-encoding'] !== undefined) {
      this.#isResting = true;
      setImmediate(() => this.rest(this.#piecesOfReading * PIECE_MS, () => this.#readOn()));
    }
    return !this.#isResting;
  }

  /** A stream that is full is read on when it has room. */
  #readOn(): void {
    const isTaken = this.#isAwaited || this.#sink !== undefined || this.#isDiscarded;
    this.#piecesOfReading = 0;
    this.#isResting = false;
    this.#isAwaited = false;
    if (isTaken && !this.destroyed) super._read(0);
  }

  #give(piece: Buffer | null, encoding: BufferEncoding | undefined): boolean {
    const sink = this.#sink;
    if (sink === undefined) {
      this.#isStreamed = true;
      return this.#stream(piece, encoding);
    }
    if (piece === null) {
      this.#sink = undefined;
      this.#isCollected = true;
      sink.end();
    } else sink.data(piece);
    return true;
  }

  #stream(piece: Buffer | null, encoding: BufferEncoding | undefined): boolean {
    if (piece === null || piece.length >= SMALL_BYTES) {
      this.#streamJoined();
      return super.push(piece, encoding);
    }
    if (this.#joinedBytes + piece.length > JOINED_BYTES) this.#streamJoined();
    if (this.#joined === undefined) {
      this.#joined = Buffer.allocUnsafe(JOINED_BYTES);
      // A microtask would be too early: those run after each piece.
      setImmediate(() => this.#streamJoined());
    }
    this.#joinedBytes += piece.copy(this.#joined, this.#joinedBytes);
    return this.readableLength + this.#joinedBytes < this.readableHighWaterMark;
  }

  #streamJoined(): void {
    const joined = this.#joined?.subarray(0, this.#joinedBytes);
    this.#joined = undefined;
    this.#joinedBytes = 0;
    if (joined !== undefined) super.push(Buffer.from(joined));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#joined = undefined;
    sink?.gone();
    super._destroy(error, done);
  }
}
