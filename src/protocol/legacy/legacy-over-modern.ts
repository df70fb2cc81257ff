// Carries a request of a legacy client to a backend of either era. A modern backend gets the declarations of the handshake with
// every request, and an `input_required` result becomes requests to the client and a repeated request. Limits and messages are
// those of the SDK, which does the same inside of a server.
// Source: MCP 2026-07-28 basic/patterns/mrtr; `LegacyInputRequiredShim` of @modelcontextprotocol/server.

import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { ClientReply } from '../../domain/client.ts';
import { asGatewayError, internalError, perhapsDelivered } from '../../domain/errors.ts';
import type { Answer, ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonFields, type JsonObject, JsonText } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { META } from '../../domain/mcp.ts';
import { hasRounds, type InputRequired, missingCapabilities, readInputRequired } from '../input-requests.ts';
import { resultTypeOf } from '../modern/modern-over-legacy.ts';
import type { McpSession, Reservation } from '../ports.ts';

/** Rounds of one call. */
const MOST_ROUNDS = 8;
/** Longest wait for the answers of one round: a person may have to give them. */
const ROUND_MS = 10 * 60_000;
/** Wait before a call that asked nothing is repeated, so that it does not spin. */
const PAUSE_MS = 250;

/** One request in a session. Cold; unsubscribing cancels it, in whatever round it is. Errors: those of Session.exchange. */
export function exchangeInSession(session: McpSession, request: ExchangeRequest): Observable<Answer> {
  if (session.peer.era !== 'modern') return session.exchange(request);
  const modern = withSessionMetadata(request, session);
  if (!hasRounds(request.method)) return session.exchange(modern);
  return new Observable((subscriber) => {
    const rounds = new Rounds(session, modern, subscriber);
    rounds.send(modern);
    return () => rounds.stop();
  });
}

/** The request with client info and capabilities in `_meta`; the transport adds the revision. */
export function withSessionMetadata(
  request: ExchangeRequest,
  { profile, logLevel }: McpSession,
): ExchangeRequest {
  const { params } = request;
  const _meta: JsonObject = {
    ...(isJsonObject(params?._meta) ? params._meta : {}),
    [META.clientCapabilities]: profile.capabilities,
    [META.clientInfo]: profile.clientInfo,
  };
  if (logLevel !== undefined) _meta[META.logLevel] = logLevel;
  return { ...request, params: { ...params, _meta } };
}

class Rounds {
  readonly #session: McpSession;
  readonly #request: ExchangeRequest;
  readonly #subscriber: Subscriber<Answer>;
  /** The reservation of the latest answer, from the first question to the end. */
  #reservation: Reservation | undefined;
  #exchange: Subscription | undefined;
  #timer: NodeJS.Timeout | undefined;
  #round = 0;
  #isAsking = false;

  constructor(session: McpSession, request: ExchangeRequest, subscriber: Subscriber<Answer>) {
    this.#session = session;
    this.#request = request;
    this.#subscriber = subscriber;
  }

  /** One exchange; its answer may begin the next one. */
  send(request: ExchangeRequest): void {
    this.#isAsking = false;
    let hasAsked = false;
    const exchange = (this.#reservation ?? this.#session).exchange(request).subscribe({
      next: (answer) => {
        hasAsked = this.#handle(answer);
      },
      // The server may have acted in an earlier round.
      error: (thrown: unknown) =>
        this.#subscriber.error(this.#round === 0 ? thrown : perhapsDelivered(asGatewayError(thrown))),
      complete: () => {
        if (!hasAsked) this.#subscriber.complete();
      },
    });
    // An exchange that ends at once may have begun the next one by now.
    if (!exchange.closed) this.#exchange = exchange;
    if (this.#subscriber.closed) exchange.unsubscribe();
  }

