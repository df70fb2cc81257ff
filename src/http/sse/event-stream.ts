// Writes an Observable to one response as server-sent events, and tracks all open streams so that they can be ended. Routes decide the
// names and contents of events. Source of the format: the HTML standard, "Server-sent events".

import type { ServerResponse } from 'node:http';
import type { Observable, Subscription } from 'rxjs';
import { availableMemoryBytes } from '../../config/memory.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { Tracker } from '../../domain/exchange.ts';
import { type ByteBounds, memoryBounds } from '../../domain/held-bytes.ts';
import { type Slow, SlowWatch, TaskScheduler } from '../../domain/task-scheduler.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { type EventSource, errorBody, type StreamEvent, type StreamReader } from '../reply.ts';
import { ClientGone, type HttpContext } from '../request.ts';
import { commonHeaders, latin1Of, SMALL_BYTES } from '../respond.ts';
import { limitReader, UnreadAnswers } from '../unread-answers.ts';

export interface EventStreamOptions {
  /** Interval of the comments that keep a stream alive. Default 15 000 ms. */
  readonly keepAliveMs?: number;
  /** Longest time in which a client reads nothing although bytes wait; then its connection is closed. Default 30 000 ms. */
  readonly unreadMs?: number;
  /** Most unread bytes of all clients. Default: from the available memory. */
  readonly unreadBounds?: ByteBounds;
  /** Approximate interval at which callers are checked again. Default 5 000 ms. */
  readonly callerCheckMs?: number;
}

/** An open event stream: it is kept alive, and ends with the app or when its caller is no longer authorized. */
export interface TrackedStream {
  comment(text: string): void;
  revoke(error: GatewayError): void;
}

export class EventStreams {
  readonly unreadMs: number;
  readonly unread: UnreadAnswers;
  readonly #open = new Set<TrackedStream>();
  readonly #slow = new SlowWatch();
  /** Spreads the checks of streams that were opened together, and the ends of those of one caller. */
  readonly #scheduler = new TaskScheduler();
  readonly #keepAliveMs: number;
  readonly #callerCheckMs: number;

  constructor(options: EventStreamOptions = {}) {
    this.#keepAliveMs = options.keepAliveMs ?? HTTP_LIMITS.keepAliveMs;
    this.unreadMs = options.unreadMs ?? HTTP_LIMITS.unreadAnswerMs;
    this.unread = new UnreadAnswers(
      options.unreadBounds ?? memoryBounds(availableMemoryBytes()).unreadAnswers,
    );
    this.#callerCheckMs = options.callerCheckMs ?? HTTP_LIMITS.callerCheckMs;
  }

  /**
   * Tracks the stream of a request until the returned function is called, and checks its caller periodically: a stream whose API key
   * was revoked would otherwise stay open forever.
   */
  track(stream: TrackedStream, context: HttpContext): () => void {
    const keepAlive = setInterval(() => stream.comment('keep-alive'), this.#keepAliveMs);
    const check = setInterval(
      () => this.#scheduler.run(() => void this.#checkCaller(stream, context)),
      this.#callerCheckMs,
    );
    this.#open.add(stream);
    return () => {
      clearInterval(check);
      clearInterval(keepAlive);
      this.#open.delete(stream);
    };
  }

  /**
   * Writes events until they complete. The response begins with the first event, or after a second; an earlier
   * error rejects, so that it is answered with its own status. Rejects with ClientGone when the client
   * disconnects, which also unsubscribes. `tracker` has the instance for a response that begins without an event.
   */
  write(context: HttpContext, source: EventSource, tracker?: Tracker): Promise<void> {
    if (context.res.destroyed) return Promise.reject(new ClientGone());
    return new Promise((resolve, reject) => {
      const stream = new OpenStream(context, this, tracker);
      const release = this.track(stream, context);
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

  /** Ends every open stream. Those of `write` end with the event `error` (SHUTTING_DOWN) and unsubscribe. */
  close(): void {
    for (const stream of this.#open) stream.revoke(shuttingDown());
  }

  async #checkCaller(stream: TrackedStream, context: HttpContext): Promise<void> {
    const refusal = await context.state.check?.(context);
    if (refusal === undefined) return;
    this.#scheduler.run(() => {
      if (this.#open.has(stream)) stream.revoke(refusal);
    });
  }
}

/** Characters of joined events after which the client counts as behind. */
const MOST_JOINED = 64 * 1024;

/** One response that is, or will be, an event stream. */
class OpenStream implements TrackedStream, Slow, StreamReader {
  links: Slow['links'];
  tick: Slow['tick'];
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #streams: EventStreams;
  readonly #tracker: Tracker | undefined;
  #subscription: Subscription | undefined;
  #settle: (reason?: Error) => void = () => {};
  /** Text of events that are joined into one write; see `together`. */
  #joined: string | undefined;

  constructor(context: HttpContext, streams: EventStreams, tracker: Tracker | undefined) {
    this.#context = context;
    this.#response = context.res;
    this.#streams = streams;
    this.#tracker = tracker;
  }

  start(events$: Observable<StreamEvent>, settle: (reason?: Error) => void): void {
    this.#settle = settle;
    this.#subscription = events$.subscribe({
      next: (event) => this.#send(event),
      error: (thrown: unknown) => this.revoke(asGatewayError(thrown)),
      complete: () => {
        this.#begin();
        this.#end();
      },
    });
  }

  get isBehind(): boolean {
    return this.#response.writableNeedDrain || (this.#joined?.length ?? 0) > MOST_JOINED;
  }

  together(emit: () => void): void {
    this.#joined = '';
    try {
      emit();
    } finally {
      this.#writeJoined();
    }
  }

  onCaughtUp(listener: () => void): () => void {
    this.#response.on('drain', listener);
    return () => this.#response.off('drain', listener);
  }

  stop(): void {
    this.#subscription?.unsubscribe();
  }

  revoke(error: GatewayError): void {
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

  onSlow(): void {
    if (this.#response.headersSent) return;
    this.#begin(this.#tracker?.sentTo?.id);
    this.#response.flushHeaders();
  }

  comment(text: string): void {
    this.#begin();
    if (this.#response.writableLength <= HTTP_LIMITS.streamBufferBytes)
      this.#response.write(commentText(text));
  }

  #writeJoined(): void {
    const text = this.#joined ?? '';
    this.#joined = undefined;
    if (text === '') return;
    this.#response.write(text);
    this.#streams.unread.count(this.#context);
  }

  #end(): void {
    this.#writeJoined();
    this.#response.end();
    this.#settle();
  }

  #send({ name, data, id, instanceId, essential = false }: StreamEvent): void {
    this.#begin(instanceId);
    if (!essential && this.#response.writableLength > HTTP_LIMITS.streamBufferBytes) return;
    const start = `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: `;
    if (this.#joined !== undefined && typeof data === 'string') {
      this.#joined += `${start}${inLines(data)}${END}`;
      return;
    }
    writeEvent(this.#response, start, data);
    this.#streams.unread.count(this.#context);
  }

  #begin(instanceId?: string): void {
    if (instanceId !== undefined) this.#context.state.instanceId = instanceId;
    if (this.#response.headersSent) return;
    const headers = [...EVENT_STREAM_HEADERS, ...commonHeaders(this.#context.state, true)];
    this.#response.writeHead(200, headers);
    limitReader(this.#response, this.#streams.unreadMs);
  }
}

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

/** Without intermediate text, which could take twice the memory of the bytes. */
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
