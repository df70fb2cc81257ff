// Server-sent events: open streams, which are tracked so that they can be ended, and the events of an Observable
// written to one. Routes decide the names and contents of events. Source of the format: the HTML standard,
// "Server-sent events".

import type { ServerResponse } from 'node:http';
import { defer, type Observer, Subscription } from 'rxjs';
import { availableMemoryBytes } from '../../config/memory.ts';
import type { OpenReport } from '../../domain/calls/exchange.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { type ByteBounds, memoryBounds } from '../../domain/memory/held-bytes.ts';
import { type Clock, spreadAlarm } from '../../domain/time/clock.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { shownInstance } from '../../protocol/aggregate/aggregate-names.ts';
import { SLOW_ANSWER_MS } from '../../protocol/client-call.ts';
import type { McpEvent, McpStream } from '../../protocol/endpoint-types.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { errorBody } from '../replies/error-reply.ts';
import type { EventSource, StreamEvent, StreamReader } from '../replies/reply.ts';
import { commonHeaders, latin1Of, SMALL_REPLY_BYTES } from '../replies/respond.ts';
import { limitReader, UnreadAnswers } from '../replies/unread-answers.ts';
import type { HttpRequest } from '../request.ts';

export interface EventStreamOptions {
  /** Interval of the comments that keep a stream alive. Default: 15 000 ms. */
  readonly keepAliveMs?: number;
  /** The longest time in which a client reads nothing although bytes wait; then its connection is closed. Default: 30 000 ms. */
  readonly unreadMs?: number;
  /** The most unread bytes of all clients. Default: from the available memory. */
  readonly unreadBounds?: ByteBounds;
  /** Approximate interval at which callers are checked again. Default: 5 000 ms. */
  readonly callerCheckMs?: number;
}

/** A stream that ends with the app, or when its caller is revoked. */
interface TrackedStream {
  /** Writes a comment when nothing else was written. */
  keepAlive(): void;
  revoke(error: GatewayError): void;
}

/** The open streams of a server; `close` ends them. */
export class EventStreams {
  readonly #clock: Clock;
  readonly unreadMs: number;
  readonly unread: UnreadAnswers;
  readonly #open = new Set<TrackedStream>();
  /** Spreads the checks of streams that were opened together. Its own: a revocation does not wait for other tasks. */
  readonly #scheduler = new TaskScheduler();
  readonly #keepAliveMs: number;
  readonly #callerCheckMs: number;

  constructor(clock: Clock, options: EventStreamOptions = {}) {
    this.#clock = clock;
    this.#keepAliveMs = options.keepAliveMs ?? HTTP_LIMITS.keepAliveMs;
    this.unreadMs = options.unreadMs ?? HTTP_LIMITS.unreadAnswerMs;
    this.unread = new UnreadAnswers(
      options.unreadBounds ?? memoryBounds(availableMemoryBytes()).unreadAnswers,
      clock,
    );
    this.#callerCheckMs = options.callerCheckMs ?? HTTP_LIMITS.callerCheckMs;
  }

