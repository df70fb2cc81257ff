// Transport to a backend that only speaks the first transport of MCP for HTTP (2024-11-05): a stream and posts. Each client with a
// dedicated conversation has its own stream. sse-channel.ts is a stream with its posts.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile } from '../../domain/client.ts';
import { openingCancelled } from '../../domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import { connectTo, type HttpConnection } from '../http/http-connection.ts';
import { connectionClosed } from '../http/http-failures.ts';
import { httpStartQueue, NO_ROOM, undelivered } from '../http/http-openings.ts';
import { type EndpointTransport, openManaged } from '../http/managed-http.ts';
import { settlesWithin } from '../stdio/child-process.ts';
import type { StartQueue } from '../stdio/start-queue.ts';
import type { OpenOptions, TransportType, Upstream } from '../transport.ts';
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
  if (options.signal.aborted) throw openingCancelled();
  const paced = { ...options, scheduler: options.scheduler ?? new TaskScheduler() };
  const transport = new SseTransport(connectTo(definition, options), paced);
  await openStream(transport, paced, undefined, options.signal, locatedMs);
  return transport;
}

interface PacedOptions extends OpenOptions {
  readonly scheduler: TaskScheduler;
}

/** The stream that all clients share. */
class SseTransport extends SseChannel implements EndpointTransport {
  readonly kind = 'sse';
  readonly #connection: HttpConnection;
  readonly #options: PacedOptions;
  readonly #upstreams = new Set<SseChannel>();
  /** Aborts openings of upstreams. */
  readonly #over = new AbortController();
  readonly #queue: StartQueue;
  #openings = 0;

  constructor(connection: HttpConnection, options: PacedOptions) {
    super(connection, undefined);
    this.#connection = connection;
    this.#options = options;
    this.#queue = httpStartQueue(options.handshakeTimeoutMs, options.scheduler);
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
      const start = async (): Promise<SseChannel> => {
        if (either.aborted) throw openingCancelled();
        const channel = new SseChannel(this.#connection, profile);
        await openStream(channel, this.#options, profile, either);
        return channel;
      };
      const channel = await this.#queue.take({ ownerId, signal: either, start });
      this.#upstreams.add(channel);
      channel.closed$.subscribe(() => this.#upstreams.delete(channel));
      return channel;
    } catch (thrown) {
      throw signal.aborted || over.aborted ? openingCancelled(thrown) : thrown;
    } finally {
      this.#openings -= 1;
    }
  }

  override close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  override async end(...[closed, errorFor]: Parameters<SseChannel['end']>): Promise<void> {
    this.#over.abort();
    const ended = this.#options.scheduler.each([...this.#upstreams], (channel) => channel.end(closed));
    super.end(closed, errorFor);
    await ended;
    await this.#connection.destroy();
  }
}

/** Shakes hands in time. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`; the stream is closed then. */
async function openStream(
  channel: SseChannel,
  { client, handshakeTimeoutMs, scheduler }: PacedOptions,
  profile: ClientProfile | undefined,
  signal: AbortSignal,
  locatedMs?: number,
): Promise<void> {
  const abort = (): void => void channel.close();
  try {
    await boundedHandshake({ signal, timeoutMs: handshakeTimeoutMs, scheduler, abort }, async () => {
      const located = channel.locate();
      if (locatedMs !== undefined && !(await settlesWithin(located, locatedMs))) {
        throw undelivered(`it named no path for messages within ${locatedMs / 1000} s`);
      }
      await located;
      await channel.open({ client, profile, first: 'legacy' });
    });
  } catch (thrown) {
    await channel.close();
    throw thrown;
  }
}
