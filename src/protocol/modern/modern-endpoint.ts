// The MCP endpoint for clients of the modern era (2026-07-28), in which every request is complete and checked by itself.
// endpoint.ts has found the era; modern-call.ts carries a request under way.

import { catchError, defer, type Observable, of, switchMap } from 'rxjs';
import { notConfirmed } from '../../domain/calls/confirmation-required.ts';
import type { CallReport, SourcedEvent } from '../../domain/calls/exchange.ts';
import { noHealthyInstance } from '../../domain/errors/backend-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { definedFields, isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { acceptsServerRequests, type ClientQuestion, type Notification } from '../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../domain/mcp/jsonrpc.ts';
import { hasRounds, isLikeMcp, isOfOtherEra, LISTEN, META } from '../../domain/mcp/mcp.ts';
import { badReferenceIn } from '../client-bounds.ts';
import { createSlowAnswerTimer } from '../client-call.ts';
import type { ClientRequest } from '../client-message.ts';
import {
  type CommonOptions,
  type EndpointOptions,
  holdingBody,
  type McpRequest,
  type ServedRequest,
} from '../endpoint-types.ts';
import { checkMirroredHeaders, checkSentHeaders, headerOf } from '../headers.ts';
import { failure } from '../input-requests.ts';
import type { KnownTasks } from '../known-tasks.ts';
import { ownAnswer } from '../own-answers.ts';
import { RpcFailure, resultMessage, rpcFailureOf } from '../rpc.ts';
import { commonCapabilities, discoverResult, infoFor } from './discover.ts';
import { ListedHeaders, paramHeadersIn } from './listed-headers.ts';
import { ListenStreams } from './listen-streams.ts';
import { ModernAffinity, type StatedConfirmation } from './modern-affinity.ts';
import { ModernCall, type ModernCallDeps } from './modern-call.ts';
import {
  badField,
  checkVersion,
  EnvelopeReader,
  invalidParams,
  type ModernRequest,
} from './modern-request.ts';

interface ModernOptions
  extends CommonOptions,
    Pick<EndpointOptions, 'askingCalls' | 'stateKeys' | 'declarations' | 'useOnce'> {
  readonly tasks: KnownTasks;
}

/** Serves modern clients at all paths. The caller closes it. */
export class ModernEndpoint {
  readonly #envelopes = new EnvelopeReader();
  readonly #listed = new ListedHeaders();
  readonly #listens: ListenStreams;
  readonly #deps: ModernCallDeps;
  readonly #useOnce: ModernOptions['useOnce'];

