// Transport to a backend that only speaks the first transport of MCP for HTTP (2024-11-05): a stream and posts. Each client with a
// dedicated conversation has its own stream. sse-channel.ts is a stream with its posts.

import type { Observable } from 'rxjs';
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
import { type HandshakeChannel, shakeHands } from '../handshake.ts';
import { connectTo, type HttpConnection } from '../http/http-connection.ts';
import { connectionClosed } from '../http/http-failures.ts';
import { httpStartQueue, NO_ROOM, undelivered } from '../http/http-openings.ts';
import { type EndpointTransport, openManaged } from '../http/managed-http.ts';
import { settlesWithin } from '../stdio/child-process.ts';
import { ChannelConversation } from '../stdio/correlator.ts';
import type { StartQueue } from '../stdio/start-queue.ts';
import type {
  Closed,
  OpenOptions,
  Transport,
  TransportFacts,
  TransportType,
  Upstream,
} from '../transport.ts';
import { SseChannel } from './sse-channel.ts';

/** Connects to `endpoint` by HTTP+SSE; when the definition has a `command`, too, the gateway runs that program behind it. */
export const sse: TransportType = {
  kind: 'sse',
  open: (definition, options) =>
    definition.command === undefined
      ? openSse(definition, options)
      : openManaged(definition, options, openSse),
};

/**
 * Opens a stream at the endpoint and shakes hands. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, and leaves nothing open
 * then. `locatedMs`: longest wait for the path for posts. Default: that for the handshake.
 */
export async function openSse(
  definition: InstanceDefinition,
  options: OpenOptions,
  locatedMs?: number,
): Promise<EndpointTransport> {
  const connection = connectTo(definition, options);
  try {
    const paced = { ...options, scheduler: options.scheduler ?? new TaskScheduler() };
    const opened = await openStream(connection, paced, undefined, options.signal, locatedMs);
    return new SseTransport(connection, opened, paced);
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
  readonly messages$: Observable<ServerMessage>;
  readonly closed$: Observable<Closed>;
  readonly #connection: HttpConnection;
  readonly #channel: SseChannel;
  readonly #own: ChannelConversation;
  readonly #options: PacedOptions;
  readonly #upstreams = new Set<SseChannel>();
  /** Aborts openings of upstreams. */
  readonly #over = new AbortController();
  readonly #queue: StartQueue;
  #openings = 0;

  constructor(connection: HttpConnection, { channel, peer }: OpenedStream, options: PacedOptions) {
    this.peer = peer;
    this.messages$ = channel.messages$;
    this.closed$ = channel.closed$;
    this.#connection = connection;
    this.#channel = channel;
    this.#own = new ChannelConversation(channel, peer, options.client);
    this.#options = options;
    this.#queue = httpStartQueue(options.handshakeTimeoutMs, options.scheduler);
    channel.closed$.subscribe((closed) => void this.end(closed));
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
      const start = () => openStream(this.#connection, this.#options, profile, either);
      const { channel, peer } = await this.#queue.take({ ownerId, signal: either, start });
      this.#upstreams.add(channel);
      channel.closed$.subscribe(() => this.#upstreams.delete(channel));
      return new ChannelConversation(channel, peer, this.#options.client);
    } catch (thrown) {
      throw signal.aborted || over.aborted ? openingCancelled(thrown) : thrown;
    } finally {
      this.#openings -= 1;
    }
  }

  facts(): TransportFacts {
    return { pid: null, stderr: [], unmatchedMessages: this.#channel.unmatchedMessages };
  }

  close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  /** Closes for the given reason. */
  async end(closed: Closed): Promise<void> {
    this.#over.abort();
    const ended = this.#options.scheduler.each([...this.#upstreams], (channel) => channel.end(closed));
    this.#channel.end(closed);
    await ended;
    await this.#connection.destroy();
  }
}

/** A stream after its handshake. */
interface OpenedStream {
  readonly channel: SseChannel;
  readonly peer: Peer;
}

/** Opens a stream and shakes hands in time. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`; the stream is closed then. */
async function openStream(
  connection: HttpConnection,
  { client, handshakeTimeoutMs, scheduler }: PacedOptions,
  profile: ClientProfile | undefined,
  signal: AbortSignal,
  locatedMs?: number,
): Promise<OpenedStream> {
  if (signal.aborted) throw openingCancelled();
  const channel = new SseChannel(connection, profile);
  const abort = (): void => void channel.close();
  try {
    return await boundedHandshake({ signal, timeoutMs: handshakeTimeoutMs, scheduler, abort }, async () => {
      if (locatedMs !== undefined && !(await settlesWithin(channel.located, locatedMs))) {
        throw undelivered(`it named no path for messages within ${locatedMs / 1000} s`);
      }
      await channel.located;
      const peer = await shakeHands(overChannel(channel), { client, profile, first: 'legacy' });
      return { channel, peer };
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
