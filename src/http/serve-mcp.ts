// Serves a request of the MCP endpoint: on this node, or at the node that holds its session. src/protocol handles the messages.

import type { Peer } from '../cluster/channel/peer-client.ts';
import type { ForwardingPeers } from '../cluster/channel/peers.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import { nodeUnavailable } from '../domain/errors/node-errors.ts';
import { tooManyMessages } from '../domain/errors/request-errors.ts';
import { sessionNotFound } from '../domain/errors/session-errors.ts';
import { isRepeatableMethod } from '../domain/mcp/mcp.ts';
import { NO_BYTES } from '../domain/memory/bounded-bytes.ts';
import { NotHolder } from '../domain/nodes/forwarding.ts';
import { whenKnown } from '../domain/time/when-known.ts';
import { countedRequests, messagesIn } from '../protocol/client-message.ts';
import type { McpRequest, ReplyWriter } from '../protocol/endpoint-types.ts';
import { headerOf } from '../protocol/headers.ts';
import { sessionOfEvent } from '../protocol/legacy/sse-position.ts';
import { rpcFailureOf } from '../protocol/rpc.ts';
import { AT_HOLDER_MS, serveAtHolder, unlessRefused } from './forwarding/serve-at-holder.ts';
import type { ForwardJob, Relay, Reply, ServedReply } from './replies/reply.ts';
import type { RouteInput } from './routing/route.ts';
import type { Method } from './routing/route-params.ts';
import type { Services } from './services.ts';

type McpInput = RouteInput<unknown, unknown, unknown>;
type McpMethod = Extract<Method, McpRequest['method']>;

/**
 * The answer of this node, or that of the node that holds the session. After a freeze it waits until this node
 * knows its own sessions.
 */
export function serveMcp(
  method: McpMethod,
  input: McpInput,
  services: Services,
  { isSse = false }: { readonly isSse?: boolean } = {},
): Reply | Promise<Reply> {
  const known = services.peers?.untilLifeKnown();
  if (known === undefined) return new McpServing(method, input, services, isSse).untilLocated(); // nearly always
  const sinceMs = services.clock.now();
  return known.then(() => new McpServing(method, input, services, isSse, sinceMs).untilLocated());
}

/** One request, and the reply that serves it. */
class McpServing implements ServedReply {
  readonly kind = 'mcp';
  readonly #method: McpMethod;
  readonly #input: McpInput;
  readonly #services: Services;
  readonly #isSse: boolean;
  /** The id of the session in the path for messages of HTTP+SSE. */
  readonly #sseSessionId: string | undefined;
  readonly #sessionId: string | undefined;
  /** The time since which the request waits, by the monotonic clock; undefined when it has not waited. */
  #sinceMs: number | undefined;
  /** The other node that holds its session. */
  #holder: Peer | undefined;

  constructor(method: McpMethod, input: McpInput, services: Services, isSse: boolean, sinceMs?: number) {
    this.#method = method;
    this.#input = input;
    this.#services = services;
    this.#isSse = isSse;
    this.#sinceMs = sinceMs;
    this.#sseSessionId = method === 'POST' ? sseSessionIdOf(input.query, isSse) : undefined;
    this.#sessionId = this.#sseSessionId ?? (services.peers && sessionIdOf(method, input));
  }

  /** This object, once it is known which node holds the session. */
  untilLocated(): McpServing | Promise<McpServing> {
    const id = this.#sessionId;
    const peer = id === undefined ? undefined : this.#services.peers?.ofSession(id);
    if (peer === undefined) return this;
    return whenKnown(peer, (found) => {
      this.#holder = found;
      return this;
    });
  }

  serve(reply: ReplyWriter, relay: Relay): void | Promise<void> {
    if (this.#holder !== undefined) return this.#atHolder(this.#holder, reply, relay);
    const { mcp } = this.#services.gateway;
    const handle = () => this.#countingRefusals(() => mcp.handle(this.#request(relay), reply));
    return handle()?.catch((thrown: unknown) => {
      if (!(thrown instanceof NotHolder)) throw thrown;
      return this.#notHere(thrown, relay, handle);
    });
  }

  async #atHolder(peer: Peer, reply: ReplyWriter, relay: Relay): Promise<void> {
    const untilMs = this.#sinceMs === undefined ? undefined : this.#sinceMs + AT_HOLDER_MS;
    try {
      await this.#forward(peer, relay, untilMs);
    } catch (thrown) {
      if (!(thrown instanceof NotHolder)) throw thrown;
      this.#sinceMs = thrown.sinceMs ?? this.#sinceMs;
      this.#holder = undefined;
      await this.serve(reply, relay);
    }
  }