  stop(): void {
    this.#isAsking = false;
    clearTimeout(this.#timer);
    this.#exchange?.unsubscribe();
    this.#reservation?.leave();
  }

  /** True when the answer was a question, so that the end of its exchange is not the end of the call. */
  #handle(answer: Answer): boolean {
    const { event } = answer;
    try {
      if (event.kind === 'result' && resultTypeOf(event.result) === 'input_required') {
        this.#ask(readInputRequired(event.result.value), answer);
        return true;
      }
      this.#subscriber.next(answer);
    } catch (thrown) {
      this.#subscriber.error(internalError(thrown)); // a large result, which was not verified before, is no JSON
    }
    return false;
  }

  #ask(required: InputRequired | string, answer: Answer): void {
    const { method } = this.#request;
    this.#round += 1;
    this.#isAsking = true;
    if (typeof required === 'string') {
      this.#end(answer, errorEvent(`The server returned an invalid input-required result: ${required}.`));
    } else if (this.#round > MOST_ROUNDS) {
      this.#fail(answer, `'${method}' still required input after ${MOST_ROUNDS} rounds.`);
    } else if (required.requests.size === 0) {
      if (!this.#reserve(answer)) return;
      this.#timer = setTimeout(() => this.#repeat(required, undefined), PAUSE_MS);
    } else {
      this.#askClient(required, answer);
    }
  }

  #askClient(required: InputRequired, answer: Answer): void {
    for (const [key, request] of required.requests) {
      if (missingCapabilities([request], this.#session.profile.capabilities) === undefined) continue;
      const why = 'the client did not declare the required capability';
      this.#fail(answer, `Cannot request input '${key}' (${request.method}): ${why}.`);
      return;
    }
    if (!this.#reserve(answer)) return;
    const round = this.#round;
    const responses = new Map<string, ClientReply>();
    const takeReply = (key: string, reply: ClientReply): void => {
      if (round !== this.#round || !this.#isAsking || responses.has(key)) return;
      responses.set(key, reply);
      if ('error' in reply) this.#failRound(answer, reply.error.message);
      else if (responses.size === required.requests.size) this.#repeat(required, responses);
    };
    this.#timer = setTimeout(() => this.#failRound(answer, 'the client did not answer in time'), ROUND_MS);
    for (const [key, request] of required.requests) {
      const event = {
        kind: 'request',
        ...request,
        answer: (reply: ClientReply) => takeReply(key, reply),
      } as const;
      this.#subscriber.next({ ...answer, event });
    }
  }

  /** False when the reservation is lost at once: then the call is over. */
  #reserve(answer: Answer): boolean {
    const before = this.#reservation;
    this.#reservation = this.#session.reserve(answer, (error) => {
      // While an exchange is under way, the exchange itself reports the error.
      if (this.#isAsking) this.#subscriber.error(error);
    });
    before?.leave();
    return !this.#subscriber.closed;
  }

  #repeat({ requestState }: InputRequired, responses: ReadonlyMap<string, ClientReply> | undefined): void {
    clearTimeout(this.#timer);
    const params: Record<string, JsonFields[string]> = { ...this.#request.params };
    if (requestState !== undefined) params.requestState = requestState;
    if (responses !== undefined) {
      const results = [...responses].map(([key, reply]) => [key, 'result' in reply ? reply.result : null]);
      params.inputResponses = Object.fromEntries(results);
    }
    const { arrivedAtMs: _, ...request } = this.#request; // the next round has its own deadline
    this.send({ ...request, params });
  }

  #failRound(answer: Answer, why: string): void {
    this.#fail(answer, `Fulfilling input required by '${this.#request.method}' failed: ${why}`);
  }

  /** Tools report a failure in their result, where a model reads it; other methods have only the error. */
  #fail(answer: Answer, message: string): void {
    const isTool = this.#request.method === 'tools/call';
    const result = { content: [{ type: 'text', text: message }], isError: true };
    const event = { kind: 'result', result: JsonText.ofValue(result) } as const;
    this.#end(answer, isTool ? event : errorEvent(message));
  }

  #end(answer: Answer, event: ExchangeEvent): void {
    clearTimeout(this.#timer);
    this.#isAsking = false;
    this.#subscriber.next({ ...answer, event });
    this.#subscriber.complete();
  }
}

function errorEvent(message: string): ExchangeEvent {
  return { kind: 'error', error: { code: RPC.internalError, message } };
}
