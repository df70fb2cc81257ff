// Where a session stands: its pin, what its client told its backend, and who waits for it to have a pin. It does what its
// machine (client-session.machine.ts) has it do; when that runs is client-session-life.ts.

import type { Observable } from 'rxjs';
import { backendTimeout, queueFull } from '../../domain/backend-errors.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import { sessionLost } from '../../domain/session-errors.ts';
import { noneHealthy } from '../calls/no-instance-error.ts';
import type { ClientSessionDeps, SessionPhase } from './client-session.machine.ts';
import type { CallHost } from './client-session-call.ts';
import { hasOthers, mayMove } from './client-session-failover.ts';
import { Life } from './client-session-life.ts';
import type {
  Binding,
  PlaceOwner,
  SessionGroup,
  SessionInstance,
  SessionDeps,
  Uris,
  Waiter,
} from './client-session-types.ts';
import type { Binder, Wish } from './binder.ts';
import { isTelling, ClientState } from './client-state.ts';
import { Waiting } from './client-session-waiting.ts';

export interface SessionBindingOptions extends Pick<Wish, 'template' | 'ownerId' | 'profile'> {
  readonly parts: SessionDeps;
  readonly pinning: Binder;
}

const NONE: Uris = { has: () => false, keys: () => [] };

export class SessionBinding implements ClientSessionDeps, CallHost {
  readonly life: Life;
  readonly #options: SessionBindingOptions;
  readonly #owner: PlaceOwner;
  #pin: Binding | undefined;
  /** The pin, when it is not used any more although it could be: its instance fails calls. */
  #left: Binding | undefined;
  /** Chosen for the opening. */
  #first: SessionInstance | undefined;
  #told: ClientState | undefined;
  readonly #waiting = new Waiting();
  #unsafeCalls = 0;
  #reason = 'its instance is gone';
  #closing: Promise<void> | undefined;

  constructor(options: SessionBindingOptions, owner: PlaceOwner) {
    this.#options = options;
    this.#owner = owner;
    this.life = new Life(this, options.parts.clock);
  }

