// One session of a legacy client: its calls, its streams, its end. It keeps its id when it moves to another instance, and answers its
// calls before it ends. client-session.machine.ts has its state, client-sessions.ts its idle time.

import { AsyncSubject, Observable, of, Subject, Subscription } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/calls/exchange.ts';
import { backendUnavailable, callCutOff } from '../../domain/errors/error-catalogue.ts';
import {
  asGatewayError,
  atInstance,
  type GatewayError,
  perhapsDelivered,
} from '../../domain/errors/errors.ts';
import { sessionLost } from '../../domain/errors/session-errors.ts';
import { type Ending, eventOf } from '../../domain/events.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import type { ClientProfile, ServerMessage } from '../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../domain/mcp/jsonrpc.ts';
import { listedAnswers } from '../../domain/mcp/listed-tools.ts';
import { isOfOtherEra, listOf, type Peer, setsClientState } from '../../domain/mcp/mcp.ts';
import { type Linked, LinkedSet } from '../../domain/memory/call-map.ts';
import type { SessionTable } from '../../domain/sessions/session-table.ts';
import type { RecoveredSession, SessionOpening, SessionValue } from '../../domain/sessions/session-value.ts';
import type { FeedClient, ResourceUris } from '../subscriptions/feed.ts';
import type { Binder, SessionDeps } from './binder.ts';
import type { Binding } from './binding.ts';
import type { RestingSession } from './client-session.machine.ts';
import { sessionFingerprint } from './session-fingerprint.ts';
import { SessionRef } from './session-ref.ts';
import { SessionRoute } from './session-route.ts';
import type { BoundSession } from './session-supervisor.ts';

type NoticedClient = Pick<Peer, 'capabilities'> & Pick<ClientSession, 'ownerId'>;

/** The lists of a template in memory, for its sessions: CachedLists in src/protocol. */
export interface SessionLists {
  /** One list request of a session that shares the instance's own conversation, from memory or by `load`. */
  exchangeIn(
    session: Pick<ClientSession, 'profile' | 'ownerId' | 'peer'>,
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer>;
  /** The messages, with notices of changed lists as far as this backend announces them, and those for this owner alone. */
  withNotices(messages$: Observable<ServerMessage>, client: NoticedClient): Observable<ServerMessage>;
}

/** `lists`: without them the backend answers all list requests. */
export interface SessionOptions extends SessionOpening {
  readonly lists?: SessionLists | undefined;
}

interface Reserved extends Linked {
  /** There will be no next round. */
  readonly end: (error: GatewayError) => void;
}

/** A session as the endpoint uses it (McpSession), and as its table and its parts see it. */
export class ClientSession implements BoundSession, FeedClient<ServerMessage> {
  readonly id: string;
  /** For its table: when it was opened and last used, in ms of the gateway's monotonic clock. */
  openedAtMs = 0;
  usedAtMs = 0;
  isParked = false;
  recovered: RecoveredSession | undefined;
  readonly #table: SessionTable;
  readonly #deps: SessionDeps;
  readonly #lists: SessionLists | undefined;
  readonly #ref: SessionRef;
  readonly #calls = new LinkedSet<SessionRoute>();
  // A session at rest consists of few objects: these three are made at their first use.
  #reservations: LinkedSet<Reserved> | undefined;
  /** Observed by the event streams of the client. */
  #messages: Subject<ServerMessage> | undefined;
  #ended: AsyncSubject<string> | undefined;
  #isAway = false;
  /** The subscription at its binding, as long as `messages$` is observed. */
  #listening: Subscription | undefined;
  #holds = 0;

  /** `value`: sessions with equal profiles may share one. TEMPLATE_NOT_FOUND. */
  constructor(table: SessionTable, binder: Binder, id: string, value: SessionValue, options: SessionOptions) {
    this.id = id;
    this.#table = table;
    this.#deps = binder.deps;
    this.#lists = options.lists;
    this.#ref = new SessionRef(table, binder, this, value, options);
  }

  /** Binds a new session to an instance; for errors see ClientSessions.open. */
  async open(): Promise<void> {
    await this.#ref.open();
  }

