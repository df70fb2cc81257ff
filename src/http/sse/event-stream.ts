// Server-sent events: writes an Observable to one response, and knows all open streams so that they can be ended.
// What the events are called and hold is decided by the routes.

import type { ServerResponse } from 'node:http';
import type { Observable, Subscription } from 'rxjs';
import { availableMemoryBytes } from '../../config/memory.ts';
import { type ByteBounds, memoryBounds } from '../../domain/byte-budget.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { Tracker } from '../../domain/exchange.ts';
import { type Slow, SlowWatch } from '../../domain/slow-watch.ts';
import type { Refusal } from '../caller-check.ts';
import { CallerWatch } from '../caller-check.ts';
import { errorBody } from '../error-reply.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { HttpContext } from '../request.ts';
import { ClientGone } from '../request.ts';
import { commonHeaders } from '../respond.ts';
import { limitReader, limitWriteTime, UnreadAnswers } from '../unread-answers.ts';
import { commentText, EVENT_STREAM_HEADERS, inLines } from './server-sent-events.ts';

/** One event. */
export interface StreamEvent {
  /** The `event:` line: lower case, no spaces. */
  readonly name: string;
  /** JSON text. Line breaks in it are kept by repeating `data:`. */
  readonly data: Uint8Array | string;
  /** The `id:` line: what a reader that comes back names as the last one it has read. */
  readonly id?: string;
  /** The instance that it comes from. The one that is known when the response begins becomes `X-Instance-ID`, the last one is logged. */
  readonly instanceId?: string;
  /** True for what must not be left out when the client reads too slowly: the answer. */
  readonly essential?: boolean;
}

/** The reader of a stream. */
export interface StreamReader {
  /** True while what was written before waits for the client: a source that can wait gives nothing then. */
  readonly isBehind: boolean;
  /** Calls back when the client has taken everything, until the returned function is called. */
  onCaughtUp(listener: () => void): () => void;
}

/** Where events come from: a stream that goes its own pace, or one that is made for a reader and waits for it. */
export type EventSource = Observable<StreamEvent> | ((reader: StreamReader) => Observable<StreamEvent>);

export interface EventStreamOptions {
  /** Distance of the comments that keep a stream alive. Default 15 000 ms. */
  readonly keepAliveMs?: number;
  /** Unsent bytes at which events that are not essential are left out. Default 1 MiB. */
  readonly bufferBytes?: number;
  /** Longest time in which a client takes nothing of what waits for it. Default 30 000 ms; then it is cut. */
  readonly unreadMs?: number;
  /** Most bytes that wait for clients to read them. Default: those of the memory of this machine. */
  readonly unreadBounds?: ByteBounds;
  /** About how often it is looked at again whether a caller may still have a stream. Default 5 000 ms. */
  readonly callerCheckMs?: number;
}

/** An event stream that is open: it is kept alive, and ended with the app, or when its caller may not have it any more. */
export interface TrackedStream {
  /** Writes what nobody reads. */
  comment(text: string): void;
  /** Ends it: the app stops. */
  shutDown(): void;
  /** Ends it: its caller would not be let in any more. */
  revoke(refusal: GatewayError): void;
}

/** Every open event stream of one app. */
export class EventStreams {
  /** Patience with a client that does not read. */
  readonly unreadMs: number;
  /** What waits for clients to read it. */
  readonly unread: UnreadAnswers;
  readonly #open = new Set<TrackedStream>();
  readonly #callers: CallerWatch;
  readonly #slow = new SlowWatch();
  readonly #keepAliveMs: number;
  readonly #bufferBytes: number;

  constructor(options: EventStreamOptions = {}) {
    this.#keepAliveMs = options.keepAliveMs ?? HTTP_LIMITS.keepAliveMs;
    this.#bufferBytes = options.bufferBytes ?? HTTP_LIMITS.streamBufferBytes;
    this.unreadMs = options.unreadMs ?? HTTP_LIMITS.unreadAnswerMs;
    this.unread = new UnreadAnswers(
      options.unreadBounds ?? memoryBounds(availableMemoryBytes()).unreadAnswers,
    );
    this.#callers = new CallerWatch(options.callerCheckMs ?? HTTP_LIMITS.callerCheckMs);
  }

