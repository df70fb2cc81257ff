// The state that a client expects its backend to remember: the log level and the subscribed resources. Both are stored
// in the session's value. A legacy backend with a dedicated conversation gets them, and gets them again after the
// session moves; for all other backends the gateway answers such requests itself.

import {
  defer,
  filter,
  finalize,
  from,
  fromEvent,
  lastValueFrom,
  map,
  mergeMap,
  type Observable,
  of,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { type ExchangeEvent, type FinalEvent, isFinal } from '../../domain/calls/exchange-event.ts';
import { notConnected } from '../../domain/errors/backend-errors.ts';
import { JsonText } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { isLogLevel, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../domain/mcp/mcp.ts';
import { SubscriptionRequests } from '../../domain/sessions/subscription-requests.ts';
import { answerOf } from '../../transports/gateway-requests.ts';
import type { Conversation } from '../../transports/transport.ts';
import type { AttemptPlan } from '../calls/call-route.ts';
import { BACKEND_ANSWER_MS, type ClientSubscription } from '../subscriptions/resource-subscriptions.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionCore } from './session-core.ts';

/**
 * True when a request needs a dedicated conversation: log messages of a shared one do not say which client
 * they are for.
 */
export function asksForLog({ method }: ExchangeRequest, binding: Binding): boolean {
  return (
    method === SET_LEVEL &&
    binding.isShared &&
    binding.handshake.era === 'legacy' &&
    binding.handshake.capabilities.logging !== undefined
  );
}

/** UTF-16 units of the URIs to which the client of one session has subscribed, and which the session keeps. */
export const MAX_SUBSCRIBED_UNITS = 256 * 1024;

/**
 * The log level and the subscriptions of one session. Each legacy backend that the session is bound to has to
 * remember them.
 */
export class BackendState {
  readonly #session: SessionCore;
  /** The function that ends the session's subscription, by resource URI. */
  readonly #releases = new Map<string, () => void>();
  readonly #requests = new SubscriptionRequests();
  /** Cache: the set of the value's `uris`, valid while that array is the same object. */
  #known: { readonly from: readonly string[]; readonly uris: ReadonlySet<string> } | undefined;
  /** URIs whose subscription was already restored in the conversation to which the session is moving. */
  #restored: ReadonlySet<string> | undefined;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get uris(): ReadonlySet<string> {
    const { uris: from } = this.#session.value;
    if (this.#known?.from !== from) this.#known = { from, uris: new Set(from) };
    return this.#known.uris;
  }

  /** How to carry out a request of `setsBackendState`: forwarded to the backend, or answered by the gateway. */
  plan(request: ExchangeRequest, binding: Binding): AttemptPlan | Observable<FinalEvent> {
    const { method, params } = request;
    const value = method === SET_LEVEL ? params?.level : params?.uri;
    if (typeof value !== 'string')
      return refusal(`${method === SET_LEVEL ? 'level' : 'uri'} must be a string.`);
    if (method === SUBSCRIBE) return this.#subscribe(request, value, binding);
    if (method === UNSUBSCRIBE) return this.#unsubscribe(request, value, binding);
    const isKnown = isLogLevel(value); // another one may have any length, and is not kept
    const set = (): void => void (isKnown && this.#session.send({ type: 'levelSet', level: value }));
    if (hasOwnState(binding) || !offersLog(binding)) return forwarded(request, binding, set);
    return isKnown ? answered(set) : refusal('Unknown log level.');
  }

  /**
   * Restores the state in a new conversation, until `signal` aborts. Throws when the conversation ends; refusals of
   * the backend are ignored.
   */
  async restore(conversation: Conversation, signal: AbortSignal): Promise<void> {
    if (!keepsState(conversation)) return;
    const aborted$ = fromEvent(signal, 'abort');
    const send = (request: ExchangeRequest) =>
      conversation.exchange(request).pipe(filter(isFinal), takeUntil(aborted$));
    const { logLevel, uris } = this.#session.value;
    this.#restored = this.uris;
    const requests = uris.map((uri) => ({ method: SUBSCRIBE, params: { uri } }));
    const levels = logLevel === undefined ? [] : [{ method: SET_LEVEL, params: { level: logLevel } }];
    const all$ = from([...levels, ...requests]).pipe(mergeMap(send, LIMITS.concurrentRestores));
    await lastValueFrom(all$, { defaultValue: undefined });
  }

  /** Moves shared subscriptions to the new binding of the session. Returns the promises of the backend's answers. */
  moved(binding: Binding): Promise<unknown>[] {
    const restored = this.#restored;
    this.#restored = undefined;
    const { uris } = this.#session.value;
    return uris.flatMap(
      (uri) => this.#subscribeAt(binding, uri, { isKnown: restored?.has(uri) === true }) ?? [],
    );
  }

  /** Ends the shared subscriptions, when the session is over. */
  forget(): void {
    for (const uri of [...this.#releases.keys()]) this.#setRelease(uri, undefined);
  }

  #subscribe(request: ExchangeRequest, uri: string, binding: Binding): AttemptPlan | Observable<FinalEvent> {
    const isNew = !this.uris.has(uri);
    if (isNew && this.uris.size >= LIMITS.subscriptionsPerClient)
      return refusal(`This client has too many subscriptions (${LIMITS.subscriptionsPerClient}).`);
    const units = [...this.uris].reduce((sum, { length }) => sum + length, uri.length);
    if (isNew && units > MAX_SUBSCRIBED_UNITS)
      return refusal('The URIs to which this client has subscribed are too long together.');
    const add = () => this.#add(uri, binding, undefined);
    if (hasOwnState(binding)) return this.#forwardedFor(uri, request, binding, add);
    if (binding.handshake.era !== 'legacy') return answered(add);
    return defer(() => this.#join(uri, request, binding));
  }

  #unsubscribe(
    request: ExchangeRequest,
    uri: string,
    binding: Binding,
  ): AttemptPlan | Observable<FinalEvent> {
    const remove = (): void => this.#remove(uri);
    if (hasOwnState(binding)) return this.#forwardedFor(uri, request, binding, remove);
    return answered(() => {
      this.#requests.begin(uri, request).end();
      remove();
    });
  }

  /** Forwards a request about a subscription. */
  #forwardedFor(uri: string, request: ExchangeRequest, binding: Binding, agreed: () => void): AttemptPlan {
    const { isOverridden, end } = this.#requests.begin(uri, request);
    return { ...forwarded(request, binding, () => isOverridden() || agreed()), ended: end };
  }

  /**
   * Asks the backend for the subscription, unless it already exists for another client. When the backend refuses,
   * nothing is shared.
   */
  #join(uri: string, request: ExchangeRequest, binding: Binding): Observable<FinalEvent> {
    const shared = joinShared(uri, binding, this.#session.value.ownerId);
    if (shared === undefined) return throwError(notConnected);
    const { answer, release } = shared;
    const { isOverridden, end } = this.#requests.begin(uri, request);
    let isKept = false;
    return from(answer).pipe(
      tap(({ kind }) => {
        if (kind !== 'result' || isOverridden()) return;
        isKept = true;
        void this.#add(uri, binding, release);
      }),
      finalize(() => {
        end();
        if (!isKept) release();
      }),
    );
  }

  #add(uri: string, binding: Binding, release: (() => void) | undefined): Promise<void> | undefined {
    const present = this.#session.binding ?? binding;
    this.#setRelease(uri, release);
    this.#session.send({ type: 'subscribed', uri });
    if (present !== binding) this.#subscribeAt(present, uri);
    return present.refresh(this.uris);
  }

  #remove(uri: string): void {
    this.#setRelease(uri, undefined);
    this.#session.send({ type: 'unsubscribed', uri });
    void this.#session.binding?.refresh();
  }

  /** Replaces the session's subscription to a resource, and ends the previous one. */
  #setRelease(uri: string, release: (() => void) | undefined): void {
    const before = this.#releases.get(uri);
    if (release === undefined) this.#releases.delete(uri);
    else this.#releases.set(uri, release);
    before?.();
  }

  /**
   * Subscribes at a new binding, and ends the subscription at the previous one. `isKnown`: the backend already has
   * the subscription.
   */
  #subscribeAt(binding: Binding, uri: string, { isKnown = false } = {}): Promise<unknown> | undefined {
    const shared = joinShared(uri, binding, this.#session.value.ownerId);
    this.#setRelease(uri, shared?.release);
    if (isKnown || !hasOwnState(binding)) return shared?.answer;
    const request = { method: SUBSCRIBE, params: { uri } };
    // The conversation itself reports its end.
    return answerOf(
      binding.conversation.exchange(request),
      BACKEND_ANSWER_MS,
      this.#session.deps.clock,
    ).catch(() => undefined);
  }
}

