// The typed handle of one instance: the only way to it from outside the actors. Reads its snapshot, sends it commands.
// It is also what strategies choose among: reading a number costs nothing, because the snapshot is at hand.

import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  endWith,
  from,
  map,
  Observable,
  of,
  type Subscription,
  share,
  shareReplay,
  startWith,
  switchMap,
  takeWhile,
  throwError,
} from 'rxjs';
import type { Candidate } from '../balancing/strategy.ts';
import { ANONYMOUS } from '../domain/account.ts';
import type { ClientProfile, ServerMessage } from '../domain/client.ts';
import { asGatewayError, backendUnavailable, type GatewayError } from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import { reasonOf } from '../domain/failures.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceState } from '../domain/instance.ts';
import { LIMITS, type OwnBounds } from '../domain/limits.ts';
import type { Era, Peer } from '../domain/mcp.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import type { Upstream } from '../transports/transport.ts';
import type { InstanceActor } from './instance.machine.ts';
import type { InstanceEmission } from './instance-setup.ts';
import { InstanceStays } from './instance-stay.ts';
import { isReopening, snapshotOf, stateOf, whyNot } from './instance-view.ts';
import { OwnUpstreams } from './own-upstreams.ts';
import { Places } from './places.ts';
import { type Ending, Reply } from './reply.ts';
import { notConnected, type SessionLink } from './session.ts';
import type { ToolCache } from './tool-cache.ts';

/** What an exchange needs besides its request. */
export interface ExchangeHooks {
  /** Told in the teardown how it ended. */
  readonly finished?: (ending: Ending) => void;
  /**
   * Asked in the teardown for the error with which the gateway itself ends an exchange; without one, an unanswered
   * exchange was cancelled by its caller.
   */
  readonly overdue?: () => GatewayError | undefined;
  /** Told that it gave its place back, until its client has answered its backend. */
  readonly rested?: () => void;
  /** The conversation of one client that it goes through. Default: the instance's own. */
  readonly upstream?: Upstream | undefined;
}

export class InstanceRef implements Candidate {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly capacity: number = LIMITS.inFlightPerInstance;
  /** Its state, replayed and then whenever it changes; ends with `stopped`. Never errors. */
  readonly state$: Observable<InstanceState>;
  /** Hot, no replay: what its present session hears besides answers, after a restart that of the next. Completes with it. */
  readonly messages$: Observable<ServerMessage>;
  readonly #actor: InstanceActor;
  readonly #now: () => number;
  /** Counted here, too: the actor counts a moment later when it is called from within one of its own transitions. */
  readonly #places = new Places();
  /** The conversations of single clients. */
  readonly #own: OwnUpstreams;
  readonly #stays: InstanceStays;

