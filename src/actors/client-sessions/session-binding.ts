// The binding of a session, the state that its client gave its backend, and the requests that wait for a binding. Driven by
// its machine (client-session.machine.ts).

import type { Observable } from 'rxjs';
import { backendTimeout, queueFull, sessionLost } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import { noneHealthy } from '../calls/no-instance-error.ts';
import type { AttemptPlan } from '../calls/routes.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Binder, Wish } from './binder.ts';
import type { ClientSessionDeps, SessionPhase } from './client-session.machine.ts';
import { Life } from './client-session.machine.ts';
import type { CallsPlace } from './client-session-calls.ts';
import type { Binding, BindingOwner, ResourceUris, SessionDeps, Waiter } from './client-session-types.ts';
import { ClientState, isTelling } from './client-state.ts';
import type { SessionRoute } from './session-route.ts';

export interface SessionBindingOptions extends Pick<Wish, 'template' | 'ownerId' | 'profile'> {
  readonly deps: SessionDeps;
  readonly binder: Binder;
}

const NONE: ResourceUris = { has: () => false, keys: () => [] };

export class SessionBinding implements ClientSessionDeps, CallsPlace {
  readonly life: Life;
  readonly #options: SessionBindingOptions;
  readonly #owner: BindingOwner;
  #binding: Binding | undefined;
  /** The former binding, given up although it is usable: its instance fails calls. */
  #left: Binding | undefined;
  /** Chosen for the opening. */
  #first: InstanceRef | undefined;
  #clientState: ClientState | undefined;
  readonly #waiting = new BindingWaiters();
  #unsafeCalls = 0;
  #reason = 'its instance is gone';
  #closing: Promise<void> | undefined;

  constructor(options: SessionBindingOptions, owner: BindingOwner) {
    this.#options = options;
    this.#owner = owner;
    this.life = new Life(this, options.deps.fleet.root);
  }

