// Transport to a backend that is a function of this process: for specs, and for embedders that serve tools themselves. It does what
// the other kinds do, without bytes: progress tokens, cancellation, failures on closing. There is no handshake: the peer counts as
// a legacy server with tools, resources and prompts. A function does not tell its callers apart, so a conversation for one client
// is another view of the shared one.

import { inspect } from 'node:util';
import { Observable, ReplaySubject, Subject, type Subscriber, takeUntil } from 'rxjs';
import type { ClientProfile, ServerMessage } from '../domain/client.ts';
import { backendUnavailable, openingCancelled } from '../domain/error-catalogue.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { type JsonObject, JsonText, type JsonValue, plainValue } from '../domain/json.ts';
import { type JsonRpcError, RPC } from '../domain/jsonrpc.ts';
import { LEGACY_VERSIONS, LOG, type Peer, PROGRESS } from '../domain/mcp.ts';
import { callerTokenOf, paramsForCaller, paramsWithToken, withTrace } from './handshake.ts';
import type {
  Closed,
  InProcessHandler,
  Transport,
  TransportFacts,
  TransportType,
  Upstream,
} from './transport.ts';

/** The in-process row of the table. The function is `options.handlers.get(definition.serverId)`. */
export const inProcess: TransportType = {
  kind: 'in-process',
  open: async (definition, { handlers, signal }) => {
    const handler = handlers.get(definition.serverId);
    if (signal.aborted) throw openingCancelled();
    if (handler === undefined) {
      throw backendUnavailable(`no function serves "${definition.serverId}"`, { delivered: 'no' });
    }
    return new InProcessTransport(handler, peerOf(definition), new Subject());
  },
};

interface InProcessCall {
  readonly request: ExchangeRequest;
  readonly callerToken: JsonValue | undefined;
  readonly subscriber: Subscriber<ExchangeEvent>;
  readonly cancellation: AbortController;
  started: boolean;
}

class InProcessTransport implements Transport {
  readonly kind = 'in-process';
  readonly peer: Peer;
  readonly #handler: InProcessHandler;
  readonly #running = new Set<InProcessCall>();
  /** Shared by all conversations with the function: each gets the messages that belong to no call. */
  readonly #messages: Subject<ServerMessage>;
  readonly #upstreams = new Set<InProcessTransport>();
  readonly #closed = new ReplaySubject<Closed>(1);
  readonly closed$: Observable<Closed> = this.#closed;
  #ended: Closed | undefined;
  #lastToken = 0;
  #unmatchedMessages = 0;

  constructor(handler: InProcessHandler, peer: Peer, messages: Subject<ServerMessage>) {
    this.#handler = handler;
    this.peer = peer;
    this.#messages = messages;
  }

  get messages$(): Observable<ServerMessage> {
    return this.#messages.pipe(takeUntil(this.#closed));
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => this.#start(request, subscriber));
  }