/**
 * Joins the shared subscription of the binding; undefined where the backend, or only the gateway, keeps the client's
 * state.
 */
function joinShared(
  uri: string,
  { handshake, feed }: Binding,
  ownerId: string,
): ClientSubscription | undefined {
  return handshake.era === 'legacy' ? feed?.subscribe(uri, ownerId) : undefined;
}

/** True for a dedicated conversation whose backend keeps the state of the client. */
function hasOwnState(binding: Binding): binding is Binding & { readonly conversation: Conversation } {
  return binding.conversation !== undefined && !binding.isShared && keepsState(binding.conversation);
}

/** False for a modern backend, which gets the state with each request, also where clients share its process. */
function keepsState({ handshake }: Conversation): boolean {
  return handshake.era !== 'modern';
}

/**
 * False for a legacy backend without logging, which refuses the level itself. A modern backend gets the level
 * with each request.
 */
function offersLog({ handshake }: Binding): boolean {
  return handshake.era === 'modern' || handshake.capabilities.logging !== undefined;
}

/** A plan that forwards the request; `agreed` is called when the backend answers with a result. */
function forwarded(request: ExchangeRequest, { conversation }: Binding, agreed: () => void): AttemptPlan {
  const receive = ({ kind }: ExchangeEvent): true => {
    if (kind === 'result') agreed();
    return true;
  };
  return { request, conversation, receive };
}

/** An answer of `{}`, given once the action is done. */
function answered(act: () => Promise<void> | void): Observable<FinalEvent> {
  const answer = (): FinalEvent => ({ kind: 'result', result: JsonText.ofValue({}) });
  return defer(() => {
    const done = act();
    return done instanceof Promise ? from(done).pipe(map(answer)) : of(answer());
  });
}

function refusal(message: string): Observable<FinalEvent> {
  return of({ kind: 'error', error: { code: RPC.invalidParams, message } });
}