  get parts(): SessionDeps {
    return this.#options.parts;
  }
  get pin(): Binding | undefined {
    return this.#pin;
  }
  get usablePin(): Binding | undefined {
    return this.life.phase === 'serving' && this.isServed() ? this.#pin : undefined;
  }
  /** The pin that its client may say something to without asking anything new. */
  get heardPin(): Binding | undefined {
    return this.life.phase === 'finishing' && this.#pin?.isIntact ? this.#pin : this.usablePin;
  }
  get mayUpgrade(): boolean {
    return this.#policy.session !== 'shared';
  }
  get line(): SessionGroup['line'] {
    return this.parts.fleet.group(this.#options.template).line;
  }
  get callTimeoutMs(): number {
    return this.#policy.callTimeoutMs;
  }
  get logLevel(): string | undefined {
    return this.#told?.level;
  }
  get uris(): Uris {
    return this.#told?.uris ?? NONE;
  }
  /** Resolves when nothing is left of what was its own at the backend. */
  get closing(): Promise<void> {
    return this.#closing ?? Promise.resolve();
  }

  /** Goes to a first instance. Without a promise when nothing has to be opened there. */
  open(): Promise<void> | undefined {
    const { pinning, template } = this.#options;
    const ref = pinning.choose(template);
    this.#pin = pinning.at(ref, this.#wish);
    if (this.#pin === undefined) return this.#openAt(ref);
    this.life.wake();
    return undefined;
  }

  wait(waiter: Waiter): () => void {
    if (!this.parts.isAccepting()) waiter.refused(shuttingDown());
    else if (this.life.phase === 'ended') waiter.refused(sessionLost(this.#reason));
    else if (this.#waiting.add(waiter)) this.life.look(waiter.needsOwn);
    else waiter.refused(queueFull(this.#options.template));
    return () => this.#waiting.leave(waiter);
  }

  answers(
    request: ExchangeRequest,
    pin: Binding,
    isStaying: boolean,
    slow: (() => void) | undefined,
  ): Observable<Answer> {
    const { dispatcher, subscriptions } = this.parts;
    if (isStaying) return dispatcher.within(pin.ref, pin.upstream, request, { goesOn: true });
    if (!isTelling(request.method)) return dispatcher.within(pin.ref, pin.upstream, request, { slow });
    this.#told ??= new ClientState({
      dispatcher,
      subscriptions,
      pin: () => (this.life.phase === 'ended' ? undefined : this.#pin),
      changed: (uri, isWanted) => this.#owner.changed(uri, isWanted),
    });
    return this.#told.exchange(request, pin);
  }

  isEjected({ ref }: Binding): boolean {
    return this.#group.pool.ejectionOf(ref) !== undefined;
  }

  leave(pin: Binding): boolean {
    if (pin !== this.#pin) return true; // another call made it move
    if (!this.mayMove || !hasOthers(this.#group, pin.ref)) return false;
    this.#left = pin;
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
    const from = this.#pin?.ref;
    const only = this.#waiting.needsOwn && this.isServed() ? from : undefined;
    const order = { first: this.#first, only, last: from, signal, withinMs: this.settleMs() };
    try {
      const pin = await this.#options.pinning.settle(this.#wish, order);
      if (signal.aborted) {
        await pin.close();
        throw signal.reason;
      }
      this.#take(pin);
    } finally {
      this.#left = undefined; // where nobody else takes it, it stays
    }
  }

  settleMs(): number {
    return this.#pin === undefined ? LIMITS.handshakeMs : this.callTimeoutMs;
  }

  isPinned(): boolean {
    return this.#pin !== undefined;
  }

  isServed(): boolean {
    const pin = this.#pin;
    return pin?.isIntact === true && pin !== this.#left && pin.ref.takes(pin.upstream);
  }

  get mayMove(): boolean {
    return mayMove(this.#policy, this.#unsafeCalls);
  }

  get mayWait(): boolean {
    return this.#pin?.isIntact === true && !hasOthers(this.#group, this.#pin.ref);
  }

  get mayFinish(): boolean {
    return this.#pin?.isIntact === true && this.#owner.isCalling;
  }

  get isListened(): boolean {
    return this.#owner.isListened;
  }

  enter(phase: SessionPhase): void {
    this.life.entered(phase);
    if (phase === 'serving' && this.#pin !== undefined) this.#waiting.tell(this.#pin);
    else if (phase === 'adrift') this.refuse();
    else if (phase === 'finishing') this.#refuse(() => sessionLost('its instance takes nothing new'));
    else if (phase === 'ended') this.#finish();
  }

  fail(why: { readonly error: unknown } | 'late'): void {
    this.#waiting.fail(why === 'late' ? backendTimeout(this.settleMs(), 'no') : asGatewayError(why.error));
  }

  refuse(): void {
    const { parts, template } = this.#options;
    this.#refuse(() => noneHealthy(template, parts.fleet.members(template)));
  }

  // -----------------------------------------------------------------------------------------------------------------

  /** When the gateway stops, that is why, whatever its instances are by then. */
  #refuse(why: () => GatewayError): void {
    this.#waiting.refuse(() => (this.parts.isAccepting() ? why() : shuttingDown()));
  }

  get #group(): SessionGroup {
    return this.parts.fleet.group(this.#options.template);
  }

  get #policy(): BalancerPolicy {
    return this.#group.policy;
  }

  get #wish(): Wish {
    const { template, ownerId, profile } = this.#options;
    const told = this.#told;
    const asksForLog = told?.level !== undefined || this.#waiting.needsOwn;
    const wish = { template, ownerId, profile, asksForLog };
    return told === undefined
      ? wish
      : { ...wish, introduce: (upstream, signal) => told.repeat(upstream, signal) };
  }

  #openAt(ref: SessionInstance): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#first = ref;
    this.#waiting.add({ needsOwn: false, pinned: () => resolve(), refused: reject });
    this.life.wake();
    return promise;
  }

  #take(pin: Binding): void {
    const before = this.#pin;
    this.#pin = pin;
    this.#first = undefined;
    this.#told?.moved(pin);
    this.#owner.moved(pin);
    before?.retire();
  }

  /** Callers are answered first. */
  #finish(): void {
    this.#refuse(() => sessionLost(this.#reason));
    this.#owner.ended(this.#reason);
    this.#told?.forget();
    this.#closing = this.#pin?.close();
  }
}