  /**
   * Tracks the stream of a request until the returned function is called, and checks its caller periodically: a
   * stream whose API key was revoked would otherwise stay open forever.
   */
  track(stream: TrackedStream, context: HttpContext): () => void {
    const endKeepAlive = this.#clock.every(this.#keepAliveMs, () => stream.keepAlive());
    const endChecks = this.#clock.every(this.#callerCheckMs, () =>
      this.#scheduler.run(() => void this.#checkCaller(stream, context)),
    );
    this.#open.add(stream);
    return () => {
      endChecks();
      endKeepAlive();
      this.#open.delete(stream);
    };
  }

  /**
   * Writes events until they complete. The stream opens with the first event, or after a second; an earlier error
   * rejects, so that it is answered with its own status. Throws ClientGone when the client disconnects,
   * which also unsubscribes; when its caller loses its rights, the refusal is the last event. `report` has the instance for a
   * stream that opens without an event.
   */
  write(
    context: HttpContext,
    source: EventSource,
    request: Pick<HttpRequest, 'onLost'>,
    report?: OpenReport,
  ): Promise<void> {
    const { res: response } = context;
    if (response.destroyed) return Promise.reject(new ClientGone());
    return new Promise((resolve, reject) => {
      const work = new Subscription();
      const settle = (reason?: Error): void => {
        work.unsubscribe();
        if (reason === undefined) resolve();
        else reject(reason);
      };
      const onClose = (): void => settle(new ClientGone());
      response.once('close', onClose);
      const writer = new EventWriter(context, this, settle, report);
      work.add(() => response.off('close', onClose));
      work.add(request.onLost((reason) => reason instanceof ClientGone || writer.error(reason)));
      work.add(spreadAlarm(this.#scheduler, this.#clock.alarm)(SLOW_ANSWER_MS, () => writer.onSlow()));
      const events$ = typeof source === 'function' ? defer(() => source(writer)) : source;
      work.add(events$.subscribe(writer));
    });
  }

  /** Ends every open stream; those of `write` with the event `error` (SHUTTING_DOWN). */
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

/** An open event stream. It ends with the app, when its client reads nothing for too long, or when its caller is revoked. */
export class OpenStream implements McpStream {
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #streams: EventStreams;
  readonly #release: () => void;
  readonly #onRevoked: (error: GatewayError) => void;
  #isOpen = true;

  /** Sends the head of the answer. `onRevoked` is called before the stream ends. */
  constructor(
    context: HttpContext,
    streams: EventStreams,
    onRevoked: (error: GatewayError) => void = () => {},
  ) {
    const { res: response, state } = context;
    this.#context = context;
    this.#response = response;
    this.#streams = streams;
    this.#onRevoked = onRevoked;
    response.writeHead(200, [...EVENT_STREAM_HEADERS, ...commonHeaders(state, true)]);
    this.#release = streams.track(this, context);
    response.once('close', () => this.#leave());
    limitReader(response, streams.unreadMs);
    // The client waits for the head: it is sent with the first event, or in the next tick.
    process.nextTick(() => {
      if (this.#isOpen) response.flushHeaders();
    });
  }

  /** The bytes that are not sent, including the writes of this turn of the event loop, at whose end Node sends them. */
  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  send({ data, id, retryMs, name }: McpEvent): void {
    if (!this.#isOpen) return;
    const response = this.#response;
    // A safeguard: senders respect `unsentBytes`. A single message of any size is accepted.
    if (response.writableLength > LIMITS.backendMessageBytes) {
      response.destroy();
      return;
    }
    const head = headOf(name ?? (data.length > 0 ? 'message' : undefined), id, retryMs);
    writeEvent(response, head, data);
    this.#streams.unread.count(this.#context);
  }

  /** Writes complete events. */
  sendText(events: string): void {
    this.#response.write(events);
    this.#streams.unread.count(this.#context);
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#leave();
    this.#response.end();
  }

  /** Writes a comment, which clients ignore; unnecessary while other bytes wait. */
  keepAlive(): void {
    if (this.#isOpen && this.#response.writableLength === 0) this.#response.write(': keep-alive\n\n');
  }

  revoke(error: GatewayError): void {
    this.#onRevoked(error);
    this.end();
  }

  #leave(): void {
    this.#isOpen = false;
    this.#release();
  }
}

/** Characters of joined events after which the client counts as behind. */
const MAX_JOINED = 64 * 1024;

/** Writes the events of one REST request, in a stream that opens with the first of them. `settle` is called at its end. */
class EventWriter implements Observer<StreamEvent>, StreamReader {
  readonly #context: HttpContext;
  readonly #streams: EventStreams;
  readonly #settle: (reason?: Error) => void;
  readonly #report: OpenReport | undefined;
  #stream: OpenStream | undefined;
  /** Text of events that are joined into one write; see `together`. */
  #joined: string | undefined;

  constructor(
    context: HttpContext,
    streams: EventStreams,
    settle: (reason?: Error) => void,
    report: OpenReport | undefined,
  ) {
    this.#context = context;
    this.#streams = streams;
    this.#settle = settle;
    this.#report = report;
  }

  next(event: StreamEvent): void {
    const { name, data, id, instanceId, isAnswer = false } = event;
    const opened = this.#open(instanceId);
    if (!isAnswer && opened.unsentBytes > HTTP_LIMITS.streamBufferBytes) return;
    if (this.#joined !== undefined && typeof data === 'string')
      this.#joined += `${headOf(name, id)}${onOneLine(data)}${END}`;
    else opened.send(event);
  }

  complete(): void {
    const opened = this.#open();
    this.#sendJoined();
    opened.end();
    this.#settle();
  }

  error(thrown: unknown): void {
    const { state } = this.#context;
    const failure = asGatewayError(thrown);
    if (this.#stream === undefined) {
      this.#settle(failure);
      return;
    }
    state.errorCode = failure.code;
    const data = JSON.stringify(errorBody(failure, state.requestId, state.principal));
    this.next({ name: 'error', data, isAnswer: true });
    this.complete();
  }

  get isBehind(): boolean {
    return this.#context.res.writableNeedDrain || (this.#joined?.length ?? 0) > MAX_JOINED;
  }

  together(emit: () => void): void {
    this.#joined = '';
    try {
      emit();
    } finally {
      this.#sendJoined();
    }
  }

  onCaughtUp(listener: () => void): () => void {
    const { res: response } = this.#context;
    response.on('drain', listener);
    return () => response.off('drain', listener);
  }

  onSlow(): void {
    if (this.#stream !== undefined) return;
    const { sentTo } = this.#report ?? {};
    this.#open(sentTo && shownInstance(sentTo, this.#context.state.pathName));
  }

  #open(instanceId?: string): OpenStream {
    if (instanceId !== undefined) this.#context.state.instanceId = instanceId;
    this.#stream ??= new OpenStream(this.#context, this.#streams, (reason) => this.error(reason));
    return this.#stream;
  }

  #sendJoined(): void {
    const text = this.#joined ?? '';
    this.#joined = undefined;
    if (text !== '') this.#stream?.sendText(text);
  }
}

/** Headers of every open event stream, as `[name, value, …]`: no proxy may store, buffer or compress it. */
const EVENT_STREAM_HEADERS: readonly string[] = [
  ...['Content-Type', EVENT_STREAM_TYPE, 'Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
];

const END = '\n\n';
const END_BYTES = Buffer.from(END);

/**
 * Everything before the data. An event without data only has an id and no name, so that clients that read only the name do not
 * take it for a message. Source: MCP 2025-11-25 basic/transports, "Sending Messages".
 */
function headOf(event: string | undefined, id?: string, retryMs?: number): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const wait = retryMs === undefined ? '' : `retry: ${Math.round(retryMs)}\n`;
  return `${name}${idLine}${wait}data: `;
}

const SOLE_HEAD = headOf('message');
const SOLE_HEAD_BYTES = Buffer.from(SOLE_HEAD);

/** A complete stream of one event without an id. */
export function soleEvent(data: Uint8Array | string): Uint8Array | string {
  const line = onOneLine(data);
  if (typeof line === 'string') return `${SOLE_HEAD}${line}${END}`;
  return Buffer.concat([SOLE_HEAD_BYTES, line, END_BYTES]);
}

/** Heads that can be written in one latin1 text with the bytes of an event. */
const ASCII = /^[\n\x20-\x7e]*$/;

/** Writes one event; `head` is everything before its data. One write to the socket takes less CPU than three. */
function writeEvent(response: ServerResponse, head: string, data: Uint8Array | string): void {
  const line = onOneLine(data);
  if (typeof line === 'string') response.write(`${head}${line}${END}`);
  else if (line.byteLength <= SMALL_REPLY_BYTES && ASCII.test(head)) {
    response.write(`${head}${latin1Of(line)}${END}`, 'latin1');
  } else {
    // Node would copy the bytes to write them together with the text.
    response.cork();
    response.write(head);
    response.write(line);
    response.write(END);
    response.uncork();
  }
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/** JSON text without line breaks, which would end the field `data`: they occur only between its tokens. */
function onOneLine(data: Uint8Array | string): Uint8Array | string {
  if (typeof data === 'string') return data.replaceAll(/[\r\n]/g, ' ');
  if (!data.includes(LINE_FEED) && !data.includes(CARRIAGE_RETURN)) return data;
  const line = new Uint8Array(data);
  for (let at = 0; at < line.length; at += 1)
    if (line[at] === LINE_FEED || line[at] === CARRIAGE_RETURN) line[at] = SPACE;
  return line;
}
