// Serves a request of the MCP endpoint: on this node, or at the node that owns its session. src/protocol handles the messages.

import { tooManyMessages } from '../domain/errors/error-catalogue.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import { nodeUnavailable, sessionNotFound } from '../domain/errors/session-errors.ts';
import { isRepeatableMethod } from '../domain/mcp/mcp.ts';
import { SessionElsewhere, type SessionOwner, type SessionOwners } from '../domain/nodes/forwarding.ts';
import { systemClock } from '../domain/time/clock.ts';
import { countedRequests, messagesIn } from '../protocol/client-message.ts';
import type { McpRequest } from '../protocol/endpoint-types.ts';
import { headerOf } from '../protocol/headers.ts';
import { sessionOfEvent } from '../protocol/legacy/sse-position.ts';
import { rpcFailureOf } from '../protocol/rpc.ts';
import { NO_BYTES } from './body/read.ts';
import { whenKnown } from './caller-check.ts';
import type { ForwardReply, McpEndpointReply, Reply } from './reply.ts';
import type { Method, RouteInput, Services } from './route.ts';
import { ELSEWHERE_MS, serveElsewhere, unlessRefused } from './serve-elsewhere.ts';

type McpInput = RouteInput<unknown, unknown, unknown>;
type McpMethod = Extract<Method, McpRequest['method']>;

/** The answer of this node, or that of the node that owns the session. After a freeze it waits until this node knows its own sessions. */
export function serve(...request: Parameters<typeof serveCertain>): Reply | Promise<Reply> {
  const [method, input, services, options] = request;
  const certain = services.owners?.certain();
  if (certain === undefined) return serveCertain(...request); // nearly always
  const sinceMs = systemClock.now();
  return certain.then(() => serveCertain(method, input, services, { ...options, sinceMs }));
}

interface Waits {
  /** Since when the request waits, by the monotonic clock. Default: it has not waited. */
  readonly sinceMs?: number | undefined;
}

function serveCertain(
  method: McpMethod,
  input: McpInput,
  services: Services,
  { isSse = false, sinceMs }: Waits & { readonly isSse?: boolean } = {},
): Reply | Promise<Reply> {
  const { owners } = services;
  const connection = method === 'POST' ? connectionOf(input.query, isSse) : undefined;
  const sessionId = connection ?? (owners && sessionIdOf(method, input));
  const owner = sessionId === undefined ? undefined : owners?.ownerOf(sessionId);
  const place = { isSse, connection, sessionId, sinceMs };
  if (owner === undefined) return { kind: 'mcp', serve: serveHere(method, input, services, place) };
  return whenKnown(owner, (found) => {
    if (found === undefined) return { kind: 'mcp', serve: serveHere(method, input, services, place) };
    const untilMs = sinceMs === undefined ? undefined : sinceMs + ELSEWHERE_MS;
    return {
      kind: 'mcp',
      serve: async (reply, relay) => {
        try {
          await forward(found, method, input, services.auth, relay, untilMs);
        } catch (thrown) {
          if (!(thrown instanceof SessionElsewhere)) throw thrown;
          const waited = { ...place, sinceMs: thrown.sinceMs ?? sinceMs };
          await serveHere(method, input, services, waited)(reply, relay);
        }
      },
    };
  });
}

/** The id that the request names: a GET of HTTP+SSE names it in the last event that the client has. */
function sessionIdOf(method: McpMethod, { request: { headers } }: McpInput): string | undefined {
  return headerOf(headers, 'mcp-session-id') ?? (method === 'GET' ? sessionOfEvent(headers) : undefined);
}

interface Place extends Waits {
  readonly isSse: boolean;
  /** The id of the session in the path for messages of HTTP+SSE. */
  readonly connection: string | undefined;
  readonly sessionId: string | undefined;
}

function serveHere(
  method: McpMethod,
  input: McpInput,
  services: Services,
  { isSse, connection, sessionId, sinceMs }: Place,
): McpEndpointReply['serve'] {
  const { gateway, mcp, auth, owners } = services;
  const { params, body, request, principal } = input;
  const { template }: { readonly template?: unknown } = Object(params);
  const name = typeof template === 'string' ? template : undefined;
  const messagesPath = method !== 'GET' || name === undefined ? '/mcp' : `/mcp/${name}/messages`;
  return (reply, relay) => {
    const handle = () => {
      const others = owners && forwarders(owners, relay, method, input, auth);
      return mcp.handle(
        {
          method,
          headers: request.headers,
          body: Buffer.isBuffer(body) ? body : NO_BYTES,
          template: name,
          principal,
          requestId: request.id,
          holdBody: request.holdBody,
          isForwarded: request.isForwarded,
          sse: method === 'GET' ? { isOnly: isSse, messagesPath } : undefined,
          sseConnection: connection,
          forward: others?.forward,
          openAt: others?.openAt,
          requireRoom: () => {
            if (!gateway.requestBytes.fits(principal.id, 1)) throw tooManyMessages();
          },
          report: (reported) => request.report(reported),
          consumeRateLimit: (requests) => request.consume(auth.limiter, requests),
        },
        reply,
      );
    };
    const counted = () =>
      method === 'POST' ? countingRefusals(handle, () => request.consume(auth.limiter, 1)) : handle();
    const served = counted();
    return served?.catch((thrown: unknown) => {
      if (!(thrown instanceof SessionElsewhere)) throw thrown;
      if (owners === undefined || sessionId === undefined) throw refusalOf(thrown, request, services);
      return serveElsewhere(new SessionElsewhere(thrown.life, sinceMs), {
        ownerIn: (life) => owners.elsewhere(sessionId, life),
        forwardTo: (owner, untilMs) => forward(owner, method, input, auth, relay, untilMs),
        serveHere: counted,
      });
    });
  };
}