  constructor(actor: InstanceActor, now: () => number, own?: OwnBounds) {
    const { definition } = actor.getSnapshot().context;
    this.id = definition.id;
    this.serverId = definition.serverId;
    this.template = definition.template;
    this.#actor = actor;
    this.#now = now;
    this.#own = new OwnUpstreams(definition, own);
    const snapshots$ = defer(() => from(actor).pipe(startWith(actor.getSnapshot())));
    // Shared: a look at every snapshot of the actor is cheap once, not once per client that listens or is waited for.
    const links$ = snapshots$.pipe(
      map(({ context }) => context.link),
      distinctUntilChanged(),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
    this.#stays = new InstanceStays(actor, links$);
    this.messages$ = links$.pipe(
      switchMap((link) => link?.messages$.pipe(catchError(() => EMPTY)) ?? EMPTY),
      catchError(() => EMPTY),
      share(),
    );
    this.state$ = snapshots$.pipe(
      map(stateOf),
      distinctUntilChanged(),
      catchError(() => of('stopped' as const)),
      endWith('stopped' as const),
      takeWhile((state) => state !== 'stopped', true),
      shareReplay({ bufferSize: 1, refCount: true }),
    );
  }

  get definition(): InstanceDefinition {
    return this.#actor.getSnapshot().context.definition;
  }
  get state(): InstanceState {
    return stateOf(this.#actor.getSnapshot());
  }
  /** Why it is not healthy; null while it is. */
  get reason(): string | null {
    return whyNot(this.#actor.getSnapshot());
  }
  /** True while its session is closed because somebody had it restarted. */
  get isReopening(): boolean {
    return isReopening(this.#actor.getSnapshot());
  }
  /** How its backend is spoken to; null while it has no session. */
  get era(): Era | null {
    return this.peer?.era ?? null;
  }
  /** Who is there; undefined while it has no session. */
  get peer(): Peer | undefined {
    return this.#link?.peer;
  }
  /** Who is, or was last, there; undefined before its first session. */
  get lastPeer(): Peer | undefined {
    return this.#actor.getSnapshot().context.lastPeer;
  }
  get weight(): number {
    return this.definition.weight;
  }
  /** Exchanges that fill its places: those whose backend waits for its client do not. */
  get inFlight(): number {
    return this.#places.working;
  }
  /** All exchanges under way. */
  get carried(): number {
    return this.#places.carried;
  }
  get successRate(): number {
    return this.#actor.getSnapshot().context.vitals.successRate;
  }
  get latencyMs(): number | undefined {
    return this.#actor.getSnapshot().context.vitals.latencyMs;
  }
  /** What it said it can do; undefined while it has no session. */
  get tools(): ToolCache | undefined {
    return this.#link?.tools;
  }
  get #link(): SessionLink | undefined {
    return this.#actor.getSnapshot().context.link;
  }

  /**
   * Cold: subscribing counts the exchange and hands it to the session in the same synchronous block; the teardown
   * counts it down, whether it was answered, failed or was cancelled. Whichever conversation it goes through, it is
   * judged like any other; only that a conversation of one client is over says nothing of the instance.
   */
  exchange(request: ExchangeRequest, hooks: ExchangeHooks = {}): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      if (this.state === 'stopped') {
        subscriber.error(stopped());
        return;
      }
      const ownerId = request.caller ?? ANONYMOUS.id;
      const reply = new Reply(subscriber, this.#now, { places: this.#places, ownerId, rested: hooks.rested });
      this.#places.take();
      this.#actor.send({ type: 'request', request, reply, upstream: hooks.upstream });
      if (!reply.isTaken) subscriber.add(this.#refuseIfItStops(reply));
      return () => {
        const ending = reply.end(hooks.overdue?.());
        this.#places.leave();
        this.#actor.send({ type: 'released', ending });
        this.#doubt(ending.error);
        hooks.finished?.(ending);
      };
    });
  }

  /**
   * Opens a conversation of its own for one client; it ends with the present session. Undefined: its backend keeps none
   * for a single client. BACKEND_UNAVAILABLE, `delivered: 'no'`; QUEUE_FULL when the instance can have no more of them,
   * or, where each is a process, no more for this owner. Default: for nobody in particular, which only specs do.
   */
  async openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string = ANONYMOUS.id,
  ): Promise<Upstream | undefined> {
    const link = this.#link;
    if (link === undefined) throw notConnected();
    const open = () => link.openUpstream(profile, signal, ownerId);
    try {
      return await this.#own.open({ ownerId, signal, open });
    } catch (thrown) {
      const error = asGatewayError(thrown);
      this.#doubt(error);
      throw error;
    }
  }

  /** Hot, no replay: what becomes of those conversations, `upstream.*`. */
  get upstreamFacts$(): Observable<GatewayEvent> {
    return this.#own.facts$;
  }

  /** Cold: what stays open without being a call, such as a subscription; nobody counts it. BACKEND_UNAVAILABLE. */
  listen(request: ExchangeRequest): Observable<ExchangeEvent> {
    return defer(() => this.#link?.listen(request) ?? throwError(notConnected));
  }

  /**
   * Cold: a call of that owner is between two rounds here while somebody subscribes, and waited for. Completes when the
   * session of the backend that is there is over, at once when there is none. QUEUE_FULL, at once, when LIMITS.parkedCalls
   * wait here, or the owner's share of them; not where it `goesOn`: it has a place here, which it leaves for this one.
   */
  stay(ownerId: string, goesOn = false): Observable<never> {
    return this.#stays.stay(ownerId, goesOn);
  }

  drain(): void {
    this.#actor.send({ type: 'drain' });
  }
  resume(): void {
    this.#actor.send({ type: 'resume' });
  }
  restart(): void {
    this.#actor.send({ type: 'restart' });
  }
  /** Takes it out of the pool at once; calls in flight have `withinMs` to finish, then the session is closed. */
  leave(withinMs: number): void {
    this.#actor.send({ type: 'leave', withinMs });
  }
  /** Replaces weight and metadata without touching the session. */
  change(definition: InstanceDefinition): void {
    this.#actor.send({ type: 'change', definition });
  }
  govern(policy: BalancerPolicy): void {
    this.#actor.send({ type: 'govern', policy });
  }

  /** Calls `listener` for facts that are no state. Returns what ends it. */
  onEmission(listener: (emission: InstanceEmission) => void): () => void {
    const subscription = this.#actor.on('*', listener);
    return () => subscription.unsubscribe();
  }

  /** The one status source. `score` is filled in by who knows the pool. */
  snapshot(score: number): InstanceSnapshot {
    return snapshotOf(this.#actor.getSnapshot(), { score, inFlight: this.carried });
  }

  /** Sent while the actor is at work a request waits in its mailbox, which is lost with the actor. */
  #refuseIfItStops(reply: Reply): Subscription {
    return this.state$.subscribe({ complete: () => reply.isTaken || reply.error(stopped()) });
  }

  /** Calls never flip health, but what they met may: a refused connection does at once, other doubts ask for a probe. */
  #doubt(error: GatewayError | undefined): void {
    if (error === undefined) return;
    if (error.facts.unreachable) this.#actor.send({ type: 'unreachable', reason: reasonOf(error) });
    else if (error.facts.suspicious) this.#actor.send({ type: 'suspected' });
  }
}

function stopped(): GatewayError {
  return backendUnavailable('it was stopped', { delivered: 'no' });
}
