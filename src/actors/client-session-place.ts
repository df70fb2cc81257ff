// Where a session stands: its pin, what its client told its backend, who waits for it to have a pin, and whether it may go
// on elsewhere. It does what its machine (client-session.machine.ts) has it do. The actor is there while the session is in
// use; without it the fields stay, which is all that is needed to go on.

import type { Observable } from 'rxjs';
import { createActor } from 'xstate';
import {
  asGatewayError,
  backendTimeout,
  type GatewayError,
  noHealthyInstance,
  queueFull,
} from '../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import { LIMITS } from '../domain/limits.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import { sessionLost } from '../domain/session-errors.ts';
import {
  type ClientSessionActor,
  type ClientSessionEvent,
  clientSessionMachine,
  type SessionDuties,
  type SessionPhase,
} from './client-session.machine.ts';
import type { CallHost } from './client-session-call.ts';
import type { Pin, PlaceOwner, SessionInstance, SessionParts, Uris, Waiter } from './client-session-parts.ts';
import { hasOthers, type Pinning, type Wish } from './client-session-pin.ts';
import { isTelling, Told } from './client-session-told.ts';
import { Waiting } from './client-session-waiting.ts';
import { whyNobody } from './why-nobody.ts';

export interface PlaceOptions extends Pick<Wish, 'template' | 'ownerId' | 'profile'> {
  readonly parts: SessionParts;
  readonly pinning: Pinning;
}

const NONE: Uris = { has: () => false, keys: () => [] };

export class Place implements SessionDuties, CallHost {
  readonly #options: PlaceOptions;
  readonly #owner: PlaceOwner;
  #actor: ClientSessionActor | undefined;
  #phase: SessionPhase = 'opening';
  #pin: Pin | undefined;
  /** Chosen for the opening. */
  #first: SessionInstance | undefined;
  #told: Told | undefined;
  readonly #waiting = new Waiting();
  /** Why it did not get on, until it is told. */
  #failure: GatewayError | undefined;
  #unsafeCalls = 0;
  #reason = 'its instance is gone';
  #closing: Promise<void> | undefined;

