// The http row of the table of transports: Streamable HTTP, in every protocol era, with or without a program to
// run. A server that refuses it and speaks the older transport, HTTP+SSE, gets that (sse/sse.ts). A transport has
// the connections to one backend, the shared conversation and the dedicated ones (http-conversation.ts);
// managed-http.ts runs the program behind an endpoint.

import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { ClientProfile } from '../../domain/mcp/client.ts';
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
import { KeptHandshakes } from './sessions/kept-handshakes.ts';

export const open: OpenOfKind = managed(openHttp);

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
    const handshakes = new KeptHandshakes(options.countHandshake);
    keepOrEnd(handshakes, session, onAbandoned);
    return new HttpTransport(endpoint, session, options, handshakes);
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
  #hasNoSessions: boolean;

  constructor(
    endpoint: HttpEndpoint,
    session: HttpSession,
    options: OpenOptions,
    handshakes: KeptHandshakes,
  ) {
    const toolHeaders = new ToolHeaders(options);
    const deleteSession = sessionDeletes(options.scheduler, options.clock);
    super({ endpoint, options, toolHeaders, handshakes, deleteSession }, session, undefined);
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
      keepOrEnd(this.backend.handshakes, session);
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

/** Keeps the handshake of the session, which ends if there is no room for it: `onEnd` gets its end, which never rejects. */
function keepOrEnd(
  handshakes: KeptHandshakes,
  session: HttpSession,
  onEnd: (ended: Promise<void>) => void = () => undefined,
): void {
  try {
    handshakes.keep(session);
  } catch (thrown) {
    onEnd(session.end());
    throw thrown;
  }
}
