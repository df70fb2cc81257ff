// The binding of a session, the state of its client, and the requests that wait for a binding. Driven by the machine of the
// session (client-session.machine.ts).

import { firstValueFrom, Observable, type Subscriber } from 'rxjs';
import { createActor } from 'xstate';
import { type BalancerPolicy, timeoutFor } from '../../balancing/policy.ts';
import type { ClientProfile } from '../../domain/client.ts';
import { backendTimeout, queueFull, sessionLost } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import { type Answer, type ExchangeRequest, toolOf } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import { setsClientState } from '../../domain/mcp.ts';
import type { AttemptPlan, CallRoute, LocalAnswer } from '../calls/routes.ts';
import type { Group } from '../group.ts';
import type { LeaseHolder } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { ResourceUris } from '../sharing/feed.ts';
import { isNetworked } from '../stateless/stateless-routing.ts';
import { SESSION_ACTOR_ID } from '../template.machine.ts';
import type { Binder, SessionDeps, SessionNeeds } from './binder.ts';
import type { Binding } from './bindings.ts';
import {
  type ClientSessionActor,
  type ClientSessionDeps,
  clientSessionMachine,
  RETRY_DELAY_MS,
  type SessionPhase,
} from './client-session.machine.ts';
import { ClientState } from './client-state.ts';

/** The session of a binding. */
export interface BoundSession extends LeaseHolder {
  readonly template: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  readonly isListened: boolean;
  /** True while calls are under way at the binding, or between two rounds there. */
  readonly isCalling: boolean;
  /** The session has this binding from now on. It has detached from the previous one, at `from`, when this returns. */
  moved(binding: Binding, from: InstanceRef | undefined): void;
  /** The session has ended; its binding is closed after this returns. */
  ended(reason: string): void;
}

const NONE: ResourceUris = { has: () => false, keys: () => [] };

export class SessionBinding implements ClientSessionDeps {
  readonly deps: SessionDeps;
  readonly #binder: Binder;
  readonly #owner: BoundSession;
  readonly #group: Group;
  /** Undefined while the session is parked: then the phase is enough to continue. */
  #actor: ClientSessionActor | undefined;
  #phase: SessionPhase = 'binding';
  #binding: Binding | undefined;
  /** The binding that is given up although it is usable, because its instance fails calls. */
  #abandoned: Binding | undefined;
  /** The instance that was chosen for the opening. */
  #first: InstanceRef | undefined;
  #clientState: ClientState | undefined;
  #waiting: { readonly needsDedicated: boolean; readonly subscriber: Subscriber<Binding> }[] = [];
  /** Why the session has no usable binding: the error of the next refusal. */
  #failure: GatewayError | undefined;
  #unsafeCalls = 0;
  #movedAtMs = Number.NEGATIVE_INFINITY;
  #reason = 'its instance is gone';

  /** TEMPLATE_NOT_FOUND. */
  constructor(
    { deps, binder }: { readonly deps: SessionDeps; readonly binder: Binder },
    owner: BoundSession,
  ) {
    this.deps = deps;
    this.#binder = binder;
    this.#owner = owner;
    this.#group = deps.fleet.hold(owner.template);
  }

  get template(): string {
    return this.#owner.template;
  }
  get ownerId(): string {
    return this.#owner.ownerId;
  }
  get isUnbound(): boolean {
    return this.#phase === 'unbound';
  }
  /** The present binding, or the last one. */
  get binding(): Binding | undefined {
    return this.#binding;
  }
  get usableBinding(): Binding | undefined {
    return this.#phase === 'serving' && this.isServed() ? this.#binding : undefined;
  }
  /** False when the template demands that clients share a conversation. */
  get mayUpgrade(): boolean {
    return this.#policy.session !== 'shared';
  }
  /** The queue of the template, where calls of an absent client offer their capacity. */
  get queue(): Group['queue'] {
    return this.#group.queue;
  }
  get logLevel(): string | undefined {
    return this.#clientState?.level;
  }
  get uris(): ResourceUris {
    return this.#clientState?.uris ?? NONE;
  }

  /** Binds to a first instance: at once if nothing has to be opened there, else as the machine finds it. */
  async open(): Promise<void> {
    const ref = this.#binder.choose(this.template);
    const binding = ref && this.#binder.at(ref, this.#needs);
    if (binding === undefined) {
      this.#first = ref;
      await firstValueFrom(this.untilBound(false));
    } else {
      this.#take(binding);
      this.wake();
    }
  }