/**
 * A session that is open at another node, to which nothing is forwarded from here: 404, as for any session that this node does not know, if
 * requests are not forwarded at all (`cluster.forward`). Otherwise the node that forwarded the request goes on.
 */
function refusalOf(
  { life }: SessionElsewhere,
  { isForwarded }: Pick<McpInput['request'], 'isForwarded'>,
  { gateway, nodes }: Pick<Services, 'gateway' | 'nodes'>,
): GatewayError {
  const isOpen = nodes?.().some((node) => node.life === life && node.state === 'live') === true;
  if (isOpen && !isForwarded && !gateway.readiness.isLeaving) return sessionNotFound();
  return nodeUnavailable('', 'another one has the session', 'no');
}

/** See McpRequest. The request is counted before. */
function forwarders(
  owners: SessionOwners,
  relay: (answer: ForwardReply) => Promise<void>,
  method: McpMethod,
  input: McpInput,
  auth: Services['auth'],
): Pick<McpRequest, 'forward' | 'openAt'> {
  const toOwner = async (owner: SessionOwner | undefined): Promise<boolean> => {
    if (owner === undefined) return false;
    try {
      await relay(forwardReply(owner, method, input, auth));
    } catch (thrown) {
      if (!(thrown instanceof SessionElsewhere)) throw thrown;
      return false; // the node is gone: its parked calls are lost, a session is opened here
    }
    return true;
  };
  return {
    forward: (id) => {
      const owner = owners.ownerOf(id);
      return owner instanceof Promise ? owner.then(toOwner) : owner && toOwner(owner);
    },
    openAt: (place) => {
      const owner = place === 'elsewhere' ? unlessRefused(owners.opener()) : owners.ofInstances(place);
      return owner && toOwner(owner);
    },
  };
}

/** Counts the requests of the body, then sends all of it to the owner of the session. */
function forward(
  owner: SessionOwner,
  method: McpMethod,
  input: McpInput,
  auth: Services['auth'],
  relay: (answer: ForwardReply) => Promise<void>,
  untilMs: number | undefined,
): void | Promise<void> {
  const reply = forwardReply(owner, method, input, auth, untilMs);
  if (method !== 'POST') return relay(reply);
  const { body, request } = input;
  const count = (requests: number) => request.consume(auth.limiter, requests);
  return countingRefusals(
    () => {
      const messages = messagesIn(Buffer.isBuffer(body) ? body : NO_BYTES);
      const counted = countedRequests(messages);
      const [first] = messages.length === 1 ? messages : [];
      const id = first?.kind === 'request' ? first.id : null;
      return whenKnown(counted === 0 ? undefined : count(counted), () =>
        relay({ ...reply, failure: (error: GatewayError) => rpcFailureOf(error, id) }),
      );
    },
    () => count(1),
  );
}

function forwardReply(
  owner: SessionOwner,
  method: McpMethod,
  { body: given, request, principal }: McpInput,
  { limiter }: Services['auth'],
  untilMs?: number,
): ForwardReply {
  const body = Buffer.isBuffer(given) ? given : NO_BYTES;
  const { id: requestId, address, target, headers } = request;
  const caller = { principal, requestId, address };
  const isRepeatable = () =>
    method !== 'POST' ||
    messagesIn(body).every((message) => message.kind !== 'request' || isRepeatableMethod(message.method));
  return {
    node: owner.node,
    forward: (answer) =>
      owner.forward(
        { caller, method, target, headers, body, isStream: method === 'GET', isRepeatable, untilMs },
        answer,
      ),
    onLost: (listener) => request.onLost(listener),
    countRefusal: () => (method === 'POST' ? request.consume(limiter, 1) : undefined),
    failure: (error) => error,
  };
}

/**
 * Counts a message that is refused as invalid as one request, unless its requests were counted before: it has been read and parsed.
 * Then RATE_LIMIT_EXCEEDED replaces the refusal of a caller without requests left.
 */
function countingRefusals<T>(serve: () => T | Promise<T>, count: () => void | Promise<void>): T | Promise<T> {
  const refuse = (thrown: unknown): never | Promise<never> => {
    if (!isRefusedAsInvalid(thrown)) throw thrown;
    return whenKnown(count(), () => {
      throw thrown;
    });
  };
  try {
    const served = serve();
    return served instanceof Promise ? served.catch(refuse) : served;
  } catch (thrown) {
    return refuse(thrown);
  }
}

function isRefusedAsInvalid(thrown: unknown): boolean {
  const { status } = rpcFailureOf(thrown);
  return status >= 400 && status < 500 && status !== 429;
}

/** At the messages path a message without a session id is answered like one with an unknown id. */
function connectionOf(query: unknown, isSse: boolean): string | undefined {
  const { sessionId }: { readonly sessionId?: unknown } = Object(query);
  if (typeof sessionId === 'string') return sessionId;
  return isSse ? '' : undefined;
}
