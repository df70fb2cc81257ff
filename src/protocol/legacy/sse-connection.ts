// One event stream of HTTP+SSE, and the session that it carries: answers to posted messages, and messages that come
// outside of calls, are events of the stream. A stream that is lost with a node continues on another one. legacy-sse.ts has
// all streams. Source: ADR 165.

import { ReplaySubject, Subscription } from 'rxjs';
import { isJsonObject } from '../../domain/json/json.ts';
import { type JsonRpcId, RPC } from '../../domain/mcp/jsonrpc.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { Backends } from '../endpoint-backends.ts';
import {
  type CommonOptions,
  type McpLog,
  type McpRequest,
  type McpStream,
  noteError,
  type ReplyWriter,
  type ServedRequest,
} from '../endpoint-types.ts';
import { internalFaultOf, refused, rpcFailureOf } from '../rpc.ts';
import { missedBy } from './get-stream.ts';
import { KeptMessages } from './kept-messages.ts';
import type { LegacyEndpoint } from './legacy-endpoint.ts';
import { lostWithGateway } from './legacy-traffic.ts';
import { readsPositions, SsePosition } from './sse-position.ts';

/** The time in which a client has to open a session, in ms. After it the stream ends. */
export const UNOPENED_MS = 60_000;

/** The time in which a message waits for the stream of its session, in ms. */
export const RESUME_MS = 5_000;
/** Wait of a client before it opens a stream again, in ms. */
const RETRY_MS = 1_000;

interface SseConnectionDeps extends Pick<CommonOptions, 'onFault' | 'clock'> {
  readonly legacy: LegacyEndpoint;
  ended(): void;
}

/** One event stream, and the session that it carries once its client has initialized. */
export class SseConnection {
  readonly ownerId: string;
  readonly #id: string;
  readonly #opened: McpRequest;
  readonly #backends: Backends;
  readonly #deps: SseConnectionDeps;
  readonly #position: SsePosition;
  /** The last messages, while the stream leads through another node. */
  readonly #kept: KeptMessages;
  #isKeeping = false;
  #stream: McpStream | undefined;
  /** True when the client of this stream gets an event when it has begun a request, and numbers of messages. */
  #hasPositions = false;
  #log: McpLog = {};
  /** Emits once when the stream is over; replayed. */
  readonly #gone$ = new ReplaySubject<void>(1);
  #session: McpSession | undefined;
  /** The way of the connection to its session, and its end. A loss of the stream (`#stream`) changes nothing in it. */
  #stage: 'unopened' | 'opening' | 'open' | 'closed' = 'unopened';
  #endExpiry: () => void;
  #endWait = (): void => {};

