// What a client expects its backend to remember: log level and subscribed resources. Both are in the value of the
// session. A legacy backend with a dedicated conversation receives them, and again after a move; for all other
// backends the gateway answers.

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
import { notConnected } from '../../domain/errors/error-catalogue.ts';
import { JsonText } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import { isLogLevel, SET_LEVEL, SUBSCRIBE } from '../../domain/mcp/mcp.ts';
import { answerOf } from '../../transports/own-exchange.ts';
import type { Conversation } from '../../transports/transport.ts';
import type { AttemptPlan, LocalAnswer } from '../calls/call-route.ts';
import { ANSWER_MS, type SharedSubscription } from '../subscriptions/resource-subscriptions.ts';
import type { Binding } from './binding.ts';
import type { SessionCore } from './session-host.ts';

/** Most requests that are repeated at the same time after a move. */
const CONCURRENT_REPEATS = 16;

/** True when a request needs a dedicated conversation: log messages name no client. */
export function asksForLog({ method }: ExchangeRequest, binding: Binding): boolean {
  return (
    method === SET_LEVEL &&
    binding.isShared &&
    binding.handshake.era === 'legacy' &&
    binding.handshake.capabilities.logging !== undefined
  );
}

/** The log level and the subscriptions of one client, which each backend to which its session is bound has to remember. */
export class BackendState {
  readonly #session: SessionCore;
  /** By URI: the release of its part in a shared subscription, if it has one. */
  readonly #releases = new Map<string, () => void>();
  /** The URIs of the value as a set, and the list that it was made from. */
  #known: { readonly from: readonly string[]; readonly uris: ReadonlySet<string> } | undefined;
  /** URIs that were already repeated in the next conversation. */
  #repeated: ReadonlySet<string> | undefined;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get uris(): ReadonlySet<string> {
    const { uris: from } = this.#session.value;
    if (this.#known?.from !== from) this.#known = { from, uris: new Set(from) };
    return this.#known.uris;
  }

  /** The plan for a request of `setsBackendState`: it is forwarded to the backend, or answered here. */
  plan(request: ExchangeRequest, binding: Binding): AttemptPlan | LocalAnswer {
    const { method, params } = request;
    const value = method === SET_LEVEL ? params?.level : params?.uri;
    if (typeof value !== 'string')
      return refusal(`${method === SET_LEVEL ? 'level' : 'uri'} must be a string.`);
    if (method === SUBSCRIBE) return this.#subscribe(request, value, binding);
    const set = (): undefined => {
      if (method === SET_LEVEL) this.#session.send({ type: 'levelSet', level: value });
      else this.#remove(value);
    };
    if (hasOwnState(binding) || (method === SET_LEVEL && !offersLog(binding)))
      return forwarded(request, binding, set);
    if (method === SET_LEVEL && !isLogLevel(value)) return refusal('Unknown log level.');
    return answered(set);
  }

  /** Repeats the state in a new conversation, until `signal` aborts. Rejects when the conversation ends; refusals are ignored. */
  async repeat(conversation: Conversation, signal: AbortSignal): Promise<void> {
    if (!keepsState(conversation)) return;
    const aborted$ = fromEvent(signal, 'abort');
    const send = (request: ExchangeRequest) =>
      conversation.exchange(request).pipe(filter(isFinal), takeUntil(aborted$));
    const { logLevel, uris } = this.#session.value;
    this.#repeated = this.uris;
    const requests = uris.map((uri) => ({ method: SUBSCRIBE, params: { uri } }));
    const levels = logLevel === undefined ? [] : [{ method: SET_LEVEL, params: { level: logLevel } }];
    const all$ = from([...levels, ...requests]).pipe(mergeMap(send, CONCURRENT_REPEATS));
    await lastValueFrom(all$, { defaultValue: undefined });
  }

