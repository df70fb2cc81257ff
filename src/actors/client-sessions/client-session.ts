// One session of a legacy client: its id stays while it goes from one instance to another. It carries its client's calls
// and answers them before it ends. session-binding.ts has its binding, the table its idle time (client-sessions.ts).

import { randomBytes } from 'node:crypto';
import { AsyncSubject, Observable, of } from 'rxjs';
import type { ClientProfile, ServerMessage } from '../../domain/client.ts';
import { sessionLost } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { Ending } from '../../domain/events.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import { TRANSPORT_TRAITS } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isCustomNotice, type Peer } from '../../domain/mcp.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Binder } from './binder.ts';
import { type CallsOwner, type HeldReservation, SessionCalls } from './client-session-calls.ts';
import { Subscribers } from './client-session-subscribers.ts';
import type { Binding, BindingOwner, SessionDeps } from './client-session-types.ts';
import { SessionBinding } from './session-binding.ts';

/** Owns the sessions. */
export interface SessionSupervisor {
  readonly deps: SessionDeps;
  readonly binder: Binder;
  /** A message came, or the session is no longer busy. */
  used(session: ClientSession): void;
  /** It has a binding, the first or another one. */
  bound(session: ClientSession): void;
  ended(session: ClientSession, ending: Ending): void;
}

export interface SessionFields {
  readonly template: string;
  readonly ownerId: string;
  /** Shared by all sessions with an equal profile. */
  readonly profile: ClientProfile;
}

/** Randomness of an id; as base64url it is visible ASCII. */
const ID_BYTES = 32;

export class ClientSession implements BindingOwner, CallsOwner {
  readonly id = randomBytes(ID_BYTES).toString('base64url');
  readonly template: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** For its supervisor: when it was opened and last used, in ms of the gateway's monotonic clock. */
  openedAtMs = 0;
  usedAtMs = 0;
  isParked = false;
  /** For its supervisor: the instance in its last event; undefined before the first one. */
  toldAt: InstanceRef | undefined;
  readonly #supervisor: SessionSupervisor;
  readonly #sessionBinding: SessionBinding;
  readonly #calls: SessionCalls;
  #subscribers: Subscribers | undefined;
  #holds = 0;
  #endReason: string | undefined;
  /** Made for the first observer: a session without one keeps none. */
  #ended$: AsyncSubject<string> | undefined;
  #isClosing = false;

  constructor(supervisor: SessionSupervisor, { template, ownerId, profile }: SessionFields) {
    const { deps, binder } = supervisor;
    this.#supervisor = supervisor;
    this.template = template;
    this.ownerId = ownerId;
    this.profile = profile;
    this.#sessionBinding = new SessionBinding({ deps, binder, template, ownerId, profile }, this);
    this.#calls = new SessionCalls(this.#sessionBinding, this);
  }

  /** Binds it to an instance; for errors see ClientSessions.open. Without a promise when nothing has to be opened there. */
  open(): Promise<void> | undefined {
    return this.#sessionBinding.open();
  }

  /** The backend of its binding; without a binding, of the last one. */
  get peer(): Peer {
    const { binding } = this.#sessionBinding;
    if (binding === undefined) throw new Error('a session has no peer before it is open');
    return binding.peer;
  }
  /** Itself, while it is bound to that instance. See Session of protocol/ports.ts. */
  at(instanceId: string): this | undefined {
    return this.#sessionBinding.binding?.ref.id === instanceId ? this : undefined;
  }
  /** True while its requests travel in the instance's own conversation. */
  get isShared(): boolean {
    return this.#sessionBinding.binding?.upstream === undefined;
  }
  /** The instance of its binding, or of the last one. */
  get instanceId(): string | undefined {
    return this.instance?.id;
  }
  /** The last level of `logging/setLevel`. In the modern era it goes with each request, which is not done here. */
  get logLevel(): string | undefined {
    return this.#sessionBinding.logLevel;
  }

  /**
   * One request; cold. Errors: those of Dispatcher.exchange at one instance; SESSION_NOT_FOUND when the session cannot go on;
   * NO_HEALTHY_INSTANCE when it could, but no instance is healthy, and BACKEND_TIMEOUT when that took too long: the next
   * request tries again.
   */
  exchange(request: ExchangeRequest): Observable<Answer> {
    return this.#calls.exchange(request);
  }

  /** Reserves a place at the instance that gave an answer, for a call that goes on. See Session of protocol/ports.ts. */
  reserve(answer: Answer, lost: (error: GatewayError) => void): HeldReservation {
    return this.#calls.reserve(answer, lost);
  }

  /** Ends the calls that are between two rounds: there will be no next round. */
  dismiss(error: GatewayError): void {
    this.#calls.dismiss(error);
  }

  /** Notifies the backend; dropped without a backend, or where the backend could not tell which client it is from. */
  notify(method: string, params: JsonObject): void {
    if (this.endedFor !== undefined) return;
    this.used();
    const binding = this.#sessionBinding.heardBinding;
    if (binding?.upstream !== undefined) passOn(binding.upstream, method, params);
    else if (binding !== undefined && this.#calls.soleAt(binding)) passOnShared(binding, method, params);
  }

  /** Messages of its backend outside of exchanges. Hot; completes when the session has ended. Beginning to listen is use. */
  get messages$(): Observable<ServerMessage> {
    return new Observable((subscriber) => {
      if (this.endedFor !== undefined) return subscriber.complete();
      this.used();
      this.#subscribers ??= this.#newSubscribers();
      return this.#subscribers.messages$.subscribe(subscriber);
    });
  }

  /** Of what `messages$` listens to; see Session of protocol/ports.ts. */
  get opening(): Promise<void> | undefined {
    return this.#subscribers?.opening;
  }

  /** Keeps it from being parked or expired until the returned function is called. */
  hold(): () => void {
    let isHeld = true;
    this.#holds += 1;
    if (this.endedFor === undefined) this.used();
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      this.rested();
    };
  }