  constructor(options: PlaceOptions, owner: PlaceOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  get parts(): SessionParts {
    return this.#options.parts;
  }
  get pin(): Pin | undefined {
    return this.#pin;
  }
  get phase(): SessionPhase {
    return this.#phase;
  }
  get usablePin(): Pin | undefined {
    return this.#phase === 'serving' && this.isServed() ? this.#pin : undefined;
  }
  /** The pin that its client may say something to without asking anything new. */
  get heardPin(): Pin | undefined {
    return this.#phase === 'finishing' && this.#pin?.isIntact ? this.#pin : this.usablePin;
  }
  get mayUpgrade(): boolean {
    return this.#policy.session !== 'shared';
  }
  get logLevel(): string | undefined {
    return this.#told?.level;
  }
  get uris(): Uris {
    return this.#told?.uris ?? NONE;
  }
  /** True while there is an actor, and it waits for nothing. */
  get mayRest(): boolean {
    return this.#actor !== undefined && (this.#phase === 'serving' || this.#phase === 'adrift');
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
    this.wake();
    return undefined;
  }

  /** Has an actor again. */
  wake(): void {
    if (this.#actor !== undefined || this.#phase === 'ended') return;
    const actor = createActor(clientSessionMachine, { input: this });
    this.#actor = actor; // before it starts: it may end in there
    actor.start();
  }

  /** Goes on without an actor. */
  rest(): void {
    this.#actor?.stop();
    this.#actor = undefined;
  }

  wait(waiter: Waiter): () => void {
    if (this.#phase === 'ended') waiter.refused(sessionLost(this.#reason));
    else if (this.#waiting.add(waiter)) this.look(waiter.needsOwn);
    else waiter.refused(queueFull(this.#options.template));
    return () => this.#waiting.leave(waiter);
  }

  /** Somebody met a pin that may not be used, or there is none, or only one of the session's own would do. */
  look(needsOwn = false): void {
    this.wake();
    if (this.#phase === 'adrift') this.#send({ type: 'wanted' });
    else if (this.#phase === 'serving') {
      this.#send({ type: needsOwn && this.isServed() ? 'upgrade' : 'lost' });
    } else this.rested();
  }

  /** A call has ended. One that was left to finish may have been the last. */
  rested(): void {
    if (this.#phase === 'finishing') this.#send({ type: 'rested' });
  }

  /** `reason` is a clause. */
  end(reason: string): void {
    if (this.#phase === 'ended') return;
    this.#reason = reason;
    if (this.#actor === undefined) this.enter('ended');
    else this.#send({ type: 'end' });
  }

  answers(request: ExchangeRequest, pin: Pin, isStaying: boolean): Observable<Answer> {
    const { dispatcher, subscriptions } = this.parts;
    if (isStaying) return dispatcher.within(pin.ref, pin.upstream, request, { evenDraining: true });
    if (!isTelling(request.method)) return dispatcher.within(pin.ref, pin.upstream, request);
    this.#told ??= new Told({
      dispatcher,
      subscriptions,
      pin: () => (this.#phase === 'ended' ? undefined : this.#pin),
      changed: (uri, isWanted) => this.#owner.changed(uri, isWanted),
    });
    return this.#told.exchange(request, pin);
  }

  countUnsafe(difference: 1 | -1): void {
    this.#unsafeCalls += difference;
  }

  // --- what the machine asks for -----------------------------------------------------------------------------------

  async settle(signal: AbortSignal): Promise<void> {
    const from = this.#pin?.ref;
    const only = this.#waiting.needsOwn && this.isServed() ? from : undefined;
    const order = { first: this.#first, only, last: from, signal };
    const pin = await this.#options.pinning.settle(this.#wish, order);
    if (signal.aborted) {
      await pin.close();
      throw signal.reason;
    }
    this.#take(pin);
  }

  settleMs(): number {
    return this.#pin === undefined ? LIMITS.handshakeMs : this.#policy.callTimeoutMs;
  }

  isPinned(): boolean {
    return this.#pin !== undefined;
  }

  isServed(): boolean {
    return this.#pin !== undefined && this.#pin.ref.state === 'healthy' && this.#pin.isIntact;
  }

  get mayMove(): boolean {
    const { sessionFailover } = this.#policy;
    return sessionFailover === 'always' || (sessionFailover === 'auto' && this.#unsafeCalls === 0);
  }

  get mayWait(): boolean {
    const { parts, template } = this.#options;
    return this.#pin?.isIntact === true && !hasOthers(parts.fleet.group(template), this.#pin.ref);
  }

  get mayFinish(): boolean {
    return this.#pin?.isIntact === true && this.#owner.isCalling;
  }

  get isListened(): boolean {
    return this.#owner.isListened;
  }

  enter(phase: SessionPhase): void {
    this.#phase = phase;
    if (phase === 'serving' && this.#pin !== undefined) this.#waiting.tell(this.#pin, this.#takeFailure());
    else if (phase === 'adrift') this.refuse();
    else if (phase === 'finishing') this.#waiting.refuse(() => sessionLost('its instance is drained'));
    else if (phase === 'ended') this.#finish();
  }

  fail(why: { readonly error: unknown } | 'late'): void {
    this.#failure = why === 'late' ? backendTimeout(this.settleMs(), 'no') : asGatewayError(why.error);
  }

  refuse(): void {
    const { parts, template } = this.#options;
    const nobody = () => noHealthyInstance(template, whyNobody(parts.fleet.members(template)));
    const failure = this.#takeFailure();
    this.#waiting.refuse(() => failure ?? nobody());
  }

  // -----------------------------------------------------------------------------------------------------------------

  get #policy(): BalancerPolicy {
    return this.parts.fleet.group(this.#options.template).policy;
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
    this.wake();
    return promise;
  }

  #send(event: ClientSessionEvent): void {
    this.#actor?.send(event);
  }

  #take(pin: Pin): void {
    const before = this.#pin;
    this.#pin = pin;
    this.#first = undefined;
    this.#told?.moved(pin);
    this.#owner.moved(pin);
    before?.retire();
  }

  #takeFailure(): GatewayError | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }

  /** Callers are answered first. */
  #finish(): void {
    const failure = this.#takeFailure();
    this.#waiting.refuse(() => failure ?? sessionLost(this.#reason));
    this.#owner.ended(this.#reason);
    this.#told?.forget();
    this.#closing = this.#pin?.close();
    this.#actor = undefined;
  }
}
