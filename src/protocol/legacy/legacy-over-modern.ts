// Carries a request of a legacy client to a backend of either era. A modern backend gets the declarations of the handshake with
// every request. An `input_required` result becomes requests to the client and a retry of the request; other results lose the
// fields of the modern era. Limits and messages are those of the SDK, which does the same inside of a server.
// Source: MCP 2026-07-28 basic/patterns/mrtr; `LegacyInputRequiredShim` of @modelcontextprotocol/server.

import { catchError, map, mergeMap, Observable, of } from 'rxjs';
import { ConnectionRequired } from '../../domain/calls/connection-required.ts';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import { asGatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import { isJsonObject, type JsonObject, JsonText, type JsonValue } from '../../domain/json/json.ts';
import { editedFields, REMOVED } from '../../domain/json/json-fields.ts';
import type { ClientAnswer } from '../../domain/mcp/client.ts';
import { hasRounds, META } from '../../domain/mcp/mcp.ts';
import type { McpSession, Reservation } from '../../domain/sessions/mcp-session.ts';
import type { Clock } from '../../domain/time/clock.ts';
import {
  connectionInWords,
  errorEvent,
  failure,
  type InputRequired,
  missingCapabilities,
  readInputRequired,
} from '../input-requests.ts';
import { resultTypeOf } from '../modern/modern-over-legacy.ts';

/** The most rounds of one call. */
const MAX_ROUNDS = 8;
/** The wait before a call whose result asked for nothing is retried, in ms, so that it does not spin. */
const PAUSE_MS = 250;

/**
 * Carries one request in a session, to a backend of either era; cold. Unsubscribing cancels it in whatever round it
 * is. Otherwise like McpSession.exchange.
 */
export function exchangeInSession(
  session: McpSession,
  request: ExchangeRequest,
  clock: Clock,
  instanceId?: string,
): Observable<SourcedEvent> {
  if (!isModern(session)) return session.exchange(request, instanceId);
  const modern = withSessionMetadata(request, session);
  const events$ = hasRounds(request.method)
    ? exchangeRound({ session, request: modern, clock })
    : session.exchange(modern);
  const { capabilities } = session.value.profile;
  return events$.pipe(map((sourced) => inWords(request.method, legacyAnswer(sourced), capabilities)));
}

type ReservingSession = McpSession & Required<Pick<McpSession, 'reserve'>>;

function isModern(session: McpSession): session is ReservingSession {
  return session.handshake.era === 'modern' && session.reserve !== undefined;
}

function inWords(method: string, sourced: SourcedEvent, declared: JsonObject): SourcedEvent {
  const { event } = sourced;
  if (event.kind !== 'error' || !(event.error instanceof ConnectionRequired)) return sourced;
  return { ...sourced, event: connectionInWords(method, event.error, declared) ?? event };
}

/**
 * An answer without the fields that only the modern era defines, as the server would give it in a session.
 * Source: ADR 106.
 */
function legacyAnswer(sourced: SourcedEvent): SourcedEvent {
  const { event } = sourced;
  if (event.kind !== 'result' || (resultTypeOf(event.result) ?? COMPLETE) !== COMPLETE) return sourced;
  const { bytes } = event.result;
  const edited = editedFields(bytes, legacyField);
  if (edited === bytes) return sourced;
  return { ...sourced, event: { kind: 'result', result: JsonText.ofBytes(edited) } };
}

const COMPLETE = 'complete';
const MODERN_FIELDS: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);

function legacyField(key: string, value: Buffer): Buffer | undefined {
  if (MODERN_FIELDS.has(key)) return REMOVED;
  if (key !== '_meta' || !value.includes(META.serverInfo)) return undefined;
  const meta = editedFields(value, (name) => (name === META.serverInfo ? REMOVED : undefined));
  if (meta === value) return undefined;
  return meta.length === EMPTY_OBJECT_BYTES ? REMOVED : meta;
}

const EMPTY_OBJECT_BYTES = 2;

