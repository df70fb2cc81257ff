// Receives one HTTP answer from undici and reports its content: JSON-RPC messages as they arrive, then the ending. A JSON body is
// collected and read at its end, an event stream event by event. It knows no calls and no sessions.

import type { Dispatcher } from 'undici';
import { ANSWERS_HOLD_TOO_MUCH } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import {
  type Holding,
  type InstanceHeldBytes,
  PIECE_BYTES,
  UNCOUNTED_BYTES,
} from '../../domain/held-bytes.ts';
import { type BackendMessage, readMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { answerTooLarge, connectionClosed, connectionFailed } from './http-failures.ts';
import { SseReader } from './sse-reader.ts';

export type AnswerEnding =
  /** A success was read to its end. `detail`: what came, in case the answer was missing. */
  | { readonly kind: 'complete'; readonly detail: string; readonly streamed: boolean }
  /** A status that is no success, with the JSON-RPC error of its body if there is one. */
  | { readonly kind: 'refused'; readonly status: number; readonly error: RefusalError | undefined }
  | { readonly kind: 'broken'; readonly failure: GatewayError };

export type RefusedEnding = Extract<AnswerEnding, { kind: 'refused' }>;

type RefusalError = Extract<BackendMessage, { kind: 'error' }>;

export interface AnswerSink {
  began?(): void;
  /** A message of a success, in order of arrival. */
  message(message: BackendMessage): void;
  /** An event of another type than `message`, which only HTTP+SSE has. */
  event?(type: string, data: Buffer): void;
  /** Called once, at the end; not after `abort`. */
  finished(ending: AnswerEnding): void;
}

export class HttpAnswer implements Dispatcher.DispatchHandler {
  readonly #sink: AnswerSink;
  #controller: Dispatcher.DispatchController | undefined;
  /** The status of the answer; 0 before it. */
  status = 0;
  sessionId: string | undefined;
  #reader: SseReader | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #over = false;
  #memory: InstanceHeldBytes | undefined;
  #holding: Holding | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** True once undici has begun to write the request, which may then arrive. */
  get sent(): boolean {
    return this.#controller !== undefined;
  }

  get retryMs(): number | undefined {
    return this.#reader?.retryMs;
  }

  /** The id of the event to resume the stream after; '' when it cannot be resumed. */
  get lastEventId(): string {
    return this.#reader?.lastEventId ?? '';
  }

  countIn(memory: InstanceHeldBytes | undefined): void {
    this.#memory = memory;
  }

  /** Ends the request at once; the sink gets nothing more. A request that waits for a connection is not sent. */
  abort(): void {
    if (this.#over) return;
    this.#end();
    this.#controller?.abort(new Error('the gateway no longer needs the answer'));
  }

  /** The rest of the answer is not needed. Aborts it only after LIMITS.backgroundMs: if it ends before, the connection is kept. */
  dismiss(): void {
    if (!this.#over) this.#timer ??= setTimeout(() => this.abort(), LIMITS.backgroundMs).unref();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(new Error('the request was withdrawn before it was sent'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.status = status;
    const sessionId = headers['mcp-session-id'];
    if (typeof sessionId === 'string' && sessionId !== '') this.sessionId = sessionId;
    const type = headers['content-type'];
    if (isSuccess(status) && typeof type === 'string' && EVENT_STREAM.test(type)) {
      this.#reader = new SseReader(LIMITS.backendMessageBytes, this.#event);
    }
    if (!this.#over) this.#sink.began?.();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    let isWithin: boolean;
    if (this.#reader === undefined) {
      this.#chunks.push(chunk);
      isWithin = this.#bytes <= LIMITS.backendMessageBytes;
    } else isWithin = this.#reader.push(chunk);
    if (isWithin) this.#count(this.#reader?.heldBytes ?? this.#bytes + this.#chunks.length * PIECE_BYTES);
    else this.#refuse(answerTooLarge());
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#end();
    if (this.#reader !== undefined) {
      const detail = 'ended its event stream without an answer';
      this.#sink.finished({ kind: 'complete', detail, streamed: true });
      return;
    }
    const body = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : this.#chunks[0];
    const message = body && readMessage(body);
    if (!isSuccess(this.status)) {
      const error = message?.kind === 'error' ? message : undefined;
      this.#sink.finished({ kind: 'refused', status: this.status, error });
      return;
    }
    if (message !== undefined) this.#sink.message(message);
    const what = this.#bytes === 0 ? 'an empty body' : 'something else than the JSON-RPC answer';
    this.#sink.finished({
      kind: 'complete',
      detail: `answered ${this.status} with ${what}`,
      streamed: false,
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return;
    this.#end();
    this.#sink.finished({ kind: 'broken', failure: connectionFailed(error, this.sent) });
  }

  readonly #event = (data: Buffer, type: string): void => {
    // Empty data primes a stream for resumption (2025-11-25).
    if (this.#over || data.length === 0) return;
    if (type !== 'message') {
      this.#sink.event?.(type, data);
      return;
    }
    const message = readMessage(data);
    if (message !== undefined) this.#sink.message(message);
  };

  #end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#holding?.release();
  }

  #count(bytes: number): void {
    if (this.#over || (this.#holding === undefined && bytes <= UNCOUNTED_BYTES)) return;
    this.#holding ??= this.#memory?.hold(() => this.#refuse(connectionClosed(ANSWERS_HOLD_TOO_MUCH, true)));
    this.#holding?.set(bytes);
  }

  #refuse(failure: GatewayError): void {
    this.abort();
    this.#chunks = [];
    this.#reader = undefined; // the event would be too large again, so the stream is not resumed
    this.#sink.finished({ kind: 'broken', failure });
  }
}

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** False when the server does not offer the stream (405, 501), or does not know the session or the event. */
export function mayReopen(ending: AnswerEnding): boolean {
  if (ending.kind === 'broken') return true;
  if (ending.kind === 'complete') return ending.streamed;
  return ending.status === 409 || ending.status === 429 || (ending.status >= 500 && ending.status !== 501);
}