  /** Keeps the stream of a request alive and ends it in time, until the returned function is called. */
  keep(stream: TrackedStream, context: HttpContext): () => void {
    const keepAlive = setInterval(() => stream.comment('still here'), this.#keepAliveMs);
    this.#open.add(stream);
    const unwatch = this.#watch(stream, context);
    return () => {
      unwatch();
      clearInterval(keepAlive);
      this.#open.delete(stream);
    };
  }

  /**
   * Writes events until they complete. The response begins with the first event, or after a second; an error
   * before that rejects, so that it is answered with its own status. Rejects with ClientGone when the client leaves,
   * which also unsubscribes. `tracker` knows the instance that a response begins with when it begins without an event.
   */
  write(context: HttpContext, source: EventSource, tracker?: Tracker): Promise<void> {
    context.respond = false;
    if (context.res.closed) return Promise.reject(new ClientGone());
    return new Promise((resolve, reject) => {
      const stream = new OpenStream(context, this.#bufferBytes, this, tracker);
      const release = this.keep(stream, context);
      const settle = (reason?: Error): void => {
        release();
        this.#slow.delete(stream);
        context.res.off('close', onClose);
        stream.stop();
        if (reason === undefined) resolve();
        else reject(reason);
      };
      const onClose = (): void => settle(new ClientGone());
      context.res.once('close', onClose);
      this.#slow.add(stream);
      stream.start(typeof source === 'function' ? source(stream) : source, settle);
    });
  }

  /** Ends every open stream. Those of `write` end with the event `error` (SHUTTING_DOWN) and leave their source. */
  close(): void {
    for (const stream of this.#open) stream.shutDown();
  }

  #watch(stream: TrackedStream, context: HttpContext): () => void {
    const { check } = context.state;
    if (check === undefined) return () => {};
    return this.#callers.watch({
      check: (): Refusal | Promise<Refusal> => check(context),
      revoke: (refusal) => stream.revoke(refusal),
    });
  }
}

/** One response that is, or will be, an event stream. */
class OpenStream implements TrackedStream, Slow, StreamReader {
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #bufferBytes: number;
  readonly #streams: Pick<EventStreams, 'unreadMs' | 'unread'>;
  readonly #tracker: Tracker | undefined;
  #subscription: Subscription | undefined;
  #settle: (reason?: Error) => void = () => {};
  #leftOut = 0;

  constructor(
    context: HttpContext,
    bufferBytes: number,
    streams: Pick<EventStreams, 'unreadMs' | 'unread'>,
    tracker: Tracker | undefined,
  ) {
    this.#context = context;
    this.#response = context.res;
    this.#bufferBytes = bufferBytes;
    this.#streams = streams;
    this.#tracker = tracker;
  }

  start(events$: Observable<StreamEvent>, settle: (reason?: Error) => void): void {
    this.#settle = settle;
    this.#subscription = events$.subscribe({
      next: (event) => this.#send(event),
      error: (thrown: unknown) => this.fail(asGatewayError(thrown)),
      complete: () => {
        this.#begin();
        this.#end();
      },
    });
  }

  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  onCaughtUp(listener: () => void): () => void {
    this.#response.on('drain', listener);
    return () => this.#response.off('drain', listener);
  }

  stop(): void {
    this.#subscription?.unsubscribe();
  }

  shutDown(): void {
    this.fail(shuttingDown());
  }

  revoke(refusal: GatewayError): void {
    this.fail(refusal);
  }

  fail(error: GatewayError): void {
    if (!this.#response.headersSent) {
      this.#settle(error);
      return;
    }
    const { state } = this.#context;
    state.errorCode = error.code;
    const { requestId, principal } = state;
    const data = JSON.stringify(errorBody(error, requestId, principal));
    this.#send({ name: 'error', data, essential: true });
    this.#end();
  }

  /** As something slow. */
  lasts(): void {
    if (this.#response.headersSent) return;
    this.#begin(this.#tracker?.sentTo?.id);
    this.#response.flushHeaders();
  }

  comment(text: string): void {
    this.#begin();
    if (this.#response.writableLength <= this.#bufferBytes) this.#response.write(commentText(text));
  }

  #end(): void {
    this.#response.end();
    limitWriteTime(this.#response, this.#streams.unreadMs);
    this.#settle();
  }

  #send({ name, data, id, instanceId, essential = false }: StreamEvent): void {
    this.#begin(instanceId);
    if (!essential && this.#response.writableLength > this.#bufferBytes) {
      this.#leftOut += 1;
      return;
    }
    this.#response.cork();
    if (this.#leftOut > 0) this.#response.write(commentText(`${this.#leftOut} events left out, read faster`));
    this.#leftOut = 0;
    this.#response.write(`${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: `);
    this.#response.write(inLines(data));
    this.#response.write('\n\n');
    this.#response.uncork();
    this.#streams.unread.count(this.#context);
  }

  #begin(instanceId?: string): void {
    if (instanceId !== undefined) this.#context.state.instanceId = instanceId;
    if (this.#response.headersSent) return;
    const headers = [...EVENT_STREAM_HEADERS, ...commonHeaders(this.#context.state, true)];
    if (instanceId !== undefined) headers.push('X-Instance-ID', instanceId);
    this.#response.writeHead(200, headers);
    limitReader(this.#response, this.#streams.unreadMs);
  }
}
