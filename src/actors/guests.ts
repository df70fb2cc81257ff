// Calls of clients without a session, on instances of either era: which may travel beside others in an instance's own
// conversation, which need one of their owner's (guest-pool.ts), and what of a request a legacy backend hears
// (guest-request.ts). How a call waits, is counted and times out is the dispatcher's.

import {
  catchError,
  defer,
  filter,
  finalize,
  from,
  type Observable,
  of,
  switchMap,
  tap,
  throwError,
} from 'rxjs';
import { asGatewayError, type GatewayError } from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import { atInstance } from '../domain/failures.ts';
import { METHODS } from '../domain/mcp.ts';
import type { Upstream } from '../transports/transport.ts';
import type { Dispatcher, ExchangeOptions } from './dispatcher.ts';
import type { Fleet } from './fleet.ts';
import type { Group } from './group.ts';
import type { GuestConversation } from './guest-conversation.ts';
import type { Guest, GuestPool, Lease } from './guest-pool.ts';
import { forLegacy, hears, logLevelOf } from './guest-request.ts';
import { commonWay, type Way, wayTo } from './guest-way.ts';
import { factOf } from './instance-facts.ts';
import { InstanceRef } from './instance-ref.ts';
import type { RetryBudget } from './retry-budget.ts';
import { NO_TASKS } from './task-requests.ts';

export interface GuestsParts {
  readonly fleet: Pick<Fleet, 'has' | 'group' | 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'exchange' | 'within'>;
  readonly pool: GuestPool;
  readonly budget: Pick<RetryBudget, 'take'>;
  readonly emit: (event: GatewayEvent) => void;
}

export interface GuestOptions extends Guest {
  /** Only this instance may answer, drained, unhealthy or not: the request goes on with something there. */
  readonly instanceId?: string | undefined;
}

/** One call: what is asked, by whom, and who may answer. */
interface Order extends Guest {
  readonly group: Group;
  readonly request: ExchangeRequest;
  /** The same for a legacy backend. */
  readonly legacyRequest: ExchangeRequest;
  readonly logLevel: string | undefined;
  readonly pinned: InstanceRef | undefined;
  readonly options: ExchangeOptions;
}

export class Guests {
  readonly #parts: GuestsParts;

  constructor(parts: GuestsParts) {
    this.#parts = parts;
  }

  /**
   * One request. Cold; unsubscribing cancels it on the backend. Emits and errors like Dispatcher.exchange, and fails over
   * like it; QUEUE_FULL also when an instance can have no more conversations. A legacy backend may ask its client
   * (`request` events) for what the profile declares.
   */
  exchange(template: string, request: ExchangeRequest, options: GuestOptions): Observable<Answer> {
    return defer(() => {
      const { fleet, dispatcher } = this.#parts;
      const { owner, profile, instanceId } = options;
      const passed: ExchangeOptions = {
        looksUpTools: false,
        ...(instanceId === undefined ? {} : { instanceId, goesOn: true }),
      };
      const member = instanceId === undefined ? undefined : fleet.find(template, instanceId);
      const isNobody = instanceId !== undefined && !(member instanceof InstanceRef);
      if (isNobody || !fleet.has(template)) return dispatcher.exchange(template, request, passed);
      const order: Order = {
        owner,
        profile,
        group: fleet.group(template),
        request,
        legacyRequest: forLegacy(request),
        logLevel: logLevelOf(request),
        pinned: member instanceof InstanceRef ? member : undefined,
        options: passed,
      };
      return this.#carry(order);
    });
  }

