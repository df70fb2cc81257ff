// Transport to a backend that only speaks the first transport of MCP for HTTP (2024-11-05): a stream and posts. Every
// client with a conversation of its own has a stream of its own. sse-channel.ts has streams and posts.

import { Observable } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile, ServerMessage } from '../../domain/client.ts';
import { openingCancelled } from '../../domain/error-catalogue.ts';
import { type ExchangeEvent, type ExchangeRequest, isFinal } from '../../domain/exchange.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Peer } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import { type ClientInfo, type HandshakeChannel, shakeHands, withEraMetadata } from '../handshake.ts';
import { connectTo, type HttpConnection } from '../http/http-connection.ts';
import { connectionClosed } from '../http/http-failures.ts';
import { httpStartQueue, undelivered } from '../http/http-openings.ts';
import { type EndpointTransport, openManaged } from '../http/managed-http.ts';
import { settlesWithin } from '../stdio/child-process.ts';
import type { StartQueue } from '../stdio/start-queue.ts';
import type {
  Closed,
  OpenOptions,
  Transport,
  TransportEvents,
  TransportType,
  Upstream,
} from '../transport.ts';
import { SseChannel } from './sse-channel.ts';

/** Reaches `endpoint` by HTTP+SSE; when the definition has a `command` too, the gateway runs the program. */
export const sse: TransportType = {
  kind: 'sse',
  open: (definition, options) =>
    definition.command === undefined
      ? openSse(definition, options)
      : openManaged(definition, options, openSse),
};

/**
 * Opens a stream at the endpoint and shakes hands. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`; nothing is left open
 * then. `locatedMs`: longest wait for the path to post to. Default: that for the handshake.
 */
export async function openSse(
  definition: InstanceDefinition,
  options: OpenOptions,
  locatedMs?: number,
): Promise<EndpointTransport> {
  const connection = connectTo(definition, options);
  try {
    const paced = { ...options, scheduler: options.scheduler ?? new TaskScheduler() };
    const own = await openConversation(connection, paced, undefined, options.signal, locatedMs);
    return new SseTransport(connection, own, paced);
  } catch (thrown) {
    await connection.destroy();
    throw thrown;
  }
}

interface PacedOptions extends OpenOptions {
  readonly scheduler: TaskScheduler;
}

class SseTransport implements Transport {
  readonly kind = 'sse';
  readonly peer: Peer;
  readonly #connection: HttpConnection;
  readonly #own: SseConversation;
  readonly #options: PacedOptions;
  readonly #upstreams = new Set<SseConversation>();
  /** Ends handshakes of upstreams. */
  readonly #over = new AbortController();
  readonly #line: StartQueue;
  #openings = 0;

  constructor(connection: HttpConnection, own: SseConversation, options: PacedOptions) {
    this.peer = own.peer;
    this.#connection = connection;
    this.#own = own;
    this.#options = options;
    this.#line = httpStartQueue(options.handshakeTimeoutMs, options.scheduler);
    own.closed$.subscribe((closed) => void this.end(closed));
  }

  get messages$(): Observable<ServerMessage> {
    return this.#own.messages$;
  }

  get closed$(): Observable<Closed> {
    return this.#own.closed$;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return this.#own.exchange(request);
  }

  notify(method: string, params: JsonObject): void {
    this.#own.notify(method, params);
  }

  async openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string = ANONYMOUS.id,
  ): Promise<Upstream | undefined> {
    const over = this.#over.signal;
    if (over.aborted) throw connectionClosed('closed by the gateway', false);
    if (signal.aborted) throw openingCancelled();
    if (this.peer.era !== 'legacy') return undefined;
    if (this.#upstreams.size + this.#openings >= LIMITS.sessions) throw undelivered(NO_ROOM);
    this.#openings += 1;
    try {
      const either = AbortSignal.any([signal, over]);
      const start = () => openConversation(this.#connection, this.#options, profile, either);
      const upstream = await this.#line.take({ ownerId, signal: either, start });
      this.#upstreams.add(upstream);
      upstream.closed$.subscribe(() => this.#upstreams.delete(upstream));
      return upstream;
    } catch (thrown) {
      throw signal.aborted || over.aborted ? openingCancelled(thrown) : thrown;
    } finally {
      this.#openings -= 1;
    }
  }

  facts(): TransportEvents {
    return { pid: null, stderr: [], unmatchedMessages: this.#own.unmatchedMessages };
  }

  close(): Promise<void> {
    return this.end(CLOSED_HERE);
  }

  /** Ends like `close`, for the given reason. */
  async end(closed: Closed): Promise<void> {
    this.#over.abort();
    const ended = this.#options.scheduler.each([...this.#upstreams], (upstream) => upstream.end(closed));
    this.#own.end(closed);
    await ended;
    await this.#connection.destroy();
  }
}

/** A stream after its handshake. */
class SseConversation implements Upstream {
  readonly peer: Peer;
  readonly #channel: SseChannel;
  readonly #client: ClientInfo;

  constructor(channel: SseChannel, peer: Peer, client: ClientInfo) {
    this.#channel = channel;
    this.peer = peer;
    this.#client = client;
  }

  get messages$(): Observable<ServerMessage> {
    return this.#channel.messages$;
  }

  get closed$(): Observable<Closed> {
    return this.#channel.closed$;
  }

  get unmatchedMessages(): number {
    return this.#channel.unmatchedMessages;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) =>
      this.#channel.send(withEraMetadata(request, this.peer, this.#client), subscriber),
    );
  }

  notify(method: string, params: JsonObject): void {
    void this.#channel.notify(method, params);
  }

  end(closed: Closed): void {
    this.#channel.end(closed);
  }

  async close(): Promise<void> {
    this.end(CLOSED_HERE);
  }
}

const CLOSED_HERE: Closed = { reason: 'closed by the gateway', expected: true };
const NO_ROOM = `all ${LIMITS.sessions} conversations with it are taken`;

/** Opens a stream and shakes hands in time. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`; the stream is closed then. */
async function openConversation(
  connection: HttpConnection,
  { client, handshakeTimeoutMs, scheduler }: PacedOptions,
  profile: ClientProfile | undefined,
  signal: AbortSignal,
  locatedMs?: number,
): Promise<SseConversation> {
  if (signal.aborted) throw openingCancelled();
  const channel = new SseChannel(connection, profile);
  const abort = (): void => channel.end(CLOSED_HERE);
  try {
    return await boundedHandshake({ signal, timeoutMs: handshakeTimeoutMs, scheduler, abort }, async () => {
      if (locatedMs !== undefined && !(await settlesWithin(channel.located, locatedMs))) {
        throw undelivered(`it named no path for messages within ${locatedMs / 1000} s`);
      }
      await channel.located;
      const peer = await shakeHands(overChannel(channel), { client, profile, first: 'legacy' });
      return new SseConversation(channel, peer, client);
    });
  } catch (thrown) {
    abort();
    throw thrown;
  }
}

function overChannel(channel: SseChannel): HandshakeChannel {
  return {
    request: (request) =>
      new Promise((resolve, reject) => {
        channel.send(request, {
          next: (event) => {
            if (isFinal(event)) resolve(event);
          },
          error: reject,
          complete: () => undefined,
        });
      }),
    notify: (method, params) => channel.notify(method, params),
  };
}