  /** The session has a new binding: its shared subscriptions move there, too. Returns the answers of the backend. */
  moved(binding: Binding): Promise<unknown>[] {
    const repeated = this.#repeated;
    this.#repeated = undefined;
    const { uris } = this.#session.value;
    return uris.flatMap((uri) => this.#subscribeAt(binding, uri, repeated?.has(uri) === true) ?? []);
  }

  /** The session is over. */
  forget(): void {
    for (const uri of [...this.#releases.keys()]) this.#share(uri, undefined);
  }

  #subscribe(request: ExchangeRequest, uri: string, binding: Binding): AttemptPlan | LocalAnswer {
    if (!this.uris.has(uri) && this.uris.size >= LIMITS.subscriptionsPerClient) {
      return refusal(`This client has too many subscriptions (${LIMITS.subscriptionsPerClient}).`);
    }
    const add = () => this.#add(uri, binding, undefined);
    if (hasOwnState(binding)) return forwarded(request, binding, add);
    if (binding.handshake.era !== 'legacy') return answered(add);
    return { kind: 'answer', answer$: defer(() => this.#join(uri, binding)) };
  }

  /** Asks the backend, unless another client did. If the backend refuses, there is no subscription to share. */
  #join(uri: string, binding: Binding): Observable<FinalEvent> {
    const shared = share(uri, binding, this.#session.value.ownerId);
    if (shared === undefined) return throwError(notConnected);
    const { answer, release } = shared;
    let isKept = false;
    return from(answer).pipe(
      tap(({ kind }) => {
        if (kind !== 'result') return;
        isKept = true;
        void this.#add(uri, binding, release);
      }),
      finalize(() => isKept || release()),
    );
  }

  #add(uri: string, binding: Binding, release: (() => void) | undefined): Promise<void> | undefined {
    const present = this.#session.binding ?? binding;
    this.#share(uri, release);
    this.#session.send({ type: 'subscribed', uri });
    if (present !== binding) this.#subscribeAt(present, uri, false);
    return present.refresh(this.uris);
  }

  #remove(uri: string): void {
    this.#share(uri, undefined);
    this.#session.send({ type: 'unsubscribed', uri });
    void this.#session.binding?.refresh();
  }

  /** The part in a shared subscription; the one before ends. */
  #share(uri: string, release: (() => void) | undefined): void {
    const before = this.#releases.get(uri);
    if (release === undefined) this.#releases.delete(uri);
    else this.#releases.set(uri, release);
    before?.();
  }

  /** `isKnown`: the backend has the subscription. The one at the previous binding ends. */
  #subscribeAt(binding: Binding, uri: string, isKnown: boolean): Promise<unknown> | undefined {
    const shared = share(uri, binding, this.#session.value.ownerId);
    this.#share(uri, shared?.release);
    if (isKnown || !hasOwnState(binding)) return shared?.answer;
    const request = { method: SUBSCRIBE, params: { uri } };
    // The conversation itself reports its end.
    return answerOf(binding.conversation.exchange(request), ANSWER_MS, this.#session.deps).catch(
      () => undefined,
    );
  }
}

/** One client's part in a subscription; undefined where the backend, or only the gateway, keeps the state of the client. */
function share(uri: string, { handshake, feed }: Binding, ownerId: string): SharedSubscription | undefined {
  return handshake.era === 'legacy' ? feed?.subscribe(uri, ownerId) : undefined;
}

/** In a dedicated conversation the backend keeps the state of the client. */
function hasOwnState(binding: Binding): binding is Binding & { readonly conversation: Conversation } {
  return binding.conversation !== undefined && !binding.isShared && keepsState(binding.conversation);
}

/** A modern backend gets the state with each request, also where clients share its process. */
function keepsState({ handshake }: Conversation): boolean {
  return handshake.era !== 'modern';
}

/** A legacy backend without logging, or a bare one, refuses itself. A modern one gets the level with each request. */
function offersLog({ handshake }: Binding): boolean {
  return handshake.era === 'modern' || handshake.capabilities.logging !== undefined;
}

/** Forwards the request; `agreed` is called if the backend agrees. */
function forwarded(request: ExchangeRequest, { conversation }: Binding, agreed: () => void): AttemptPlan {
  const receive = ({ kind }: ExchangeEvent): true => {
    if (kind === 'result') agreed();
    return true;
  };
  return { request, conversation, receive };
}

/** Answers `{}` when the action is done. */
function answered(act: () => Promise<void> | undefined): LocalAnswer {
  const answer = (): FinalEvent => ({ kind: 'result', result: JsonText.ofValue({}) });
  const answer$ = defer(() => {
    const done = act();
    return done === undefined ? of(answer()) : from(done).pipe(map(answer));
  });
  return { kind: 'answer', answer$ };
}

function refusal(message: string): LocalAnswer {
  return { kind: 'answer', answer$: of({ kind: 'error', error: { code: RPC.invalidParams, message } }) };
}