  facts(): TransportFacts {
    return { pid: null, stderr: [], unmatchedMessages: this.#unmatchedMessages };
  }

  /** Notifications are not passed to a function. */
  notify(): void {}

  async openUpstream({ protocolVersion }: ClientProfile, signal: AbortSignal): Promise<Upstream> {
    if (this.#ended !== undefined) throw backendUnavailable(this.#ended.reason, { delivered: 'no' });
    if (signal.aborted) throw openingCancelled();
    const spoken = LEGACY_VERSIONS.find((version) => version === protocolVersion);
    const peer = { ...this.peer, protocolVersion: spoken ?? this.peer.protocolVersion };
    const upstream = new InProcessTransport(this.#handler, peer, this.#messages);
    this.#upstreams.add(upstream);
    upstream.closed$.subscribe(() => this.#upstreams.delete(upstream));
    return upstream;
  }

  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    const closed = { reason: 'closed by the gateway', expected: true };
    this.#ended = closed;
    for (const { subscriber, started } of [...this.#running]) {
      subscriber.error(backendUnavailable(closed.reason, { delivered: started ? 'unknown' : 'no' }));
    }
    for (const upstream of [...this.#upstreams]) void upstream.close();
    this.#closed.next(closed);
    this.#closed.complete();
  }

  #start(request: ExchangeRequest, subscriber: Subscriber<ExchangeEvent>): (() => void) | undefined {
    if (this.#ended !== undefined) {
      subscriber.error(backendUnavailable(this.#ended.reason, { delivered: 'no' }));
      return undefined;
    }
    const call: InProcessCall = {
      request: this.#withToken(withTrace(request)),
      callerToken: callerTokenOf(request),
      subscriber,
      cancellation: new AbortController(),
      started: false,
    };
    request.trace?.speaks(this.peer.protocolVersion);
    this.#running.add(call);
    // Never answers inside `subscribe`, like all other kinds: callers rely on it.
    queueMicrotask(() => void this.#run(call));
    return () => {
      if (this.#running.delete(call)) call.cancellation.abort();
    };
  }

  async #run(call: InProcessCall): Promise<void> {
    if (!this.#running.has(call)) return;
    call.started = true;
    const event = await this.#answer(call);
    if (!this.#running.delete(call)) return;
    call.subscriber.next(event);
    call.subscriber.complete();
  }

  async #answer(call: InProcessCall): Promise<ExchangeEvent> {
    const { signal } = call.cancellation;
    const notify = (method: string, params: JsonObject): void => this.#notify(call, method, params);
    try {
      // Fields that are not sent to backends are removed; the function may write the rest as JSON.
      const { canceller: _, tracker: __, requestId: ___, trace: ____, ...request } = call.request;
      const result = await this.#handler(request, { signal, notify });
      // Serialized at once: a result that is no JSON fails here, and later changes of it have no effect.
      return { kind: 'result', result: JsonText.ofBytes(Buffer.from(JSON.stringify(result ?? {}))) };
    } catch (thrown) {
      return { kind: 'error', error: errorOf(thrown) };
    }
  }

  #notify(call: InProcessCall, method: string, params: JsonObject): void {
    if (!ABOUT_THE_CALL.has(method)) {
      this.#messages.next({ kind: 'notification', method, params });
    } else if (!this.#running.has(call)) {
      this.#unmatchedMessages += 1;
    } else {
      const isProgress = method === PROGRESS;
      const callerParams = isProgress ? paramsForCaller(params, call.callerToken) : params;
      call.subscriber.next({ kind: 'notification', method, params: callerParams });
    }
  }

  #withToken(request: ExchangeRequest): ExchangeRequest {
    this.#lastToken += 1;
    const params = paramsWithToken(request, this.#lastToken);
    return params === undefined ? request : { method: request.method, params: plainValue(params) };
  }
}

function peerOf({ id }: InstanceDefinition): Peer {
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  return {
    era: 'legacy',
    protocolVersion: LEGACY_VERSIONS[0],
    serverName: id,
    serverVersion: '',
    capabilities,
    greeting: { capabilities, serverInfo: { name: id, version: '' } },
  };
}

const ABOUT_THE_CALL: ReadonlySet<string> = new Set([PROGRESS, LOG]);

/** A thrown value with a numeric `code` is the function's own JSON-RPC error; any other is an internal error. */
function errorOf(thrown: unknown): JsonRpcError {
  const message = thrown instanceof Error ? thrown.message : textOf(thrown);
  if (!hasCode(thrown)) return { code: RPC.internalError, message };
  const { code, data } = thrown;
  const error = { code, message: typeof thrown.message === 'string' ? thrown.message : message };
  return data === undefined ? error : { ...error, data };
}

/** `String` throws for an object without a prototype. */
function textOf(thrown: unknown): string {
  return typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 0 });
}

function hasCode(thrown: unknown): thrown is { code: number; message?: unknown; data?: JsonValue } {
  return typeof thrown === 'object' && thrown !== null && 'code' in thrown && typeof thrown.code === 'number';
}
