// The body of one HTTP answer: decodes it, reads the events of a stream or collects the rest, and counts the memory that
// it takes. What its content means is left to http-answer.ts.

import { ANSWERS_HOLD_TOO_MUCH } from '../../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { unparsedSize } from '../../../domain/mcp/jsonrpc.ts';
import {
  BYTES_PER_PIECE,
  type Holding,
  type InstanceHeldBytes,
  inOwnMemory,
  UNCOUNTED_BYTES,
} from '../../../domain/memory/held-bytes.ts';
import type { HttpHeaders } from '../../../domain/text.ts';
import { SseReader } from '../../../net/http1/sse-reader.ts';
import { BodyDecoder, codingOf, type Pausable } from './body-decoder.ts';
import { answerTooLarge, codingFailed, codingUnknown, connectionClosed } from './http-failures.ts';
import { MAX_REFUSAL_BYTES, refusalText } from './refusal-text.ts';

/** `messages`: of a success. The body of a redirect is a text for people. */
type BodyUse = 'messages' | 'refusal' | 'redirect';

interface BodyOwner extends Pausable {
  /** An event of a stream. */
  event(data: Buffer, type: string): void;
  /** All that arrived is decoded. `failure`: of the connection, before the end of the body. */
  bodyEnded(failure: GatewayError | undefined): void;
  /** The rest is not read: for this reason, or because the beginning of a refusal is enough. */
  bodyStopped(reason: GatewayError): void;
}

/** The body of one answer, from the end of the head until `close`. */
export class AnswerBody {
  readonly headers: HttpHeaders;
  readonly use: BodyUse;
  readonly #owner: BodyOwner;
  readonly #callerId: string | undefined;
  readonly #budget: InstanceHeldBytes | undefined;
  /** The content coding; undefined when it has none. */
  readonly #coding: string | undefined;
  #decoder: BodyDecoder | undefined;
  #reader: SseReader | undefined;
  /** What was collected. */
  #pieces: Buffer[] | undefined;
  /** Bytes of the body; of a stream, since its last event. */
  #bytes = 0;
  #holding: Holding | undefined;
  #isStopped = false;

