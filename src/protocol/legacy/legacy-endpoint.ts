// The MCP endpoint for clients of the legacy era (2024-11-05 to 2025-11-25): handshake, sessions, event streams.
// endpoint.ts has found the era; LegacyTraffic keeps the state that outlasts single requests. Source: MCP 2025-11-25
// basic/transports#streamable-http, basic/lifecycle#initialization.

import { callCutOff } from '../../domain/errors/backend-errors.ts';
import { hasCode, perhapsDelivered } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import type { EndReason } from '../../domain/errors/session-ends.ts';
import { sessionNotFound } from '../../domain/errors/session-errors.ts';
import { isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json/json.ts';
import {
  type JsonRpcError,
  type JsonRpcId,
  METHOD_NOT_FOUND,
  RPC,
  readId,
} from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, INITIALIZED, isLikeMcp, isOfOtherEra, isTaskMethod } from '../../domain/mcp/mcp.ts';
import { lifeOf } from '../../domain/nodes/life.ts';
import { OpaqueNumbers } from '../../domain/opaque-numbers.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import { settlesWithin } from '../../domain/time/clock.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import { badReferenceIn } from '../client-bounds.ts';
import { createSlowAnswerTimer } from '../client-call.ts';
import {
  type ClientRequest,
  countedRequests,
  type McpMessage,
  readClientBatch,
  readClientMessage,
  requestsOf,
} from '../client-message.ts';
import {
  type CommonOptions,
  type EndpointOptions,
  holdingBody,
  type McpRequest,
  noteError,
  type ServedRequest,
} from '../endpoint-types.ts';
import { checkGetTypes, headerOf } from '../headers.ts';
import type { KnownTasks } from '../known-tasks.ts';
import { errorMessage, invalidRequest, resultMessage, rpcFailureOf } from '../rpc.ts';
import { lastEventIdOf, mayPoll, profileOf, sessionOf, versionOf } from './legacy-request.ts';
import { EventBudget, positionOf } from './legacy-stream.ts';
import { LegacyTasks } from './legacy-tasks.ts';
import { type LegacyTraffic, type LegacyTrafficDeps, lostWithGateway } from './legacy-traffic.ts';
import type { PostAnswer } from './post-answer.ts';
import { TrafficBySession } from './traffic-by-session.ts';

/** The longest wait of a client for the stream of its backend, in ms. */
const LISTENING_MS = 250;
const NOTHING = JsonText.ofValue({});

interface LegacyOptions extends CommonOptions, Pick<EndpointOptions, 'bufferedBytes' | 'newSessionId'> {
  readonly tasks: KnownTasks;
}

/** Serves legacy clients at all paths. The caller closes it. */
export class LegacyEndpoint {
  readonly #deps: LegacyTrafficDeps;
  readonly #traffic: TrafficBySession;
  readonly #tasks: LegacyTasks;
  readonly #newSessionId: () => string;
  /** Hides the numbers in ids of events, which clients see. */
  readonly #opaque = new OpaqueNumbers();
  #lastNumber = 0;