/** The request with client info and capabilities in `_meta`; the transport adds the revision. */
export function withSessionMetadata(
  request: ExchangeRequest,
  { value: { profile, logLevel } }: McpSession,
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

interface Round {
  readonly clock: Clock;
  readonly session: ReservingSession;
  readonly request: ExchangeRequest;
  /** The request with the input of the client; undefined in the first round. */
  readonly retried?: ExchangeRequest;
  /** The number of earlier rounds. Default: 0. */
  readonly count?: number;
  /** The reservation for this round; undefined in the first one. */
  readonly reservation?: Reservation;
}

/** Makes one exchange; if its answer requires input, the next round follows. */
function exchangeRound(round: Round): Observable<SourcedEvent> {
  const { session, request, retried = request, count = 0, reservation = session } = round;
  return reservation.exchange(retried).pipe(
    catchError((thrown: unknown) => {
      throw count === 0 ? thrown : perhapsDelivered(asGatewayError(thrown)); // the server may have acted in an earlier round
    }),
    mergeMap((sourced) => {
      const { event } = sourced;
      if (event.kind !== 'result' || resultTypeOf(event.result) !== 'input_required') return of(sourced);
      const next = inputFor(round, readInputRequired(parsedResult(event.result, 'exactValue')));
      return 'kind' in next ? of({ ...sourced, event: next }) : askClient(round, sourced, next);
    }),
  );
}

/** The required input, or the end of the call if its client cannot be asked for it. */
function inputFor(
  { session, request: { method }, count = 0 }: Round,
  required: InputRequired | string,
): InputRequired | FinalEvent {
  if (typeof required === 'string')
    return errorEvent(`The server returned an invalid input-required result: ${required}.`);
  if (count === MAX_ROUNDS)
    return failure(method, `'${method}' still required input after ${MAX_ROUNDS} rounds.`);
  const { capabilities } = session.value.profile;
  const refused = [...required.requests].find(([, request]) => missingCapabilities([request], capabilities));
  if (refused === undefined) return required;
  const why = 'the client did not declare the required capability';
  return failure(method, `Cannot request input '${refused[0]}' (${refused[1].method}): ${why}.`);
}

/** Asks the client, and continues with its answers; when there is nothing to ask, continues after a pause. */
function askClient(
  round: Round,
  sourced: SourcedEvent,
  { requests, requestState }: InputRequired,
): Observable<SourcedEvent> {
  const { session, request, clock, count = 0 } = round;
  return new Observable((subscriber) => {
    let isAsking = true;
    const answers = new Map<string, JsonValue>();
    const held: (() => void)[] = [];
    // While an exchange is under way, the exchange itself reports the error.
    const reservation = session.reserve(sourced, (error) => isAsking && subscriber.error(error));
    round.reservation?.leave();
    const retry = (): void => {
      isAsking = false;
      cancelTimer();
      const { arrivedAtMs: _, ...own } = request; // the next round has its own deadline
      const params = {
        ...request.params,
        ...(requestState === undefined ? {} : { requestState }),
        ...(requests.size === 0 ? {} : { inputResponses: Object.fromEntries(answers) }),
      };
      const next = { ...round, retried: { ...own, params }, count: count + 1, reservation };
      subscriber.add(exchangeRound(next).subscribe(subscriber));
    };
    const fail = (why: string): void => {
      const message = `Fulfilling input required by '${request.method}' failed: ${why}`;
      subscriber.next({ ...sourced, event: failure(request.method, message) });
      subscriber.complete();
    };
    const cancelTimer =
      requests.size === 0
        ? clock.alarm(PAUSE_MS, retry)
        : clock.alarm(session.questionMs, () => fail('the client did not answer in time'));
    const take = (key: string, given: ClientAnswer, hold?: () => () => void): void => {
      if (!isAsking || subscriber.closed || answers.has(key)) return;
      if (hold !== undefined) held.push(hold()); // until the call ends: each round sends the answers again
      if ('error' in given) fail(given.error.message);
      else if (answers.set(key, given.result).size === requests.size) retry();
    };
    for (const [key, asked] of requests) {
      const event = { kind: 'request', ...asked, answer: take.bind(undefined, key) } as const;
      subscriber.next({ ...sourced, event });
    }
    return () => {
      cancelTimer();
      reservation.leave();
      for (const release of held) release();
    };
  });
}