  get template(): string {
    return this.#options.template;
  }
  get ownerId(): string {
    return this.#options.ownerId;
  }
  get deps(): SessionDeps {
    return this.#options.deps;
  }
  get binding(): Binding | undefined {
    return this.#binding;
  }
  get usableBinding(): Binding | undefined {
    return this.life.phase === 'serving' && this.isServed() ? this.#binding : undefined;
  }
  /** The binding for notifications of its client, which open nothing new. */
  get heardBinding(): Binding | undefined {
    return this.life.phase === 'finishing' && this.#binding?.isIntact ? this.#binding : this.usableBinding;
  }
  get mayUpgrade(): boolean {
    return this.#policy.session !== 'shared';
  }
  get queue(): Group['queue'] {
    return this.deps.fleet.group(this.#options.template).queue;
  }
  get callTimeoutMs(): number {
    return this.#policy.callTimeoutMs;
  }
  get logLevel(): string | undefined {
    return this.#clientState?.level;
  }
  get uris(): ResourceUris {
    return this.#clientState?.uris ?? NONE;
  }
  /** Resolves when nothing of its own is left at the backend. */
  get closing(): Promise<void> {
    return this.#closing ?? Promise.resolve();
  }

  /** Binds to a first instance. Without a promise when nothing has to be opened there. */
  open(): Promise<void> | undefined {
    const { binder, template } = this.#options;
    const ref = binder.choose(template);
    this.#binding = binder.at(ref, this.#wish);
    if (this.#binding === undefined) return this.#openAt(ref);
    this.life.wake();
    return undefined;
  }

  wait(waiter: Waiter): () => void {
    if (!this.deps.isAccepting()) waiter.refused(shuttingDown());
    else if (this.life.phase === 'ended') waiter.refused(sessionLost(this.#reason));
    else if (this.#waiting.add(waiter)) this.life.look(waiter.needsOwn);
    else waiter.refused(queueFull(this.#options.template));
    return () => this.#waiting.leave(waiter);
  }

  carry(request: ExchangeRequest, route: SessionRoute): Observable<Answer> {
    return this.deps.dispatcher.carry(this.#options.template, request, () => {
      const timeoutMs = this.callTimeoutMs;
      return { group: this.#group, request, route, wantedTool: undefined, timeoutMs };
    });
  }

  plan(request: ExchangeRequest, binding: Binding): AttemptPlan {
    if (!isTelling(request.method)) return { request, upstream: binding.upstream };
    this.#clientState ??= new ClientState({
      subscriptions: this.deps.subscriptions,
      binding: () => (this.life.phase === 'ended' ? undefined : this.#binding),
      changed: (uri, isWanted) => this.#owner.changed(uri, isWanted),
    });
    return this.#clientState.plan(request, binding);
  }

  isEjected({ ref }: Binding): boolean {
    return this.#group.pool.ejectionOf(ref) !== undefined;
  }

  leave(binding: Binding): boolean {
    if (binding !== this.#binding) return true; // another call made it move
    if (!this.mayMove || !hasOthers(this.#group, binding.ref)) return false;
    this.#left = binding;
    return true;
  }

  countUnsafe(difference: 1 | -1): void {
    this.#unsafeCalls += difference;
  }

  /** Ends it for good. `reason` is a clause; the first one counts. */
  end(reason: string): void {
    if (this.life.phase !== 'ended') this.#reason = reason;
    this.life.end();
  }

  // --- what the machine asks for -----------------------------------------------------------------------------------

  async settle(signal: AbortSignal): Promise<void> {
    const from = this.#binding?.ref;
    const only = this.#waiting.needsOwn && this.isServed() ? from : undefined;
    const order = { first: this.#first, only, last: from, signal, withinMs: this.settleMs() };
    try {
      const binding = await this.#options.binder.settle(this.#wish, order);
      if (signal.aborted) {
        await binding.close();
        throw signal.reason;
      }
      this.#take(binding);
    } finally {
      this.#left = undefined; // without another instance for it, it stays
    }
  }

  settleMs(): number {
    return this.#binding === undefined ? LIMITS.handshakeMs : this.callTimeoutMs;
  }

  isBound(): boolean {
    return this.#binding !== undefined;
  }

  isServed(): boolean {
    const binding = this.#binding;
    return binding?.isIntact === true && binding !== this.#left && binding.ref.takes(binding.upstream);
  }

  get mayMove(): boolean {
    return mayMove(this.#policy, this.#unsafeCalls);
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
    this.life.entered(phase);
    if (phase === 'serving' && this.#binding !== undefined) this.#waiting.tell(this.#binding);
    else if (phase === 'adrift') this.refuse();
    else if (phase === 'finishing') this.#refuse(() => sessionLost('its instance takes nothing new'));
    else if (phase === 'ended') this.#finish();
  }

  fail(why: { readonly error: unknown } | 'late'): void {
    this.#waiting.fail(why === 'late' ? backendTimeout(this.settleMs(), 'no') : asGatewayError(why.error));
  }

  refuse(): void {
    const { deps, template } = this.#options;
    this.#refuse(() => noneHealthy(template, deps.fleet.members(template)));
  }

  // -----------------------------------------------------------------------------------------------------------------

  /** When the gateway stops, that is the reason, whatever the state of its instances. */
  #refuse(why: () => GatewayError): void {
    this.#waiting.refuse(() => (this.deps.isAccepting() ? why() : shuttingDown()));
  }

  get #group(): Group {
    return this.deps.fleet.group(this.#options.template);
  }

  get #policy(): BalancerPolicy {
    return this.#group.policy;
  }

  get #wish(): Wish {
    const { template, ownerId, profile } = this.#options;
    const state = this.#clientState;
    const asksForLog = state?.level !== undefined || this.#waiting.needsOwn;
    const wish = { template, ownerId, profile, asksForLog };
    return state === undefined
      ? wish
      : { ...wish, introduce: (upstream, signal) => state.repeat(upstream, signal) };
  }

  #openAt(ref: InstanceRef): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#first = ref;
    this.#waiting.add({ needsOwn: false, bound: () => resolve(), refused: reject });
    this.life.wake();
    return promise;
  }

  #take(binding: Binding): void {
    const before = this.#binding;
    this.#binding = binding;
    this.#first = undefined;
    this.#clientState?.moved(binding);
    this.#owner.moved(binding);
    before?.retire();
  }

  /** Callers are answered first. */
  #finish(): void {
    this.#refuse(() => sessionLost(this.#reason));
    this.#owner.ended(this.#reason);
    this.#clientState?.forget();
    this.#closing = this.#binding?.close();
  }
}

/** True when a session may go on with another instance, after so many calls that are not safe. */
function mayMove({ sessionFailover }: BalancerPolicy, unsafeCalls: number): boolean {
  return sessionFailover === 'always' || (sessionFailover === 'auto' && unsafeCalls === 0);
}

/** True when another instance could take a session of the template. */
function hasOthers({ pool }: Group, than: InstanceRef): boolean {
  return pool.candidates.some((candidate) => candidate !== than);
}

/** The requests that wait for a binding. Each is answered once; a request that comes meanwhile waits for the next answer. */
export class BindingWaiters {
  #waiters: Set<Waiter> | undefined;
  #failure: GatewayError | undefined;

  /** True while a waiting request needs a conversation of the session's own. */
  get needsOwn(): boolean {
    for (const waiter of this.#waiters ?? []) if (waiter.needsOwn) return true;
    return false;
  }

  /** False when there are too many already. */
  add(waiter: Waiter): boolean {
    this.#waiters ??= new Set();
    if (this.#waiters.size >= LIMITS.queuedPerInstance) return false;
    this.#waiters.add(waiter);
    return true;
  }

  leave(waiter: Waiter): void {
    this.#waiters?.delete(waiter);
  }

  /** Why the session has no usable binding: the next refusal carries this failure instead of any other. */
  fail(failure: GatewayError): void {
    this.#failure = failure;
  }

  /** After a failed attempt to open a conversation of its own, the requests that need one are refused. */
  tell(binding: Binding): void {
    const failure = this.#takeFailure();
    for (const waiter of this.#take()) {
      if (failure !== undefined && waiter.needsOwn) waiter.refused(failure);
      else waiter.bound(binding);
    }
  }

  /** The error is only made when a request waits. */
  refuse(why: () => GatewayError): void {
    const failure = this.#takeFailure();
    const waiters = [...this.#take()];
    if (waiters.length === 0) return;
    const error = failure ?? why();
    for (const waiter of waiters) waiter.refused(error);
  }

  /** Empties the set first: a request that comes from now on waits anew, one that leaves meanwhile has no effect. */
  #take(): Iterable<Waiter> {
    const waiters = this.#waiters ?? [];
    this.#waiters = undefined;
    return waiters;
  }

  #takeFailure(): GatewayError | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }
}
