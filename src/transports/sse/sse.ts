// Transport to a backend that only speaks the first transport of MCP for HTTP (2024-11-05): a stream and posts.
// Each client with a dedicated conversation has its own stream. sse-channel.ts is a stream with its posts.

import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { HttpEndpoint } from '../http/http-endpoint.ts';
import { type EndpointTransport, managed } from '../http/managed-http.ts';
import { HttpOpenings } from '../http/sessions/http-openings.ts';
import type { OpenOfKind, OpenOptions } from '../open-options.ts';
import type { ConversationOpening } from '../transport.ts';
import { SseChannel } from './sse-channel.ts';

export const open: OpenOfKind = managed(openSse);

/** Throws BACKEND_UNAVAILABLE, `delivered: 'no'`; nothing is left open then. */
export async function openSse(
  definition: InstanceDefinition,
  options: OpenOptions,
  withinMs = options.handshakeTimeoutMs,
): Promise<EndpointTransport> {
  const transport = new SseTransport(
    new HttpEndpoint(definition, { ...options, ...options.network }),
    options,
  );
  await transport.open({ ...options, handshakeTimeoutMs: withinMs, first: 'legacy' });
  return transport;
}

/** The stream that all clients share. */
class SseTransport extends SseChannel implements EndpointTransport {
  readonly kind = 'sse';
  readonly #options: OpenOptions;
  readonly #openings: HttpOpenings<SseChannel>;

  constructor(endpoint: HttpEndpoint, options: OpenOptions) {
    super(endpoint, undefined);
    this.#options = options;
    this.#openings = new HttpOpenings(options.handshakeTimeoutMs, options.scheduler, options.clock);
  }

  openConversation({ profile, signal, ownerId }: ConversationOpening) {
    return this.#openings.open(ownerId, signal, async (anySignal) => {
      if (this.handshake.era !== 'legacy') return undefined;
      const channel = new SseChannel(this.endpoint, profile);
      channel.ownerId = ownerId ?? channel.ownerId;
      await channel.open({ ...this.#options, signal: anySignal, profile, first: 'legacy' });
      return channel;
    });
  }

  override async end(...[closed, errorFor]: Parameters<SseChannel['end']>): Promise<void> {
    const ended = this.#openings.end(closed);
    super.end(closed, errorFor);
    await ended;
    this.endpoint.destroy();
  }
}