  constructor(
    owner: BodyOwner,
    use: BodyUse,
    headers: HttpHeaders,
    budget: InstanceHeldBytes | undefined,
    callerId: string | undefined,
  ) {
    this.#owner = owner;
    this.#callerId = callerId;
    this.use = use;
    this.headers = headers;
    this.#budget = budget;
    const { 'content-encoding': encoding, 'content-type': type } = headers;
    if (encoding !== undefined && use !== 'redirect') this.#coding = codingOf(encoding);
    if (use === 'messages' && typeof type === 'string' && EVENT_STREAM.test(type))
      this.#reader = new SseReader(LIMITS.backendMessageBytes, (data, name) => {
        this.#bytes = 0;
        owner.event(data, name);
      });
  }

  get isStream(): boolean {
    return this.#reader !== undefined;
  }

  get isLarge(): boolean {
    return this.#reader === undefined && this.#bytes > LARGE_BODY_BYTES;
  }

  get isDecoded(): boolean {
    return this.#decoder !== undefined;
  }

  get retryMs(): number | undefined {
    return this.#reader?.retryMs;
  }

  /** The id of the event to resume the stream after; undefined when it cannot be resumed. */
  get lastEventId(): string | undefined {
    return this.#reader?.lastEventId || undefined; // never empty
  }

  /** What was collected; undefined when that is nothing. */
  get content(): Buffer | undefined {
    const pieces = this.#pieces;
    return pieces !== undefined && pieces.length > 1 ? Buffer.concat(pieces) : pieces?.[0];
  }

  push(chunk: Buffer): void {
    if (this.#isStopped) return;
    if (this.#coding === undefined) this.#take(chunk);
    else this.#decode(this.#coding, chunk);
  }

  /** The last byte has arrived, or the connection failed. */
  end(failure?: GatewayError): void {
    if (this.#decoder === undefined) this.#owner.bodyEnded(failure);
    else this.#decoder.end(() => this.#owner.bodyEnded(failure));
  }

  /** Takes nothing more; what was collected is kept. */
  stop(): void {
    this.#isStopped = true;
    this.#decoder?.close();
  }

  close(): void {
    this.stop();
    this.#holding?.release();
  }

  /** What it is instead of an answer, for an error. `shown`: content that callers may see; a message may be for another one. */
  describe(status: number, shown: Buffer | undefined, secrets: readonly string[]): string {
    const early = this.#decoder?.isCut === true ? `its encoding (${this.#coding}) ended early` : '';
    if (this.isStream) return `ended its event stream without an answer${early === '' ? '' : `; ${early}`}`;
    return `answered ${status} with ${early === '' ? this.#words(shown, secrets) : `a body, but ${early}`}`;
  }

  #words(shown: Buffer | undefined, secrets: readonly string[]): string {
    if (this.#bytes === 0) return 'an empty body';
    const type = String(this.headers['content-type'] ?? '');
    const said = shown === undefined ? '' : refusalText(shown, { type, encoding: '' }, secrets);
    const other = `something other than the JSON-RPC answer${said === '' ? '' : `: ${said}`}`;
    return unparsedSize(this.#bytes) ?? other;
  }

  #decode(coding: string, chunk: Buffer): void {
    this.#decoder ??= BodyDecoder.of(coding, chunk, {
      data: (decoded) => this.#take(decoded),
      tooLarge: () => this.#refuse(answerTooLarge()),
      failed: (error) => this.#refuse(codingFailed(coding, error)),
    });
    if (this.#decoder !== undefined) this.#decoder.push(chunk, this.#owner);
    // The body of a refusal is only an addition to its status.
    else if (this.use === 'messages') this.#refuse(codingUnknown(coding));
  }

  #take(chunk: Buffer): void {
    if (this.#isStopped) return;
    this.#bytes += chunk.length;
    const isWithin = this.#reader === undefined ? this.#collect(chunk) : this.#read(chunk, this.#reader);
    if (this.#isStopped) return;
    if (isWithin) this.#count();
    else this.#refuse(answerTooLarge(this.#maxBytes));
  }

  /** False when an event is too large. A few compressed bytes may also be gigabytes of comments. */
  #read(chunk: Buffer, reader: SseReader): boolean {
    return reader.push(chunk) && (this.#decoder === undefined || this.#bytes <= this.#maxBytes);
  }

  #collect(chunk: Buffer): boolean {
    if (this.#pieces === undefined) this.#pieces = [chunk];
    else this.#pieces.push(inOwnMemory(chunk));
    const isText = this.use === 'refusal' && this.#bytes > MAX_REFUSAL_BYTES && !isJson(this.headers);
    if (isText) this.#owner.bodyStopped(answerTooLarge(MAX_REFUSAL_BYTES)); // its beginning is enough
    return this.#bytes <= this.#maxBytes;
  }

  get #maxBytes(): number {
    return this.use === 'redirect' ? MAX_REDIRECT_BYTES : LIMITS.backendMessageBytes;
  }

  #count(): void {
    const collected = this.#bytes + (this.#pieces?.length ?? 0) * BYTES_PER_PIECE;
    const bytes = (this.#reader?.heldBytes ?? collected) + (this.#decoder?.heldBytes ?? 0);
    if (this.#holding === undefined && bytes <= UNCOUNTED_BYTES) return;
    this.#holding ??= this.#budget?.hold(
      () => this.#refuse(connectionClosed(ANSWERS_HOLD_TOO_MUCH, true)),
      this.#callerId,
    );
    this.#holding?.set(bytes);
  }

  #refuse(reason: GatewayError): void {
    this.#pieces = undefined;
    if (this.#isStopped) return;
    this.stop();
    this.#reader = undefined; // the event would be too large again, so the stream is not resumed
    this.#owner.bodyStopped(reason);
  }
}

/** A body of this size takes some ms to read, and many may end together. */
const LARGE_BODY_BYTES = 512 * 1024;

/** The most bytes that are read of the body of a redirect. */
const MAX_REDIRECT_BYTES = 64 * 1024;

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

function isJson(headers: HttpHeaders): boolean {
  return /\bjson\b/i.test(String(headers['content-type'] ?? ''));
}