  /** For a session that was read again, and is kept with that value. */
  recoverAs(generation: number): void {
    this.recovered = { value: this.value, generation };
    this.#ref.recover();
  }

  /** What the session is, in every state: it can be written, and made again from it (ClientSessions.recoverFrom). */
  get value(): SessionValue {
    return this.#ref.value;
  }
  get template(): string {
    return this.value.template;
  }
  get ownerId(): string {
    return this.value.ownerId;
  }
  get profile(): ClientProfile {
    return this.value.profile;
  }
  get questionMs(): number {
    return this.#ref.questionMs;
  }
  get #greeted(): NonNullable<SessionValue['greeted']> {
    const { greeted } = this.value;
    if (greeted === undefined) throw new Error('a session has no backend before it is open');
    return greeted;
  }
  /** The backend of the present or last binding; in a session that was read again the one of its handshake. */
  get peer(): Peer {
    return this.#ref.binding?.peer ?? { ...this.#greeted, greeting: {} };
  }
  /** The instance of the present or last binding. */
  get instance(): Pick<InstanceDefinition, 'template' | 'id' | 'serverId'> {
    const { template, binding } = this.value;
    if (binding === undefined) throw new Error('a session has no instance before it is open');
    return { template, id: binding.instanceId, serverId: binding.serverId };
  }
  /** The fields of its events; no id of a session, which is a credential. */
  get eventFields() {
    const { id, ownerId, instance } = this;
    return { ...eventOf(this.#deps, instance), session: sessionFingerprint(id), principal: ownerId };
  }
  get instanceId(): string | undefined {
    return this.value.binding?.instanceId;
  }
  isAt(instanceId: string): boolean {
    return this.instanceId === instanceId;
  }
  get isRecoverable(): boolean {
    return this.#ref.isRecoverable;
  }
  get isShared(): boolean {
    return this.value.binding?.isShared === true;
  }
  /** The last level of `logging/setLevel`, which legacy-over-modern.ts adds to each request to a modern backend. */
  get logLevel(): string | undefined {
    return this.value.logLevel;
  }

  /** Emits the reason, a clause, once when the session is over, then completes. Replayed. */
  get ended$(): Observable<string> {
    const { endReason } = this.value;
    if (endReason !== undefined) return of(endReason);
    this.#ended ??= new AsyncSubject();
    return this.#ended;
  }

  /**
   * See McpSession of protocol/ports.ts. Also errors with NO_HEALTHY_INSTANCE when the session could continue but no instance is
   * healthy, and with BACKEND_TIMEOUT when binding took too long: the next request tries again.
   */
  exchange(request: ExchangeRequest): Observable<Answer> {
    const { method } = request;
    if (isOfOtherEra(method, this.peer.era) && !setsClientState(method)) {
      const { id: instanceId, serverId } = this.instance;
      return of({ event: { kind: 'error', error: METHOD_NOT_FOUND }, instanceId, serverId });
    }
    const { binding } = this.#ref;
    const isListed = listOf(method) !== undefined && binding !== undefined && binding.upstream === undefined;
    const next = () => this.#nextRound(request);
    const answers$ = (isListed && this.#lists?.exchangeIn(this, request, next)) || next();
    return listedAnswers(this.template, request, answers$, this.#deps.scheduler);
  }

  /** See McpSession of protocol/ports.ts. The conversation of the call is kept open meanwhile. */
  reserve({ event }: Answer, lost: (error: GatewayError) => void) {
    // By the event, not by the id of the instance, which a successor may have, too.
    const route = this.#calls.values().find(({ lastEvent }) => lastEvent === event);
    const binding = route?.binding; // without one the call continues at the binding of the session
    const watching = new Subscription();
    this.#reservations ??= new LinkedSet();
    const reservations = this.#reservations;
    const leave = (): void => {
      if (!reservations.delete(reserved)) return;
      watching.unsubscribe();
      binding?.release();
      this.callEnded();
    };
    const end = (error: GatewayError): void => {
      if (!reservations.has(reserved)) return;
      lost(binding?.isIntact === false ? conversationLost(binding) : error);
      leave(); // afterwards: callers are answered before their session ends
    };
    const reserved: Reserved = { end };
    reservations.add(reserved);
    if (binding !== undefined) {
      binding.take();
      const isContinuation = route?.reservation === binding;
      const { mayMove: couldMove } = this.#ref;
      const complete = () => {
        const { binding: present, mayMove } = this.#ref;
        if (!couldMove || (present === binding && !mayMove)) end(conversationLost(binding)); // it can continue nowhere else
      };
      const error = (thrown: unknown) => end(asGatewayError(thrown));
      const reservation$ = binding.ref.reserve(this.ownerId, isContinuation, binding.upstream);
      watching.add(reservation$.subscribe({ complete, error }));
    }
    return { exchange: (request: ExchangeRequest) => this.#nextRound(request, binding), leave };
  }

  /** Ends the calls that are between two rounds: there will be no next round. */
  dismiss(error: GatewayError): void {
    for (const { end } of this.#reservations?.values() ?? []) end(perhapsDelivered(error));
  }

  /** See McpSession of protocol/ports.ts. */
  notify(method: string, params: JsonObject): void {
    if (this.#isOver) return;
    this.#table.used(this); // needs no actor
    const { binding } = this.#ref;
    const isOnlyCall = this.#calls.size === 1 && this.#calls.first?.binding === binding;
    binding?.notify(method, params, this.ownerId, isOnlyCall);
  }

  /** Messages of the backend outside of exchanges. Hot; completes when the session has ended. Subscribing counts as use. */
  get messages$(): Observable<ServerMessage> {
    const messages$ = new Observable<ServerMessage>((subscriber) => {
      if (this.#isOver) return subscriber.complete();
      this.used();
      const isFirst = !this.isListened;
      this.#messages ??= new Subject();
      this.#messages.subscribe(subscriber);
      const { binding, isUnbound, isListened } = this.#ref;
      if (isFirst && binding !== undefined) this.#listenAt(binding);
      if (isFirst && isUnbound && isListened) this.#ref.requestBinding(false);
      return () => {
        if (this.isListened) return;
        this.#listening?.unsubscribe();
        if (this.isParked) this.park();
      };
    });
    return this.#lists?.withNotices(messages$, { ...this.#greeted, ownerId: this.ownerId }) ?? messages$;
  }

  /** See McpSession of protocol/ports.ts. */
  get opening(): Promise<void> | undefined {
    return this.isListened ? this.#ref.binding?.opening : undefined;
  }

  hold(): () => void {
    this.#holds += 1;
    if (!this.#isOver) this.used();
    return () => {
      this.#holds -= 1;
      this.callEnded();
    };
  }

  /** While the client is away, its calls end as soon as other calls wait for their capacity. */
  setAway(isAway: boolean): void {
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    const { queue } = this.#ref;
    for (const route of this.#calls.values()) {
      if (!isAway) queue.withdraw(route);
      else if (this.#calls.has(route)) queue.offer(route); // the end of one call may have ended others
    }
  }

  /** See McpSession of protocol/ports.ts. */
  keep(): Promise<boolean> | undefined {
    return this.#ref.keep();
  }

  /** Ends the session. Its callers are answered; resolves when nothing is left at the backend. `reason` is a clause. */
  close(reason = 'it was closed'): Promise<void> {
    return this.#ref.end(reason);
  }

  // --- for its table ---------------------------------------------------------------------------------------------------

  /** A stream of the client holds the session; `messages$` is also observed without one. */
  get isStreaming(): boolean {
    return this.#holds > 0;
  }

  /** Calls under way, including those between two rounds. */
  get calls(): number {
    return this.#calls.size + this.#reserved;
  }

  /**
   * Ends the actor. False while the session is busy: then it may not expire either. A subscription to `messages$` continues, with
   * the actor, and does not count as use: its client may be gone.
   */
  park(): boolean {
    if (this.#holds > 0 || this.calls > 0) return false;
    if (!this.isListened) this.#ref.park();
    return true;
  }

  // --- for its own parts: see BoundSession and FeedClient --------------------------------------------------------------

  get awaySinceMs(): number | undefined {
    return this.isParked ? this.usedAtMs : undefined;
  }

  get isListened(): boolean {
    return this.#messages?.observed === true;
  }

  get isCalling(): boolean {
    return this.#reserved > 0 || this.#calls.values().some(({ binding }) => binding !== undefined);
  }

  used(): void {
    this.#ref.wake();
    this.#table.used(this);
  }

  callEnded(): void {
    this.#ref.callEnded();
    if (!this.#isOver) this.#table.used(this);
  }

  moved(binding: Binding, { session: { binding: last }, binding: before }: RestingSession): void {
    if (this.isListened) this.#listenAt(binding);
    if (last === undefined) return;
    const isSame = before === undefined ? last.serverId === binding.ref.serverId : before.ref === binding.ref;
    if (isSame) return;
    const from = { fromInstanceId: last.instanceId, fromServerId: last.serverId };
    this.#deps.emit({ type: 'session.moved', ...this.eventFields, ...from });
  }

  get uris(): ResourceUris {
    return this.#ref.uris;
  }

  deliver(message: ServerMessage): void {
    this.#messages?.next(message);
  }

  ended({ reason, isLost }: Ending): void {
    // A client that initializes again would be refused: it gets the same error as callers without a session.
    const error = this.#deps.isAccepting() ? sessionLost(reason) : callCutOff('no');
    for (const route of this.#calls.values()) route.refuse(error);
    this.dismiss(error);
    this.#messages?.complete();
    this.#ended?.next(reason);
    this.#ended?.complete();
    this.#table.remove(this, reason, isLost);
  }

  // -----------------------------------------------------------------------------------------------------------------

  /** Calls between two rounds. */
  get #reserved(): number {
    return this.#reservations?.size ?? 0;
  }

  get #isOver(): boolean {
    return this.value.endReason !== undefined;
  }

  /** `reservation` as in SessionRoute. */
  #nextRound(request: ExchangeRequest, reservation?: Binding): Observable<Answer> {
    return new Observable((subscriber) => {
      const { endReason } = this.value;
      if (endReason !== undefined) return subscriber.error(sessionLost(endReason));
      this.used();
      const ref = this.#ref;
      const route = new SessionRoute(ref, request, reservation);
      this.#calls.add(route);
      ref.carry(request, route).subscribe(subscriber);
      // Added last, because the teardown of the call must run first.
      subscriber.add(() => {
        if (this.#isAway) ref.queue.withdraw(route);
        this.#calls.delete(route);
        this.callEnded();
      });
    });
  }

  /** Gets the messages of a shared conversation in tasks: thousands of sessions may get the same one. */
  get #sharing(): FeedClient<ServerMessage> {
    const { run } = this.#deps.scheduler;
    const session = this;
    return {
      get uris() {
        return session.uris;
      },
      deliver: (message) => run(() => session.deliver(message)),
    };
  }

  /** Listens at this binding instead of the previous one. */
  #listenAt(binding: Binding): void {
    this.#listening?.unsubscribe();
    const subscription = new Subscription();
    this.#listening = subscription;
    subscription.add(binding.listen(binding.feed === undefined ? this : this.#sharing));
    const rebind = () => this.isListened && this.#ref.requestBinding(false);
    // Deferred, because all listeners of an instance lose it at the same time.
    const check = (): void => {
      if (isGone(binding) && !binding.isReplaced) this.#deps.scheduler.run(rebind);
    };
    subscription.add(binding.ref.watch(check));
    subscription.add(binding.upstream?.closed$.subscribe(check));
  }
}

/** The error of a call between two rounds, equal to that of a call that was under way at the binding. */
function conversationLost({ ref }: Binding): GatewayError {
  const reason = 'its conversation was lost before the call continued';
  return atInstance(backendUnavailable(reason, { delivered: 'unknown' }), ref.id);
}

/** Not that of an unhealthy instance, which may become healthy again with the same conversation. */
function isGone({ isIntact, ref: { state } }: Binding): boolean {
  return !isIntact || state === 'draining' || state === 'stopped';
}