  /** Serves a request whose session is not at this node. */
  #notHere(thrown: NotHolder, relay: Relay, serveHere: () => void | Promise<void>): Promise<void> {
    const { peers, clock } = this.#services;
    const id = this.#sessionId;
    if (peers === undefined || id === undefined) throw this.#refusalOf(thrown);
    return serveAtHolder(new NotHolder(thrown.life, this.#sinceMs), {
      peerOf: (life) => peers.noteHolder(id, life),
      forwardTo: (peer, untilMs) => this.#forward(peer, relay, untilMs),
      serveHere,
      clock,
    });
  }

  #request(relay: Relay): McpRequest {
    const method = this.#method;
    const { requestBytes, peers } = this.#services;
    const { params, request, principal } = this.#input;
    const { template: written }: { readonly template?: unknown } = Object(params);
    const pathName = typeof written === 'string' ? written : undefined;
    const others = peers && this.#forwarders(peers, relay);
    return {
      method,
      headers: request.headers,
      body: this.#body,
      pathName,
      principal,
      requestId: request.id,
      holdBody: request.holdBody,
      isForwarded: request.isForwarded,
      sse: method === 'GET' ? { isOnly: this.#isSse, messagesPath: messagesPathOf(pathName) } : undefined,
      sseSessionId: this.#sseSessionId,
      forward: others?.forward,
      openAt: others?.openAt,
      requireRoom: () => {
        if (!requestBytes.fits(principal.id, 1)) throw tooManyMessages();
      },
      report: (reported) => request.report(reported),
      consumeRateLimit: (requests) => this.#count(requests),
    };
  }

  /**
   * A session that is open at another node, to which nothing is forwarded from here: 404, as for any session that
   * this node does not know, if requests are not forwarded at all (`cluster.forward`). Otherwise the node that
   * forwarded the request goes on.
   */
  #refusalOf({ life }: NotHolder): GatewayError {
    const { readiness, nodes } = this.#services;
    const { isForwarded } = this.#input.request;
    const isOpen = nodes().some((node) => node.life === life && node.state === 'live');
    if (isOpen && !isForwarded && !readiness.isLeaving) return sessionNotFound();
    return nodeUnavailable(undefined, 'this node cannot forward requests to it', 'no');
  }

  /** See McpRequest. The request is counted before. */
  #forwarders(peers: ForwardingPeers, relay: Relay): Pick<McpRequest, 'forward' | 'openAt'> {
    const toPeer = async (peer: Peer | undefined): Promise<boolean> => {
      if (peer === undefined) return false;
      try {
        await relay(this.#jobFor(peer));
      } catch (thrown) {
        if (!(thrown instanceof NotHolder)) throw thrown;
        return false; // the node is gone: its waiting calls are lost, a session is opened here
      }
      return true;
    };
    return {
      forward: (id) => {
        const peer = peers.ofSession(id);
        return peer instanceof Promise ? peer.then(toPeer) : peer && toPeer(peer);
      },
      openAt: (where) => {
        const peer = where === 'opener' ? unlessRefused(peers.ofOpeners()) : peers.ofInstances(where);
        return peer && toPeer(peer);
      },
    };
  }

  /** Counts the requests of the body, then sends all of it to the holder of the session. */
  #forward(peer: Peer, relay: Relay, untilMs: number | undefined): void | Promise<void> {
    const job = this.#jobFor(peer, untilMs);
    if (this.#method !== 'POST') return relay(job);
    return this.#countingRefusals(() => {
      const messages = messagesIn(this.#body);
      const counted = countedRequests(messages);
      const [first] = messages.length === 1 ? messages : [];
      const id = first?.kind === 'request' ? first.id : null;
      return whenKnown(counted === 0 ? undefined : this.#count(counted), () =>
        relay({ ...job, failure: (error: GatewayError) => rpcFailureOf(error, id) }),
      );
    });
  }

  /** The job that sends the request to the other node. */
  #jobFor(peer: Peer, untilMs?: number): ForwardJob {
    const method = this.#method;
    const body = this.#body;
    const { request, principal } = this.#input;
    const { longestRequestMs: longestMs } = this.#services.gateway.internals;
    const { id: requestId, address, target, headers } = request;
    const caller = { principal, requestId, address };
    const isRepeatable = () =>
      method !== 'POST' ||
      messagesIn(body).every((message) => message.kind !== 'request' || isRepeatableMethod(message.method));
    return {
      node: peer.node,
      forward: (answer) =>
        peer.forward(
          {
            ...{ caller, method, target, headers, body, isRepeatable, untilMs, longestMs },
            isStream: method === 'GET',
          },
          answer,
        ),
      onLost: (listener) => request.onLost(listener),
      countRefusal: () => (method === 'POST' ? this.#count(1) : undefined),
      failure: (error) => error,
    };
  }

  /**
   * Counts a message that is refused as invalid as one request, unless its requests were counted before: it has
   * been read and parsed. Then RATE_LIMIT_EXCEEDED replaces the refusal of a caller without requests left.
   */
  #countingRefusals(serve: () => void | Promise<void>): void | Promise<void> {
    if (this.#method !== 'POST') return serve();
    const refuse = (thrown: unknown): never | Promise<never> => {
      if (!isRefusedAsInvalid(thrown)) throw thrown;
      return whenKnown(this.#count(1), () => {
        throw thrown;
      });
    };
    try {
      return serve()?.catch(refuse);
    } catch (thrown) {
      return refuse(thrown);
    }
  }

  #count(requests: number): void | Promise<void> {
    return this.#input.request.consume(this.#services.auth.limiter, requests);
  }

  get #body(): Buffer {
    const { body } = this.#input;
    return Buffer.isBuffer(body) ? body : NO_BYTES;
  }
}

/** The path to which a client of HTTP+SSE sends its messages. */
function messagesPathOf(pathName: string | undefined): string {
  return pathName === undefined ? '/mcp' : `/mcp/${pathName}/messages`;
}

/** The id that the request names: a GET of HTTP+SSE names it in the last event that the client has. */
function sessionIdOf(method: McpMethod, { request: { headers } }: McpInput): string | undefined {
  return headerOf(headers, 'mcp-session-id') ?? (method === 'GET' ? sessionOfEvent(headers) : undefined);
}

function isRefusedAsInvalid(thrown: unknown): boolean {
  const { status } = rpcFailureOf(thrown);
  return status >= 400 && status < 500 && status !== 429;
}

/**
 * The session id of a message at the messages path, which may be empty: a message without an id is answered like one with an
 * unknown id.
 */
function sseSessionIdOf(query: unknown, isSse: boolean): string | undefined {
  const { sessionId }: { readonly sessionId?: unknown } = Object(query);
  if (typeof sessionId === 'string') return sessionId;
  return isSse ? '' : undefined;
}