  /** See Session.setAway of protocol/ports.ts. */
  setAway(isAway: boolean): void {
    this.#calls.setAway(isAway);
  }

  /** As `hold`: a call that is carried elsewhere is counted there, where closing waits for it. */
  carry(): () => void {
    return this.hold();
  }

  /** Emits once when it is over, with the reason as a clause; then completes. Replayed. */
  get ended$(): Observable<string> {
    if (this.#endReason !== undefined) return of(this.#endReason);
    this.#ended$ ??= new AsyncSubject();
    return this.#ended$;
  }

  /** Ends it for good. Its callers are answered; resolves when nothing is left at the backend. `reason` is a clause. */
  close(reason = 'it was closed'): Promise<void> {
    this.#isClosing = true;
    this.#sessionBinding.end(reason);
    return this.#sessionBinding.closing;
  }

  // --- for its supervisor ----------------------------------------------------------------------------------------------

  /** None: that is for a session with all templates. */
  get parts(): readonly string[] {
    return [];
  }

  /** Calls under way, including those that are about to go on. */
  get calls(): number {
    return this.#calls.size;
  }

  /** Where it is, or was last. */
  get instance(): InstanceRef | undefined {
    return this.#sessionBinding.binding?.ref;
  }

  /** It may neither be parked nor expire now. */
  get isBusy(): boolean {
    return this.#holds > 0 || this.calls > 0;
  }

  /**
   * Gives up everything that is not needed to go on later. False while the session is busy. An open stream stays open, and
   * does not count as use: its client may be gone.
   */
  park(): boolean {
    if (this.isBusy || !this.#sessionBinding.life.mayRest) return false;
    if (this.#subscribers?.isListening) return true;
    this.#sessionBinding.life.rest();
    this.#calls.rest();
    this.#subscribers = undefined;
    return true;
  }

  // --- for its own parts: see BindingOwner and CallsOwner --------------------------------------------------------------

  get isListened(): boolean {
    return this.#subscribers?.isListening === true;
  }

  get isCalling(): boolean {
    return this.#calls.arePlaced;
  }

  get endedFor(): string | undefined {
    return this.#endReason;
  }

  used(): void {
    this.#sessionBinding.life.wake();
    this.#supervisor.used(this);
  }

  rested(): void {
    this.#sessionBinding.life.rested();
    if (this.endedFor === undefined) this.#supervisor.used(this);
  }

  moved(binding: Binding): void {
    if (this.isListened) this.#subscribers?.attach(binding);
    this.#supervisor.bound(this);
  }

  changed(uri: string, isWanted: boolean): Promise<void> | undefined {
    return this.#subscribers?.wants(uri, isWanted);
  }

  ended(reason: string): void {
    this.#endReason = reason;
    this.#calls.end(sessionLost(reason));
    this.#subscribers?.end();
    this.#ended$?.next(reason);
    this.#ended$?.complete();
    this.#supervisor.ended(this, { reason, isLost: !this.#isClosing });
  }

  // -----------------------------------------------------------------------------------------------------------------

  #newSubscribers(): Subscribers {
    const look = (): void => {
      if (this.isListened) this.#sessionBinding.life.look(false);
    };
    return new Subscribers({
      uris: () => this.#sessionBinding.uris,
      changed: (isListening) => this.#listen(isListening),
      lost: () => this.#supervisor.deps.scheduler.run(look), // all listeners of an instance lose it at the same time
    });
  }

  #listen(isListening: boolean): void {
    const { binding, life } = this.#sessionBinding;
    if (!isListening) {
      this.#subscribers?.detach();
      if (this.isParked) this.park();
    } else if (binding !== undefined) {
      this.#subscribers?.attach(binding);
      if (life.phase === 'adrift') life.look(false);
    }
  }
}

/** Notifications that a backend of the modern era does not need. */
const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/roots/list_changed',
  'notifications/progress',
]);
/** The transport does the handshake, and the subscriber of a call cancels it. */
const NEVER_PASSED_ON: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
]);

/** Notifies the backend in the conversation of that client. */
export function passOn(upstream: Upstream, method: string, params: JsonObject): void {
  if (NEVER_PASSED_ON.has(method)) return;
  if (upstream.peer.era !== 'modern' || !OWN_NOTIFICATIONS.has(method)) upstream.notify(method, params);
}

/**
 * Notifies a program that its clients share: of what the protocol does not know, while the one call of that client is the only
 * one there, so that it cannot be taken for another client's. Messages of the program follow the same rule (correlator.ts).
 */
function passOnShared({ ref }: Binding, method: string, params: JsonObject): void {
  if (isCustomNotice(method) && TRANSPORT_TRAITS[ref.definition.transport].hasProcesses && ref.inFlight === 1)
    ref.notify(method, params);
}