  constructor({ onFault, scheduler, tasks, bufferedBytes, newSessionId, clock }: LegacyOptions) {
    this.#newSessionId = newSessionId;
    this.#tasks = new LegacyTasks(tasks, clock);
    this.#deps = {
      budget: new EventBudget(bufferedBytes),
      listened: new WeakSet(),
      clock,
      slowAnswerTimer: createSlowAnswerTimer(clock, scheduler),
      nextNumber: () => {
        this.#lastNumber += 1;
        return this.#opaque.hide(this.#lastNumber);
      },
      onFault,
    };
    this.#traffic = new TrafficBySession(this.#deps, scheduler);
  }

  /** The budget of the messages that clients may get again. */
  get budget(): EventBudget {
    return this.#deps.budget;
  }

  /** The number of sessions with state between requests. */
  get openTraffic(): number {
    return this.#traffic.size;
  }

  /**
   * Serves one POST. `parsed` is its JSON, within the bounds of readBody. Checks the message, Mcp-Session-Id and
   * MCP-Protocol-Version; media types are already checked. Throws RpcFailure or GatewayError, only before the answer has begun.
   * Returns a promise only for `initialize`, and where `request.consumeRateLimit` or `sessionOf` returns one.
   */
  post(parsed: unknown, served: ServedRequest): void | Promise<void> {
    if (Array.isArray(parsed)) return this.#postBatch(parsed, served);
    const message = readClientMessage(parsed);
    if (message.kind !== 'answer') served.reply.log.rpcMethod = message.method;
    if (message.kind === 'request' && message.method === 'initialize') {
      return this.#initialize(message, served);
    }
    const id = message.kind === 'request' ? message.id : null;
    return whenKnown(sessionOf(served), (session) => this.#countAndServe([message], id, session, served));
  }

  /**
   * Opens or resumes a stream. A new one waits for the stream of the backend, at most LISTENING_MS, so that no
   * message is missed.
   */
  get(served: ServedRequest): void | Promise<void> {
    checkGetTypes(served.request.headers);
    const open = (session: McpSession) => this.#openStream(session, served);
    const lost = (thrown: unknown) => this.#answerOfEarlierLife(served, thrown);
    try {
      const session = sessionOf(served);
      return session instanceof Promise ? session.then(open, lost) : open(session);
    } catch (thrown) {
      lost(thrown);
    }
  }

  /**
   * Handles a resumption in a session of an earlier life that is over. When the client resumes the stream of a call,
   * the call gets an error instead of the 404 of other requests: after a 404 the SDK would wait for the answer until
   * its own timeout.
   */
  #answerOfEarlierLife({ request: { headers }, reply }: ServedRequest, thrown: unknown): void {
    const life = lifeOf(headerOf(headers, 'mcp-session-id') ?? '');
    const lastCall = positionOf(headerOf(headers, 'last-event-id') ?? '')?.request;
    const isOfEarlierLife = life !== undefined && life !== lifeOf(this.#newSessionId());
    if (!isOfEarlierLife || lastCall === undefined || rpcFailureOf(thrown).status !== 404) throw thrown;
    reply.event(lostWithGateway(lastCall));
  }

  #openStream(session: McpSession, served: ServedRequest): void | Promise<void> {
    const { request, reply } = served;
    const lastEventId = lastEventIdOf(request);
    const traffic = this.#traffic.of(session);
    const listening = lastEventId === undefined ? traffic.listen() : undefined;
    if (listening === undefined) return traffic.open(reply, lastEventId);
    // The session may have ended meanwhile.
    const open = async () => this.#traffic.of(await sessionOf(served)).open(reply, lastEventId);
    return settlesWithin(listening, LISTENING_MS, this.#deps.clock.background).then(open);
  }

  /** Ends the session. Its dedicated processes end after the answer, because a program may take long to end. */
  delete(served: ServedRequest): void | Promise<void> {
    return whenKnown(sessionOf(served), (session) => this.#delete(session, served));
  }

  #delete(session: McpSession, { reply }: ServedRequest): void | Promise<void> {
    this.end(session, 'byClient');
    const stored = session.untilStored();
    if (stored !== undefined) return stored.then(() => reply.empty(200));
    reply.empty(200);
  }

  end(session: McpSession, reason?: EndReason): void {
    session.close(reason).catch(this.#deps.onFault);
    this.#traffic.end(session.id, perhapsDelivered(sessionNotFound()));
  }

  dismiss(): Promise<void> {
    return this.#traffic.dismiss();
  }

  /** Ends all open streams, and answers all calls under way with BACKEND_UNAVAILABLE. */
  close(): Promise<void> {
    return this.#traffic.close(callCutOff());
  }

  /** Opens a session. If its id does not reach the client, the session is closed. */
  async #initialize({ id, params }: ClientRequest, { request, reply, backends }: ServedRequest) {
    try {
      const profile = profileOf(params);
      await request.consumeRateLimit(1);
      // The stream of HTTP+SSE is open here.
      const openAt = request.sseSessionId === undefined ? request.openAt : undefined;
      const opened = openAt?.(backends.instancesElsewhere?.() ?? []);
      if (opened !== undefined && (await opened)) return;
      const leaving = new AbortController();
      reply.onGone(() => leaving.abort());
      const opening = { signal: leaving.signal, id: request.sseSessionId };
      const session = await backends
        .openSession(request.principal, profile, opening)
        .catch(async (thrown: unknown) => {
          const mayBe = hasCode(thrown, 'NODE_UNAVAILABLE') || hasCode(thrown, 'NO_HEALTHY_INSTANCE');
          if (!mayBe || !(await openAt?.('opener'))) throw thrown;
        });
      if (session === undefined) return; // another node opened it
      try {
        const body = resultMessage(id, JsonText.ofValue(initializeResult(session)));
        reply.log.sessionId = session.id;
        const { value } = session;
        if (value.kind === 'template' && value.binding) reply.log.instanceId = value.binding.instanceId;
        const isStored = leaving.signal.aborted ? undefined : await session.untilStored();
        if (isStored === false && this.#traffic.isDismissed) throw shuttingDown(); // it ends here, and no other node knows it
        if (leaving.signal.aborted) await session.close();
        else reply.event(body, ['Mcp-Session-Id', session.id]);
      } catch (thrown) {
        await session.close(); // the handshake result of its backend cannot be serialized
        throw thrown;
      }
    } catch (thrown) {
      throw rpcFailureOf(thrown, id);
    }
  }

  #postBatch(parsed: readonly unknown[], served: ServedRequest): void | Promise<void> {
    served.reply.log.rpcMessages = parsed.length;
    return whenKnown(sessionOf(served), (session) => this.#postParsed(parsed, session, served));
  }

  #postParsed(parsed: readonly unknown[], session: McpSession, served: ServedRequest): void | Promise<void> {
    // Source: 2025-03-26 basic/index#batching; 2025-06-18 changelog: removed.
    if (versionOf(session) !== '2025-03-26')
      throw invalidRequest('batches are allowed in revision 2025-03-26 only');
    const messages = readClientBatch(parsed);
    const traffic = this.#traffic.find(session.id);
    for (const { id } of requestsOf(messages)) traffic?.check(id); // before it is counted
    return this.#countAndServe(messages, null, session, served);
  }

  /** Counts the requests for the rate limit, then serves them. A refusal carries `id`. */
  #countAndServe(
    messages: readonly McpMessage[],
    id: JsonRpcId | null,
    session: McpSession,
    served: ServedRequest,
  ): void | Promise<void> {
    const counted = countedRequests(messages);
    const refuse = (thrown: unknown): never => {
      throw rpcFailureOf(thrown, id);
    };
    try {
      const consumed = counted === 0 ? undefined : served.request.consumeRateLimit(counted);
      if (consumed !== undefined)
        return consumed.then(async () => {
          // The session may have been released meanwhile.
          this.#serve(messages, await sessionOf(served), served);
        }, refuse);
    } catch (thrown) {
      refuse(thrown);
    }
    this.#serve(messages, session, served);
  }

  #serve(messages: readonly McpMessage[], session: McpSession, served: ServedRequest): void {
    const { request, reply } = served;
    const requests = requestsOf(messages);
    if (requests.length === 0) {
      const known = this.#traffic.find(session.id); // these messages need none
      known?.clientSeen();
      request.requireRoom();
      for (const message of messages)
        if (message.kind !== 'request') forward(message, known, session, request);
      reply.empty(202);
      return;
    }
    if (this.#traffic.isDismissed)
      throw rpcFailureOf(shuttingDown(), messages.length === 1 ? requests[0]?.id : null);
    const traffic = this.#traffic.of(session);
    for (const { id, method } of requests) if (method !== 'ping') traffic.check(id);
    traffic.clientSeen();
    const post = traffic.answerFor(reply, requests, mayPoll(request, session));
    for (const message of messages) {
      if (message.kind === 'request') this.#begin(message, traffic, post, served);
      else forwardOrDrop(message, traffic, session, request);
    }
  }

  /**
   * Starts a request; answers `ping`, and requests that `refusalOf` refuses, itself. Source: MCP 2025-11-25
   * basic/utilities/ping.
   */
  #begin(message: ClientRequest, traffic: LegacyTraffic, post: PostAnswer, served: ServedRequest): void {
    const { id, method, params } = message;
    const { session } = traffic;
    const { request } = served;
    if (method === 'ping') {
      post.answer(resultMessage(id, NOTHING), id);
      return;
    }
    const error = refusalOf(method, params);
    if (error !== undefined) {
      noteError(post.log, error.code);
      post.answer(errorMessage(id, error), id);
      return;
    }
    const callerId = session.value.ownerId;
    const report = request.report(message);
    const { requestId, principal } = request;
    const { tools } = principal;
    const limit = tools === undefined ? undefined : { tools };
    const common = { ...limit, method, callerId, canceller: traffic, report, requestId };
    const asked = params === undefined ? common : { ...common, params };
    const events$ = this.#tasks.exchange(asked, session, served);
    traffic.begin(id, post, holdingBody(events$, request), report);
  }
}

