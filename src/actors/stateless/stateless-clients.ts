// Calls of clients without a session, on instances of either era: which may travel beside others in an instance's own
// conversation, which need one of their owner's (stateless-pool.ts), and what of a request a legacy backend hears
// (stateless-request.ts). How long it waits for one is stateless-wait.ts; how a call waits in line, is counted and times out is the
// dispatcher's.

import { catchError, defer, filter, finalize, type Observable, of, switchMap, tap, throwError } from 'rxjs';
import type { Clock } from '../../domain/clock.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import { type Answer, type ExchangeRequest, isFinal } from '../../domain/exchange.ts';
import { atInstance, perhapsDelivered } from '../../domain/failures.ts';
import { canonicalText, isJsonObject } from '../../domain/json.ts';
import { LIST_METHODS, type Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import { refusedEvent, retriedEvent, startedEvent } from '../calls/call-events.ts';
import type { Dispatcher, ExchangeOptions } from '../calls/dispatcher.ts';
import { affords, isRepeatable, mayGoOn } from '../calls/failover.ts';
import { pickFor } from '../calls/next-instance.ts';
import type { RetryBudget } from '../calls/retry-budget.ts';
import type { Fleet } from '../fleet.ts';
import type { Group } from '../group.ts';
import type { Conversation } from '../instances/conversation.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import { NO_TASKS } from '../task-requests.ts';
import type { Lease, StatelessClient, StatelessPool } from './stateless-pool.ts';
import { forLegacy, hears, logLevelOf } from './stateless-request.ts';
import { commonRouting, isList, isNetworked, type Routing, routingTo } from './stateless-routing.ts';
import { NO_SUBSCRIBER } from './stateless-upstream.ts';
import { type CallTime, leftMs, opened } from './stateless-wait.ts';

export interface StatelessClientsDeps extends Clock {
  readonly fleet: Pick<Fleet, 'has' | 'group' | 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'exchange' | 'within'>;
  readonly pool: StatelessPool;
  readonly budget: Pick<RetryBudget, 'take'>;
  readonly emit: (event: GatewayEvent) => void;
}

export interface StatelessOptions extends StatelessClient {
  /** Only this instance may answer, drained, unhealthy or not: the request goes on with something there. */
  readonly instanceId?: string | undefined;
}

/** One call: what is asked, by whom, and who may answer. */
interface Order extends StatelessClient, CallTime {
  readonly group: Group;
  readonly request: ExchangeRequest;
  /** The same for a legacy backend. */
  readonly legacyRequest: ExchangeRequest;
  readonly logLevel: string | undefined;
  readonly bound: InstanceRef | undefined;
  readonly options: ExchangeOptions;
}

/** Sets of capabilities that are remembered of one backend. */
const MOST_CAPABILITIES = 64;

export class StatelessClients {
  readonly #deps: StatelessClientsDeps;
  /** The capabilities to which a backend lists the same tools as in its shared process. */
  readonly #alike = new WeakMap<Peer, Set<string>>();

  constructor(deps: StatelessClientsDeps) {
    this.#deps = deps;
  }

  /**
   * One request. Cold; unsubscribing cancels it on the backend. Emits and errors like Dispatcher.exchange, and fails over
   * like it; QUEUE_FULL also when an instance can have no more conversations. A legacy backend may ask its client
   * (`request` events) for what the profile declares.
   */
  exchange(template: string, request: ExchangeRequest, options: StatelessOptions): Observable<Answer> {
    return defer(() => {
      const { fleet, dispatcher, now } = this.#deps;
      const { owner, profile, instanceId } = options;
      const passed: ExchangeOptions = {
        looksUpTools: false,
        ...(instanceId === undefined ? {} : { instanceId, goesOn: true }),
      };
      const member = instanceId === undefined ? undefined : fleet.find(template, instanceId);
      const isNobody = instanceId !== undefined && !(member instanceof InstanceRef);
      if (isNobody || !fleet.has(template)) return dispatcher.exchange(template, request, passed);
      const group = fleet.group(template);
      const order: Order = {
        owner,
        profile,
        group,
        cameAtMs: now(),
        timeoutMs: group.policy.callTimeoutMs,
        request,
        legacyRequest: forLegacy(request),
        logLevel: logLevelOf(request),
        bound: member instanceof InstanceRef ? member : undefined,
        options: passed,
      };
      return this.#carry(order);
    });
  }

  /** Where all would take it alike, the dispatcher chooses; otherwise what is to be done depends on the choice. */
  #carry(order: Order): Observable<Answer> {
    const { group, bound } = order;
    const way = commonRouting(bound === undefined ? group.pool.candidates : [bound], (one) =>
      this.#wayFor(one, order),
    );
    if (way === 'plain') return this.#dispatch(order, order.request);
    if (way === 'shared') return this.#dispatch(order, order.legacyRequest).pipe(heardBy(order));
    return this.#try(order, new Set(), undefined);
  }

  #dispatch({ group, options }: Order, request: ExchangeRequest): Observable<Answer> {
    return this.#deps.dispatcher.exchange(group.template, request, options);
  }

  /** Choosing and sending are one synchronous block, unless a conversation has to be opened in between. */
  #try(order: Order, tried: Set<string>, failure: GatewayError | undefined): Observable<Answer> {
    return defer(() => {
      const ref = choose(order, tried);
      if (ref === undefined)
        return failure ? throwError(() => failure) : this.#dispatch(order, order.request);
      const mayRepeat = isRepeatable(order.request, ref);
      let isAnswering = false;
      return this.#ask(ref, order, tried).pipe(
        tap(() => {
          isAnswering = true;
        }),
        catchError((thrown: unknown) => {
          const error = atInstance(asGatewayError(thrown), ref.id);
          if (isAnswering || !this.#mayGoOn(order, tried, ref, error, mayRepeat))
            return throwError(() => lastWord(error, failure));
          tried.add(ref.id);
          this.#deps.emit(retriedEvent(ref, order.request, error.code));
          return this.#try(error.delivered === 'no' ? waited(order) : order, tried, error);
        }),
      );
    });
  }

  #mayGoOn(
    order: Order,
    tried: ReadonlySet<string>,
    ref: InstanceRef,
    { delivered }: GatewayError,
    mayRepeat: boolean,
  ): boolean {
    if (!hasOther(order, tried, ref) || !mayGoOn(delivered, mayRepeat)) return false;
    if (delivered === 'no' && leftMs(this.#deps, order) <= 0) return false;
    return affords(this.#deps.budget, delivered);
  }

  #ask(ref: InstanceRef, order: Order, tried: ReadonlySet<string>): Observable<Answer> {
    const { dispatcher } = this.#deps;
    const way = this.#wayFor(ref, order);
    if (way === 'refused') return of({ event: NO_TASKS, instanceId: ref.id, serverId: ref.serverId });
    if (way === 'plain') return dispatcher.within(ref, undefined, order.request, order.options);
    const ask = () => dispatcher.within(ref, undefined, order.legacyRequest, order.options);
    if (way === 'shared') return ask().pipe(heardBy(order));
    const answers$ = this.#askAsGuest(ref, order, tried).pipe(heardBy(order));
    if (!isList(order.request)) return answers$;
    return answers$.pipe(
      filter(isUnasked),
      tap((answer) => this.#compare(ref, order, answer)),
      // Where there is no room for one more process the shared one lists what it can.
      catchError((thrown: unknown) => (this.#mayShare(order, thrown) ? ask() : throwError(() => thrown))),
    );
  }

  #wayFor(ref: InstanceRef, order: Order): Routing {
    const { group, profile, request, logLevel } = order;
    const listsAlike = request.method === LIST_METHODS.tools && this.#listsAlike(ref, order);
    return routingTo(ref, { sharing: group.policy.session, profile, request, logLevel, listsAlike });
  }

  #listsAlike({ peer }: InstanceRef, { profile }: Order): boolean {
    const alike = peer ? this.#alike.get(peer) : undefined;
    return alike?.has(canonicalText(profile.capabilities)) === true;
  }

  /** Most backends list the same tools to everybody: then no process is needed for that until the shared one starts again. */
  #compare({ peer, tools }: InstanceRef, { request, profile }: Order, { event }: Answer): void {
    if (!peer || request.method !== LIST_METHODS.tools || event.kind !== 'result') return;
    const names = allToolsOf(event.result.value);
    if (names === undefined || tools?.listsOnly(names) !== true) return;
    const alike = this.#alike.get(peer) ?? new Set();
    if (alike.size < MOST_CAPABILITIES) this.#alike.set(peer, alike.add(canonicalText(profile.capabilities)));
  }

  #mayShare({ group, request }: Order, thrown: unknown): boolean {
    const isFull = asGatewayError(thrown).code === 'QUEUE_FULL';
    return isFull && request.method === LIST_METHODS.tools && group.policy.session === 'auto';
  }

  /** A conversation may have ended unnoticed since it was last used: then it is opened anew, once. */
  #askAsGuest(
    ref: InstanceRef,
    order: Order,
    tried: ReadonlySet<string>,
    isAgain = false,
  ): Observable<Answer> {
    return defer(() => {
      const { conversation, isNew, release } = this.#lease(ref, order);
      let isAnswering = false;
      let isOver = false;
      return this.#askOver(conversation, ref, order, tried).pipe(
        tap(({ event }) => {
          isAnswering = true;
          isOver ||= isFinal(event);
        }),
        catchError((thrown: unknown) => {
          isOver = asGatewayError(thrown).delivered === 'no';
          if (isAnswering || !isLost(thrown)) throw thrown;
          conversation.retire();
          if (isNew || isAgain) throw thrown;
          release(true);
          return this.#askAsGuest(ref, order, tried, true);
        }),
        finalize(() => release(isOver)),
      );
    });
  }

  #askOver(
    conversation: Conversation,
    ref: InstanceRef,
    order: Order,
    tried: ReadonlySet<string>,
  ): Observable<Answer> {
    const { logLevel, options } = order;
    const ask = (upstream: Upstream, { legacyRequest }: Order) =>
      this.#deps.dispatcher.within(ref, upstream, legacyRequest, options);
    const { upstream } = conversation;
    const levelling = logLevel === undefined ? undefined : conversation.wantLevel(logLevel);
    if (upstream !== undefined && levelling === undefined) return ask(upstream, order);
    // A program takes its time to start, on every instance; over a network nothing does that is well.
    const isSpare = isNetworked(ref.definition) && hasOther(order, tried, ref);
    return opened(conversation, logLevel, this.#deps, order, isSpare).pipe(
      catchError((thrown: unknown) => {
        this.#tellRefused(order, thrown);
        throw thrown;
      }),
      switchMap((own) => ask(own, waited(order))),
    );
  }

  #lease(ref: InstanceRef, order: Order): Lease {
    try {
      return this.#deps.pool.lease(ref, order);
    } catch (thrown) {
      this.#tellRefused(order, thrown);
      throw thrown;
    }
  }

  /** A call that does not come as far as the dispatcher is told like one that is refused there. */
  #tellRefused({ group: { template }, request }: Order, thrown: unknown): void {
    this.#deps.emit(startedEvent(template, request));
    this.#deps.emit(refusedEvent(template, request, asGatewayError(thrown).code));
  }
}