  constructor({
    askingCalls,
    stateKeys,
    onFault,
    scheduler,
    tasks,
    declarations,
    clock,
    useOnce,
  }: ModernOptions) {
    this.#useOnce = useOnce;
    this.#listens = new ListenStreams({ onFault, scheduler, clock, declarations });
    this.#deps = {
      affinity: new ModernAffinity(stateKeys, tasks, clock),
      slowAnswerTimer: createSlowAnswerTimer(clock, scheduler),
      onFault,
      askingCalls,
    };
  }

  /**
   * Serves one POST. Throws RpcFailure, only before the answer has begun. Returns no promise when there is nothing to wait for.
   */
  post(message: ClientRequest | Notification, served: ServedRequest): void | Promise<void> {
    const { request, reply } = served;
    reply.log.rpcMethod = message.method;
    if (message.kind === 'notification') return this.#drop(message, served);
    try {
      const asked = this.#read(message, served);
      this.#listed.check(asked, request.headers);
      const consumed = request.consumeRateLimit(1);
      if (consumed === undefined) return this.#serve(asked, served);
      const serve = () => this.#serve(asked, served);
      return consumed.then(serve).catch((thrown: unknown) => {
        throw rpcFailureOf(thrown, message.id);
      });
    } catch (thrown) {
      throw rpcFailureOf(thrown, message.id);
    }
  }

  /** Ends every `subscriptions/listen` with its answer. */
  close(): Promise<void> {
    return this.#listens.close();
  }

  /** Accepts and drops a notification: clients of this era cancel by closing a stream. */
  #drop({ method, params }: Notification, { request: { headers }, reply }: ServedRequest): void {
    const declared = isJsonObject(params._meta) ? params._meta[META.protocolVersion] : undefined;
    const protocolVersion = declared ?? headerOf(headers, 'mcp-protocol-version');
    if (typeof protocolVersion !== 'string') throw badField(META.protocolVersion, declared, 'a string');
    checkSentHeaders(headers, { method, protocolVersion });
    checkVersion(protocolVersion);
    reply.empty(202);
  }

  #read({ id, method, params = {} }: ClientRequest, { request, backends }: ServedRequest): ModernRequest {
    const { headers, principal: owner, pathName } = request;
    const envelope = this.#envelopes.read(params);
    const { protocolVersion } = envelope.profile;
    checkSentHeaders(headers, { method, protocolVersion });
    checkVersion(protocolVersion);
    checkMirroredHeaders(headers, { method, params });
    // A backend of the legacy era would answer them, a modern server must not.
    if (isOfOtherEra(method, 'modern') || isLikeMcp(method)) throw new RpcFailure(404, METHOD_NOT_FOUND);
    const problem = badReferenceIn(method, params);
    if (problem !== undefined) throw invalidParams(`Invalid params: ${problem}`);
    return { id, method, params, envelope, owner, pathName, backends };
  }

  #serve(asked: ModernRequest, served: ServedRequest): void | Promise<void> {
    const { request, reply } = served;
    switch (asked.method) {
      case 'server/discover':
        return started(asked, () =>
          reply.json(200, resultMessage(asked.id, JsonText.ofValue(this.#discover(asked)))),
        );
      case LISTEN:
        return started(asked, () =>
          this.#listens.open(
            asked,
            reply,
            commonCapabilities(asked.backends.handshakes(asked.owner)),
            infoFor(asked),
          ),
        );
      default: {
        const askingCallId =
          request.forward === undefined ? undefined : this.#deps.affinity.askingCallIdOf(asked);
        const forwarded = askingCallId === undefined ? undefined : request.forward?.(askingCallId);
        const waiting = forwarded ?? this.#deps.affinity.untilTaskKnown(asked)?.then(() => false);
        if (waiting === undefined) return this.#begin(asked, served);
        const otherwise = (isForwarded: boolean): void => {
          if (!isForwarded) this.#begin(asked, served);
        };
        return waiting.then(otherwise).catch((thrown: unknown) => {
          throw rpcFailureOf(thrown, asked.id);
        });
      }
    }
  }

  #begin(asked: ModernRequest, { request, reply }: ServedRequest): void {
    const report = request.report(asked);
    const call = new ModernCall(asked, report, reply, this.#deps);
    try {
      call.start(this.#eventsOf(asked, request, report), this.#deps.slowAnswerTimer);
    } catch (thrown) {
      call.error(thrown); // such as a state that is not valid: the report has begun, and has to end
    }
    if (!call.isOver) reply.onGone(() => call.cancel());
  }

  #discover({ backends, owner, pathName }: ModernRequest): JsonObject {
    const handshakes = backends.handshakes(owner);
    if (handshakes.length === 0)
      throw backends.noHealthyError?.() ?? noHealthyInstance(pathName ?? 'any template');
    return discoverResult(handshakes);
  }

  /** Continues a call that waits for its client, or sends the request to the instance that it concerns, or to any. */
  #eventsOf(
    asked: ModernRequest,
    from: McpRequest,
    report: CallReport,
  ): Observable<SourcedEvent | ClientQuestion> {
    const { affinity, askingCalls } = this.#deps;
    const target = affinity.targetOf(asked);
    if (target === undefined) return this.#exchange(asked, from, { report }); // nearly always
    if (!('askingCallId' in target)) {
      const { confirmation } = target;
      const send = (confirmed?: string) => this.#exchange(asked, from, { report, ...target, confirmed });
      return confirmation === undefined ? send() : this.#whenUsed(asked, confirmation, send);
    }
    const resumed = askingCalls.resume(target.askingCallId, asked.owner.id, asked.method, target.answers);
    if (resumed === undefined) throw invalidParams(CALL_LOST, { reason: 'call_lost' });
    return resumed;
  }

  /**
   * Uses the answer of a user, which counts once: a second time, or without an answer, the call begins again and the
   * user is asked. A call that the user did not accept fails. An answer counts again after a call that was refused
   * because of too many others.
   */
  #whenUsed(
    { method }: ModernRequest,
    { tool, id, action }: StatedConfirmation,
    send: (confirmed?: string) => Observable<SourcedEvent | ClientQuestion>,
  ): Observable<SourcedEvent | ClientQuestion> {
    if (action === undefined) return send();
    return defer(() => this.#useOnce(id)).pipe(
      switchMap((takeBack) => {
        if (takeBack === undefined) return send();
        if (action === 'accept')
          return send(tool).pipe(catchError((thrown) => takeBackIfRefused(thrown, takeBack)));
        return of(ownAnswer(failure(method, notConfirmed(action))));
      }),
    );
  }

  #exchange(
    asked: ModernRequest,
    from: McpRequest,
    { report, params = asked.params, instanceId, confirmed, continues }: SendOptions,
  ): Observable<SourcedEvent | ClientQuestion> {
    const headers = paramHeadersIn(from.headers);
    const { method, owner, backends } = asked;
    const { tools } = owner;
    const { profile } = asked.envelope;
    const { askingCalls } = this.#deps;
    const { requestId } = from;
    const usual = { method, params, report, requestId };
    // The use of a confirmed state is recorded already.
    const wasCounted =
      continues === undefined
        ? undefined
        : async () => confirmed !== undefined || this.#isFirstUse(continues);
    const hasMore =
      headers !== undefined || tools !== undefined || confirmed !== undefined || wasCounted !== undefined;
    const request = hasMore
      ? { ...usual, ...definedFields({ headers, tools, confirmed, wasCounted }) }
      : usual;
    const events$ = backends.exchange(request, { owner, profile, instanceId });
    if (!hasRounds(method) || !acceptsServerRequests(profile)) return events$;
    return askingCalls.follow(owner.id, method, holdingBody(events$, from)); // it may outlive its HTTP request
  }

  /** False also while that cannot be recorded. */
  async #isFirstUse(stateId: string): Promise<boolean> {
    const takeBack = await this.#useOnce(stateId).catch(() => undefined);
    return takeBack !== undefined;
  }
}

/** Takes the use of a confirmation back if the call was refused only for now; rethrows the error. */
async function takeBackIfRefused(thrown: unknown, takeBack: () => Promise<void>): Promise<never> {
  if (hasCode(thrown, 'RATE_LIMIT_EXCEEDED')) await takeBack().catch(() => undefined); // its user is asked again
  throw thrown;
}

/** How a request is sent: as its target says, and perhaps confirmed. */
interface SendOptions {
  readonly report: CallReport;
  readonly params?: ModernRequest['params'];
  readonly instanceId?: string | undefined;
  readonly confirmed?: string | undefined;
  readonly continues?: string | undefined;
}

/** Calls `answer` now, or once the servers that are starting have reported their capabilities. */
function started({ backends, owner, id }: ModernRequest, answer: () => void): void | Promise<void> {
  const waiting = backends.untilStarted?.(owner);
  return waiting === undefined
    ? answer()
    : waiting.then(answer).catch((thrown: unknown) => {
        throw rpcFailureOf(thrown, id);
      });
}

/** The refusal of answers to a call that does not wait for them, although the state is valid. */
const CALL_LOST = 'No call waits for these answers: it has continued or ended, or its node has stopped.';