/**
 * The error for bad cursors, URIs and task ids, and for methods of the modern era; its task methods are left
 * to the backend.
 */
function refusalOf(method: string, params: JsonFields | undefined): JsonRpcError | undefined {
  if (isLikeMcp(method) || (isOfOtherEra(method, 'legacy') && !isTaskMethod(method))) return METHOD_NOT_FOUND;
  const problem = badReferenceIn(method, params);
  return problem === undefined
    ? undefined
    : { code: RPC.invalidParams, message: `Invalid params: ${problem}` };
}

/**
 * Forwards a message of a batch, and drops it when there is no memory for it: the answers of the batch could not
 * report that.
 */
function forwardOrDrop(...message: Parameters<typeof forward>): void {
  try {
    forward(...message);
  } catch (thrown) {
    if (!hasCode(thrown, 'QUEUE_FULL')) throw thrown;
  }
}

function forward(
  message: Exclude<McpMessage, ClientRequest>,
  traffic: LegacyTraffic | undefined,
  session: McpSession,
  { holdBody }: McpRequest,
): void {
  if (message.kind === 'answer') {
    traffic?.takeAnswer(message.id, message.answer, holdBody);
  } else if (message.method === CANCELLED) {
    const id = readId(message.params.requestId);
    if (id !== undefined) traffic?.cancel(id, message.params.reason);
  } else if (isNotice(message.method)) session.notify(message.method, message.params);
}

/**
 * True for a notification that is passed to backends. Not `initialized`, since the gateway itself finishes
 * the handshake with the backend; nor a request without an id, which some servers would carry out, unchecked and
 * uncounted.
 */
function isNotice(method: string): boolean {
  return method.startsWith('notifications/') && method !== INITIALIZED && !isLikeMcp(method);
}

/**
 * The handshake result of the backend in the revision of the session; for a modern backend only the fields of
 * the handshake.
 */
function initializeResult(session: McpSession): JsonObject {
  const { handshake } = session;
  const protocolVersion = versionOf(session);
  if (handshake.era === 'legacy') return { ...handshake.greeting, protocolVersion };
  const { capabilities, instructions } = handshake.greeting;
  return {
    protocolVersion,
    capabilities: isJsonObject(capabilities) ? capabilities : { tools: {} },
    serverInfo: handshake.serverInfo,
    ...(typeof instructions === 'string' ? { instructions } : {}),
  };
}