  /** Cold: emits the next usable binding, once. `needsDedicated`: a dedicated conversation is required. */
  untilBound(needsDedicated: boolean): Observable<Binding> {
    return new Observable((subscriber) => {
      if (!this.deps.isAccepting()) return subscriber.error(shuttingDown());
      if (this.#phase === 'ended') return subscriber.error(sessionLost(this.#reason));
      if (this.#waiting.length >= LIMITS.queuedPerInstance) return subscriber.error(queueFull(this.template));
      const waiter = { needsDedicated, subscriber };
      this.#waiting.push(waiter);
      this.requestBinding(needsDedicated);
      return () => {
        this.#waiting = this.#waiting.filter((each) => each !== waiter);
      };
    });
  }

  carry(request: ExchangeRequest, route: CallRoute): Observable<Answer> {
    return this.deps.dispatcher.carry(this.template, request, () => {
      const group = this.#group;
      const timeoutMs = timeoutFor(group.policy, toolOf(request));
      return { group, request, route, wantedTool: undefined, timeoutMs };
    });
  }

  /** For requests of `setsClientState`; undefined for others. */
  statePlan(request: ExchangeRequest, binding: Binding): AttemptPlan | LocalAnswer | undefined {
    if (!setsClientState(request.method)) return undefined;
    this.#clientState ??= new ClientState(() => this.#binding, this.deps);
    return this.#clientState.plan(request, binding);
  }

  /** True when the pool gives the instance no calls because other calls failed there. */
  isEjected({ ref }: Binding): boolean {
    return this.#group.pool.outliers.ejectionOf(ref) !== undefined;
  }

  /**
   * Cold: a binding at none of these instances, for one call that is silent at this binding; the session stays here. Unsubscribing
   * ends the search. Undefined when the session may not move, when it will because the pool avoids its instance, or without another
   * instance. Source: ADR 103.
   */
  findSecond(at: Binding, without: ReadonlySet<string>): Observable<Binding> | undefined {
    const { ownerId, profile } = this.#owner;
    const isOwnProcess = at.upstream !== undefined && !isNetworked(at.ref.definition);
    if (isOwnProcess || !this.mayMove || this.isEjected(at)) return undefined;
    if (this.#group.pool.candidates.every(({ id }) => without.has(id))) return undefined;
    const needs = { group: this.#group, ownerId, profile, holder: this.#owner, asksForLog: false };
    const options = { without, last: at.ref, withinMs: this.bindTimeoutMs() };
    return new Observable((subscriber) => {
      const over = new AbortController();
      const found = (binding: Binding) => {
        if (over.signal.aborted) binding.retire();
        else subscriber.next(binding);
      };
      this.#binder.findBinding(needs, options, over.signal).then(found, (thrown) => subscriber.error(thrown));
      return () => over.abort();
    });
  }

  /** Gives up the binding: the session moves. False, without effect, when it may not move or there is no other instance. */
  abandon(binding: Binding): boolean {
    if (binding !== this.#binding) return true; // another call made it move
    if (!this.mayMove || !hasOthers(this.#group, binding.ref)) return false;
    this.#abandoned = binding;
    return true;
  }

  /** Counts calls that are not safe to repeat and may have been delivered. */
  countUnsafe(difference: 1 | -1): void {
    this.#unsafeCalls += difference;
  }

  wake(): void {
    if (this.#actor !== undefined || this.#phase === 'ended') return;
    const parent = this.deps.fleet.root;
    const actor = createActor(clientSessionMachine, { id: SESSION_ACTOR_ID, parent, input: this });
    this.#actor = actor; // before it starts: it may end synchronously
    actor.start();
  }

  /** Ends the actor; the session remains. */
  park(): void {
    this.#actor?.send({ type: 'park' });
    this.#actor = undefined;
  }

  /** A request found no usable binding, or needs a dedicated conversation. */
  requestBinding(needsDedicated: boolean): void {
    this.wake();
    if (this.isUnbound) this.#actor?.send({ type: 'requested' });
    else if (this.#phase === 'serving') {
      this.#actor?.send({ type: needsDedicated && this.isServed() ? 'upgrade' : 'lost' });
    } else this.callEnded();
  }

  /** A call has ended, perhaps the last one of a finishing session. */
  callEnded(): void {
    if (this.#phase === 'finishing') this.#actor?.send({ type: 'callEnded' });
  }

  /** Ends the session. `reason` is a clause; the first one counts. Resolves when nothing is left of a dedicated conversation. */
  async end(reason: string): Promise<void> {
    if (this.#phase !== 'ended') {
      this.#reason = reason;
      if (this.#actor === undefined) this.enter('ended');
      else this.#actor.send({ type: 'end' });
    }
    await this.#binding?.close();
  }

  // --- for the machine ------------------------------------------------------------------------------------------------

  async bind(signal: AbortSignal): Promise<void> {
    const from = this.#binding?.ref;
    const only = this.#needsDedicated && this.isServed() ? from : undefined;
    const options = { first: this.#first, only, last: from, withinMs: this.bindTimeoutMs() };
    try {
      const binding = await this.#binder.findBinding(this.#needs, options, signal);
      if (signal.aborted) {
        await binding.close();
        throw signal.reason;
      }
      this.#take(binding);
    } finally {
      this.#abandoned = undefined; // without another instance the session keeps this binding
    }
  }

  bindTimeoutMs(): number {
    const timeoutMs = timeoutFor(this.#policy);
    return this.#binding === undefined ? Math.max(LIMITS.handshakeMs, timeoutMs) : timeoutMs;
  }

  isServed(): boolean {
    const binding = this.#binding;
    return (
      binding?.isIntact === true && binding !== this.#abandoned && binding.ref.acceptsCalls(binding.upstream)
    );
  }

  get mayMove(): boolean {
    const { sessionFailover } = this.#policy;
    return sessionFailover === 'always' || (sessionFailover === 'auto' && this.#unsafeCalls === 0);
  }

  get mayPause(): boolean {
    const sinceMs = this.deps.now() - this.#movedAtMs;
    return this.mayMove && sinceMs < RETRY_DELAY_MS && this.#waiting.length === 0;
  }

  get mayWait(): boolean {
    return this.#binding?.isIntact === true && !hasOthers(this.#group, this.#binding.ref);
  }

  get mayFinish(): boolean {
    return this.#binding?.isIntact === true && this.#owner.isCalling;
  }

  get isListened(): boolean {
    return this.#owner.isListened;
  }

  enter(phase: SessionPhase): void {
    this.#phase = phase;
    if (phase === 'ended') this.#actor = undefined;
    if (phase === 'serving' && this.#binding !== undefined) this.#resume(this.#binding);
    else if (phase === 'unbound') this.refuse();
    else if (phase === 'finishing') this.#refuse(() => sessionLost('its instance takes no new calls'));
    else if (phase === 'ended') this.#finish();
  }

  fail(why: { readonly error: unknown } | 'late'): void {
    if (why !== 'late') this.#failure = asGatewayError(why.error);
    else if (this.#group.isStarting()) this.#failure = this.#group.noneHealthy();
    else this.#failure = backendTimeout(this.bindTimeoutMs(), 'no');
  }

  refuse(): void {
    this.#refuse(() => this.#group.noneHealthy());
  }

  // -----------------------------------------------------------------------------------------------------------------

  /** Resumes the requests; those that need a dedicated conversation are refused if opening one has failed. */
  #resume(binding: Binding): void {
    const { failure, waiting } = this.#takeWaiting();
    for (const { needsDedicated, subscriber } of waiting) {
      if (failure !== undefined && needsDedicated) subscriber.error(failure);
      else subscriber.next(binding);
    }
  }

  /** `why` is called only when a request waits. While the gateway closes, SHUTTING_DOWN replaces it. */
  #refuse(why: () => GatewayError): void {
    const { failure, waiting } = this.#takeWaiting();
    if (waiting.length === 0) return;
    const error = failure ?? (this.deps.isAccepting() ? why() : shuttingDown());
    for (const { subscriber } of waiting) subscriber.error(error);
  }

  /** A request that is added from now on waits for the next binding. */
  #takeWaiting() {
    const failure = this.#failure;
    this.#failure = undefined;
    return { failure, waiting: this.#waiting.splice(0) };
  }

  get #needsDedicated(): boolean {
    return this.#waiting.some(({ needsDedicated }) => needsDedicated);
  }

  get #policy(): BalancerPolicy {
    return this.#group.policy;
  }

  get #needs(): SessionNeeds {
    const { ownerId, profile } = this.#owner;
    const state = this.#clientState;
    const asksForLog = state?.level !== undefined || this.#needsDedicated;
    const restoreState = state?.repeat.bind(state);
    return { group: this.#group, ownerId, profile, holder: this.#owner, asksForLog, restoreState };
  }

  #take(binding: Binding): void {
    const before = this.#binding;
    this.#binding = binding;
    this.#first = undefined;
    if (before !== undefined) this.#movedAtMs = this.deps.now();
    this.#clientState?.moved(binding);
    this.#owner.moved(binding, before?.ref);
    before?.retire();
  }

  /** Callers are answered first. */
  #finish(): void {
    this.#refuse(() => sessionLost(this.#reason));
    this.#owner.ended(this.#reason);
    this.#clientState?.forget();
    void this.#binding?.close();
    this.deps.fleet.release(this.#group);
  }
}

function hasOthers({ pool }: Group, than: InstanceRef): boolean {
  return pool.candidates.some((candidate) => candidate !== than);
}