  constructor(id: string, opened: McpRequest, backends: Backends, deps: SseConnectionDeps) {
    this.#id = id;
    this.#position = new SsePosition(id, opened.headers);
    this.ownerId = opened.principal.id;
    const { budget } = deps.legacy;
    this.#kept = new KeptMessages({ budget, sessionId: id, ownerId: this.ownerId }, deps.clock);
    this.#opened = opened;
    this.#backends = backends;
    this.#deps = deps;
    this.#endExpiry = this.#expireLater();
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  /** False while its client has lost the stream, and may open another one. */
  get hasStream(): boolean {
    return this.#stream !== undefined;
  }

  /**
   * Sends everything on the stream of this reply from now on, first the messages that its client has not got. Requests of an
   * earlier life, and those whose answers are not kept, get an error; a notice replaces other messages (ADR 350). The stream
   * before ends. `session`: one that continues, which `carry` follows. Known first: this stream may be lost already.
   */
  attach(request: McpRequest, reply: ReplyWriter, messagesPath: string, session?: McpSession): void {
    const before = this.#stream;
    this.#session ??= session;
    this.#endWait();
    this.#hasPositions = readsPositions(request);
    this.#isKeeping = this.#hasPositions && request.isForwarded === true;
    const stream = reply.stream();
    this.#stream = stream;
    this.#log = reply.log;
    before?.end();
    this.#noteSession();
    const resumption = this.#position.resume(request.headers, (number) => this.#kept.has(number));
    const { number: last, later, lost } = resumption;
    const kept = this.#kept.after(last);
    const path = `${messagesPath}?sessionId=${this.#id}`;
    stream.send({ name: 'endpoint', data: path, id: this.#position.eventIdAt(last), retryMs: RETRY_MS });
    for (const { number, data } of kept) stream.send({ data, id: this.#position.eventIdAt(number) });
    for (const id of lost) this.#sendAnswer(lostWithGateway(id), [id]);
    if (later > kept.length && this.#session !== undefined)
      for (const notice of missedBy(this.#session.value)) this.#send(notice);
    reply.onGone(() => this.#stream === stream && this.#lose(request));
  }

  /** Ends the connection. Perhaps not the client is gone but the node that it is connected to: then it opens another stream. */
  #lose({ isForwarded = false }: McpRequest): void {
    if (!isForwarded || !this.hasSession) {
      this.close();
      return;
    }
    this.#stream = undefined;
    this.#endWait = this.#deps.clock.background.alarm(RESUME_MS, () => this.close());
  }

  isOf({ principal, pathName }: McpRequest): boolean {
    return principal.id === this.ownerId && pathName === this.#opened.pathName;
  }

  async receive(parsed: unknown, served: ServedRequest): Promise<void> {
    const { reply } = served;
    if (isJsonObject(parsed) && parsed.method === 'initialize' && parsed.id !== undefined) {
      return this.#initialize(parsed, served);
    }
    const session = this.#session;
    if (session === undefined) throw refused(400, 'Bad Request: Server not initialized');
    reply.log.sessionId = session.id;
    const requests = this.#begin(parsed);
    const answers = this.#replyAs(reply, requests);
    try {
      await this.#deps.legacy.post(parsed, { ...served, reply: answers });
    } catch (thrown) {
      const { id, errorCode } = rpcFailureOf(thrown);
      // Another node may take it, or the stream has ended.
      if (id === null || errorCode === 'SHUTTING_DOWN' || this.#isClosed) {
        this.#forget(requests);
        throw thrown;
      }
      this.#fail(thrown, reply, requests);
    }
    reply.empty(202);
  }

  /** Ends the stream, and the session with all that it owns. */
  close(): void {
    if (this.#isClosed) return;
    this.leave();
    if (this.#session !== undefined) this.#deps.legacy.end(this.#session);
  }

  /** Ends the stream. */
  leave(): void {
    if (this.#isClosed) return;
    this.#stage = 'closed';
    this.#endExpiry();
    this.#endWait();
    this.#deps.ended();
    this.#stream?.end();
    this.#kept.clear();
    this.#gone$.next();
  }

  /** Answers 202 at once: a program may have to start. */
  #initialize(parsed: unknown, served: ServedRequest): void {
    const { reply } = served;
    if (this.#stage !== 'unopened') {
      throw refused(400, 'Invalid Request: the session is initialized already', RPC.invalidRequest);
    }
    const requests = this.#begin(parsed);
    const answers = this.#replyAs(reply, requests);
    let initializing: void | Promise<void>;
    try {
      initializing = this.#deps.legacy.post(parsed, { ...served, reply: answers });
    } catch (thrown) {
      this.#forget(requests);
      throw thrown;
    }
    this.#stage = 'opening';
    this.#endExpiry(); // a program may take longer to start
    reply.empty(202);
    Promise.resolve(initializing)
      .then(() => this.#carryOpened(reply.log.sessionId))
      .catch((thrown: unknown) => this.#fail(thrown, reply, requests))
      .finally(() => {
        if (this.#stage !== 'opening') return;
        this.#stage = 'unopened';
        this.#endExpiry = this.#expireLater();
      });
  }

  #expireLater(): () => void {
    const { alarm } = this.#deps.clock.background;
    return alarm(UNOPENED_MS, () => this.hasSession || this.close());
  }

  async #carryOpened(sessionId: string | undefined): Promise<void> {
    const { principal } = this.#opened;
    const session = sessionId === undefined ? undefined : this.#backends.session(sessionId, principal);
    if (session !== undefined) await this.carry(session); // else the client left, or the session ended
  }

  /** Carries the session from now on. Messages outside of calls are sent on the stream, too. */
  async carry(session: McpSession): Promise<void> {
    if (this.#isClosed) return this.#deps.legacy.end(session);
    this.#session = session;
    this.#stage = 'open';
    this.#noteSession();
    // Calls that end with the session are answered in the same turn.
    session.ended$.subscribe(() => setImmediate(() => this.close()));
    const request = { ...this.#opened, sseSessionId: session.id };
    const reply = this.#replyAs({ log: this.#log });
    try {
      await this.#deps.legacy.get({ request, reply, backends: this.#backends });
    } catch (thrown) {
      const fault = internalFaultOf(rpcFailureOf(thrown));
      if (fault !== undefined) this.#deps.onFault(fault);
      this.close();
    }
  }

  get #isClosed(): boolean {
    return this.#stage === 'closed';
  }

  #noteSession(): void {
    if (this.#session !== undefined) this.#log.sessionId = this.#session.id;
  }

  #begin(parsed: unknown): readonly JsonRpcId[] {
    const requests = this.#position.begin(parsed);
    if (requests.length > 0) this.#sendPosition();
    return requests;
  }

  /** They were refused: their ids may be used again. */
  #forget(requests: readonly JsonRpcId[]): void {
    if (this.#position.end(requests)) this.#sendPosition();
  }

  /** Clients without positions do not say which answers they have. */
  #answered(requests: readonly JsonRpcId[]): boolean {
    return this.#hasPositions ? this.#position.answer(requests) : this.#position.end(requests);
  }

  /** The answer to requests that were not begun. */
  #fail(thrown: unknown, reply: ReplyWriter, requests: readonly JsonRpcId[]): void {
    const failure = rpcFailureOf(thrown);
    const fault = internalFaultOf(failure);
    if (fault !== undefined) this.#deps.onFault(fault);
    noteError(reply.log, failure.error.code, failure.errorCode);
    this.#sendAnswer(failure.body, requests);
  }

  /** The last message for these requests. */
  #sendAnswer(data: Uint8Array | string, requests: readonly JsonRpcId[]): void {
    const number = this.#position.next();
    this.#answered(requests);
    this.#send(data, number);
  }

  /** Does nothing once the connection is closed. */
  #send(data: Uint8Array | string, number = this.#position.next()): void {
    if (this.#isClosed) return;
    if (this.#isKeeping) this.#kept.keep(data, number);
    this.#stream?.send(this.#hasPositions ? { data, id: this.#position.eventId } : { data });
  }

  /** Sends the position, as an event with a name that clients do not listen to. */
  #sendPosition(): void {
    if (this.#hasPositions && !this.#isClosed)
      this.#stream?.send({ name: 'position', data: '', id: this.#position.eventId });
  }

  /** The answer to one POST, or the messages outside of calls, as events of the connection: without ids and statuses. */
  #replyAs({ log }: Pick<ReplyWriter, 'log'>, requests: readonly JsonRpcId[] = []): ReplyWriter {
    const unsentBytes = () => this.#stream?.unsentBytes ?? 0;
    const listening = new Subscription();
    const complete = () => listening.unsubscribe();
    const event = (data: Uint8Array | string): void => {
      this.#sendAnswer(data, requests);
      complete();
    };
    const stream: McpStream = {
      send: ({ data }) => data.length > 0 && this.#send(data),
      end: () => {
        if (this.#answered(requests)) this.#sendPosition();
        complete();
      },
      get unsentBytes() {
        return unsentBytes();
      },
    };
    return {
      log,
      event,
      empty: complete,
      json: (_status, body) => event(body),
      stream: () => stream,
      onGone: (listener) => listening.add(this.#gone$.subscribe(listener)),
    };
  }
}