/** The same call, whose time began when it came. */
function waited(order: Order): Order {
  const { request, legacyRequest, cameAtMs } = order;
  return { ...order, request: { ...request, cameAtMs }, legacyRequest: { ...legacyRequest, cameAtMs } };
}

/** What was never sent the last time may have arrived before. */
function lastWord(error: GatewayError, before: GatewayError | undefined): GatewayError {
  return error.delivered === 'no' && before?.delivered === 'unknown' ? perhapsDelivered(error) : error;
}

/** True when somebody else than `ref` could take it after `ref` failed it. */
function hasOther({ group, bound }: Order, tried: ReadonlySet<string>, ref: InstanceRef): boolean {
  if (bound !== undefined || tried.size >= group.policy.maxRetries) return false;
  return group.pool.candidates.some(({ id }) => id !== ref.id && !tried.has(id));
}

/** What a backend asks in the middle of a list is about no list: it is answered here. */
function isUnasked({ event }: Answer): boolean {
  if (event.kind !== 'request') return true;
  event.answer(NO_SUBSCRIBER);
  return false;
}

/** The names of the tools in a list that has no further page. */
function allToolsOf(result: unknown): readonly string[] | undefined {
  if (!isJsonObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined)
    return undefined;
  return result.tools.map((tool: unknown) => (isJsonObject(tool) ? String(tool.name) : ''));
}

/**
 * One that is full is chosen when all are, one that is ejected only when no other is left: the dispatcher lets the call wait in
 * the queue for it.
 */
function choose(
  { group, bound, owner, request }: Order,
  tried: ReadonlySet<string>,
): InstanceRef | undefined {
  if (bound !== undefined) return tried.has(bound.id) ? undefined : bound;
  const { pool } = group;
  const picked = pickFor(owner.id, request, pool, tried);
  if (picked !== undefined) return picked;
  const left = pool.candidates.filter(({ id }) => !tried.has(id));
  return left.find((ref) => pool.ejectionOf(ref) === undefined) ?? left[0];
}

function isLost(thrown: unknown): boolean {
  const { code, delivered } = asGatewayError(thrown);
  return code === 'BACKEND_UNAVAILABLE' && delivered === 'no';
}

function heardBy({ logLevel }: Order) {
  return filter(hears(logLevel));
}
