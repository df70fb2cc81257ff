// The http row of the table of transports: Streamable HTTP, in every protocol era, with or without a program to
// run. A server that refuses it and speaks the older transport, HTTP+SSE, gets that (sse/sse.ts). A transport has
// the connections to one backend, the shared conversation and the dedicated ones (http-conversation.ts);
// managed-http.ts runs the program behind an endpoint.

import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { ClientProfile } from '../../domain/mcp/client.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { isRefusal } from '../handshake.ts';
import { leavesEra, type OpenOfKind, type OpenOptions } from '../open-options.ts';
import { openSse } from '../sse/sse.ts';
import { ToolHeaders } from '../tool-headers.ts';
import type { Closed, ConversationOpening, TransportDiagnostics } from '../transport.ts';
import { HttpConversation } from './http-conversation.ts';
import { HttpEndpoint } from './http-endpoint.ts';
import { type EndpointTransport, managed } from './managed-http.ts';
import { HttpOpenings, sessionDeletes } from './sessions/http-openings.ts';
import { type HttpSession, openSession } from './sessions/http-session.ts';

export const open: OpenOfKind = managed(openHttp);

/**
 * The most different handshakes that are remembered: the result of a server may depend on the declarations of its client,
 * in a few variants.
 */
const MAX_HANDSHAKES = 16;

/**
 * Tries HTTP+SSE at the same URL when Streamable HTTP was refused. If that fails, too, the first failure counts. Throws
 * BACKEND_UNAVAILABLE, `delivered: 'no'`; nothing is left open then.
 * Source: MCP 2025-03-26 basic/transports#backwards-compatibility.
 */
export async function openHttp(
  definition: InstanceDefinition,
  options: OpenOptions,
  withinMs = options.handshakeTimeoutMs,
): Promise<EndpointTransport> {
  const { network } = options;
  if (network.account !== undefined && network.tokens === undefined) {
    const { openWithAccount } = await import('./account-transport.ts');
    return openWithAccount(network.account, definition, options.clock, (tokens) =>
      openHttp(definition, { ...options, network: { ...network, tokens } }, withinMs),
    );
  }
  const startedAtMs = options.clock.now();
  const endpoint = new HttpEndpoint(definition, { ...options, ...network });
  let abandoned: Promise<void> | undefined;
  const onAbandoned = (deleted: Promise<void>): void => {
    abandoned = deleted;
  };
  try {
    const session = await openSession(endpoint, { ...options, handshakeTimeoutMs: withinMs, onAbandoned });
    return new HttpTransport(endpoint, session, options);
  } catch (thrown) {
    await abandoned;
    endpoint.destroy();
    if (!isRefusal(thrown) || options.era === 'modern') throw thrown;
    const leftMs = Math.max(1, withinMs - (options.clock.now() - startedAtMs));
    return openSse(definition, options, leftMs).catch(() => {
      throw thrown;
    });
  }
}

/** The conversation that all clients share, and the dedicated ones. */
class HttpTransport extends HttpConversation implements EndpointTransport {
  readonly kind = 'http';
  /** The openings, made at the first one for a client, which most of thousands of instances never have. */
  #openingsMade: HttpOpenings<HttpConversation> | undefined;
  /**
   * The results of the last handshakes, once each: a result may be kilobytes, and thousands of sessions refer to
   * one. Undefined before the first handshake of a client.
   */
  #handshakes: LruMap<Handshake> | undefined;
  #hasNoSessions: boolean;

  constructor(endpoint: HttpEndpoint, session: HttpSession, options: OpenOptions) {
    const toolHeaders = new ToolHeaders(options);
    const deleteSession = sessionDeletes(options.scheduler, options.clock);
    super({ endpoint, options, toolHeaders, deleteSession }, session, undefined);
    this.#hasNoSessions = session.handshake.era === 'bare' || options.era === 'modern';
  }

  openConversation({ profile, signal, ownerId }: ConversationOpening) {
    return this.#openings.open(ownerId, signal, (anySignal) => this.#openFor(profile, anySignal, ownerId));
  }

  diagnostics(): TransportDiagnostics {
    return { pid: null, stderr: [] };
  }

  leaveEra(): boolean {
    return leavesEra(this.handshake.era, this.backend.options);
  }

  override end(closed: Closed): Promise<void> {
    const conversations = this.#openings.end(closed);
    return super.end(closed, async () => {
      await conversations;
      this.backend.endpoint.destroy();
    });
  }

  get #openings(): HttpOpenings<HttpConversation> {
    const { scheduler, clock, handshakeTimeoutMs } = this.backend.options;
    this.#openingsMade ??= new HttpOpenings(handshakeTimeoutMs, scheduler, clock);
    return this.#openingsMade;
  }

  /** Resolves with undefined when the backend keeps no sessions, which another opening may have found out meanwhile. */
  async #openFor(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string | undefined,
  ): Promise<HttpConversation | undefined> {
    if (this.#hasNoSessions) return undefined;
    const { endpoint, options } = this.backend;
    const { era } = this.handshake;
    try {
      const session = await openSession(endpoint, { ...options, signal, profile, known: era });
      const text = JSON.stringify(session.handshake);
      this.#handshakes ??= new LruMap(MAX_HANDSHAKES);
      session.handshake = this.#handshakes.get(text) ?? session.handshake;
      this.#handshakes.set(text, session.handshake);
      return new HttpConversation(this.backend, session, profile, ownerId);
    } catch (thrown) {
      if (era !== 'modern' || !isRefusal(thrown)) {
        if (isRefusal(thrown)) void this.checkEra();
        throw thrown;
      }
      this.#hasNoSessions = true;
      return undefined;
    }
  }
}