  /** Where all would take it alike, the dispatcher chooses; otherwise what is to be done depends on the choice. */
  #carry(order: Order): Observable<Answer> {
    const { group, pinned } = order;
    const way = commonWay(pinned === undefined ? group.pool.candidates : [pinned], (one) =>
      wayFor(one, order),
    );
    if (way === 'plain') return this.#dispatch(order, order.request);
    if (way === 'shared') return this.#dispatch(order, order.legacyRequest).pipe(heardBy(order));
    return this.#try(order, new Set(), undefined);
  }

  #dispatch({ group, options }: Order, request: ExchangeRequest): Observable<Answer> {
    return this.#parts.dispatcher.exchange(group.template, request, options);
  }

  /** Choosing and sending are one synchronous block, unless a conversation has to be opened in between. */
  #try(order: Order, tried: Set<string>, failure: GatewayError | undefined): Observable<Answer> {
    return defer(() => {
      const ref = choose(order, tried);
      if (ref === undefined)
        return failure ? throwError(() => failure) : this.#dispatch(order, order.request);
      const mayRepeat = isRepeatable(order.request, ref);
      let isAnswering = false;
      return this.#ask(ref, order).pipe(
        tap(() => {
          isAnswering = true;
        }),
        catchError((thrown: unknown) => {
          const error = atInstance(asGatewayError(thrown), ref.id);
          tried.add(ref.id);
          if (isAnswering || !this.#mayGoOn(order, tried, error, mayRepeat)) return throwError(() => error);
          const { method } = order.request;
          this.#parts.emit({ type: 'exchange.retried', ...factOf(ref), method, code: error.code });
          return this.#try(order, tried, error);
        }),
      );
    });
  }

  /** As in dispatcher.ts: what certainly did not arrive goes on, what perhaps did only if that does no harm. */
  #mayGoOn({ group, pinned }: Order, tried: Set<string>, error: GatewayError, mayRepeat: boolean): boolean {
    if (pinned !== undefined || tried.size > group.policy.maxRetries) return false;
    if (!group.pool.candidates.some(({ id }) => !tried.has(id))) return false;
    return (
      error.delivered === 'no' || (error.delivered === 'unknown' && mayRepeat && this.#parts.budget.take())
    );
  }

  #ask(ref: InstanceRef, order: Order): Observable<Answer> {
    const { dispatcher } = this.#parts;
    const way = wayFor(ref, order);
    if (way === 'refused') return of({ event: NO_TASKS, instanceId: ref.id, serverId: ref.serverId });
    if (way === 'plain') return dispatcher.within(ref, undefined, order.request, order.options);
    if (way === 'guest') return this.#askAsGuest(ref, order).pipe(heardBy(order));
    return dispatcher.within(ref, undefined, order.legacyRequest, order.options).pipe(heardBy(order));
  }

  /** A conversation may have ended unnoticed since it was last used: then it is opened anew, once. */
  #askAsGuest(ref: InstanceRef, order: Order, isAgain = false): Observable<Answer> {
    return defer(() => {
      const { conversation, isNew, release } = this.#lease(ref, order);
      let isAnswering = false;
      return this.#askOver(conversation, ref, order).pipe(
        tap(() => {
          isAnswering = true;
        }),
        catchError((thrown: unknown) => {
          if (isAnswering || !isLost(thrown)) throw thrown;
          conversation.retire();
          if (isNew || isAgain) throw thrown;
          release();
          return this.#askAsGuest(ref, order, true);
        }),
        finalize(release),
      );
    });
  }

  #askOver(conversation: GuestConversation, ref: InstanceRef, order: Order): Observable<Answer> {
    const { legacyRequest, logLevel, options } = order;
    const ask = (upstream: Upstream) => this.#parts.dispatcher.within(ref, upstream, legacyRequest, options);
    const { upstream } = conversation;
    const levelling = logLevel === undefined ? undefined : conversation.wantLevel(logLevel);
    if (upstream !== undefined && levelling === undefined) return ask(upstream);
    return from(ready(conversation, logLevel)).pipe(
      catchError((thrown: unknown) => {
        this.#tellRefused(order, thrown);
        throw thrown;
      }),
      switchMap(ask),
    );
  }

  #lease(ref: InstanceRef, order: Order): Lease {
    try {
      return this.#parts.pool.lease(ref, order);
    } catch (thrown) {
      this.#tellRefused(order, thrown);
      throw thrown;
    }
  }

  /** A call that does not come as far as the dispatcher is told like one that is refused there. */
  #tellRefused({ group: { template }, request: { method } }: Order, thrown: unknown): void {
    const fact = { atMs: Date.now(), template, method };
    this.#parts.emit({ type: 'exchange.started', ...fact });
    this.#parts.emit({ type: 'exchange.refused', ...fact, code: asGatewayError(thrown).code });
  }
}

/** Open, and told which log lines are wanted. */
async function ready(conversation: GuestConversation, logLevel: string | undefined): Promise<Upstream> {
  const upstream = await conversation.opened;
  if (logLevel !== undefined) await conversation.wantLevel(logLevel);
  return upstream;
}

function wayFor(ref: InstanceRef, { group, profile, request, logLevel }: Order): Way {
  return wayTo(ref, { sharing: group.policy.session, profile, request, logLevel });
}

/** One that is full is chosen when all are: the dispatcher lets the call wait in line for it. */
function choose({ group, pinned }: Order, tried: ReadonlySet<string>): InstanceRef | undefined {
  if (pinned !== undefined) return tried.has(pinned.id) ? undefined : pinned;
  return group.pool.pick(tried) ?? group.pool.candidates.find(({ id }) => !tried.has(id));
}

/** Asked before sending: afterwards the session that knew the tool may be gone. */
function isRepeatable({ method, params }: ExchangeRequest, { tools }: InstanceRef): boolean {
  if (method !== 'tools/call') return METHODS[method]?.repeatable ?? false;
  return typeof params?.name === 'string' && (tools?.isRepeatable(params.name) ?? false);
}

function isLost(thrown: unknown): boolean {
  const { code, delivered } = asGatewayError(thrown);
  return code === 'BACKEND_UNAVAILABLE' && delivered === 'no';
}

function heardBy({ logLevel }: Order) {
  return filter(hears(logLevel));
}
