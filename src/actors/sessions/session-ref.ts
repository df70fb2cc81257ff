// The handle of the actor of a session, with what belongs to its state but is not a value: the requests that wait for a binding, and the
// client's part in shared subscriptions. A session without requests has no actor: before the first one, and while it is parked. The states are
// in client-session.machine.ts.

import { firstValueFrom, Observable, type Subscriber } from 'rxjs';
import { Actor, createActor } from 'xstate';
import { timeoutFor } from '../../balancing/policy.ts';
import type { Answer, ExchangeRequest } from '../../domain/calls/exchange.ts';
import { queueFull } from '../../domain/errors/error-catalogue.ts';
import { type Delivered, type GatewayError, shuttingDown } from '../../domain/errors/errors.ts';
import { sessionLost } from '../../domain/errors/session-errors.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import { setsClientState } from '../../domain/mcp/mcp.ts';
import type { KeptRow, SessionTable } from '../../domain/sessions/session-table.ts';
import { type SessionOpening, type SessionValue, TAKEN_OVER } from '../../domain/sessions/session-value.ts';
import type { AttemptPlan, CallRoute, LocalAnswer } from '../calls/routes.ts';
import type { Group } from '../group.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import type { ResourceUris } from '../subscriptions/feed.ts';
import { SESSION_ACTOR_ID } from '../template.machine.ts';
import type { Binder, SessionDeps, SessionNeeds } from './binder.ts';
import type { Binding } from './binding.ts';
import {
  bindTimeoutMs,
  boundTo,
  type ClientSessionActor,
  type ClientSessionContext,
  type ClientSessionEmission,
  type ClientSessionEvent,
  clientSessionMachine,
  endedBy,
  hasOthers,
  isReturning,
  isServed,
  mayMove,
  type RestingSession,
  type SessionHost,
} from './client-session.machine.ts';
import { ClientState } from './client-state.ts';
import { needsMark, outlivesNode } from './session-recovery.ts';
import type { BoundSession } from './session-supervisor.ts';

interface Waiter {
  readonly needsDedicated: boolean;
  readonly subscriber: Subscriber<Binding>;
}

/** Shared by all sessions at rest. */
const NO_WAITERS: readonly Waiter[] = Object.freeze([]);
const NO_URIS: ResourceUris = { has: () => false, keys: () => [] };
const NO_NEW_CALLS = 'its instance takes no new calls';

/** Owned by its ClientSession. Makes the actor with the first request that needs one, and ends it with `park`. */
export class SessionRef implements SessionHost {
  readonly group: Group;
  /** See SessionHost. */
  readonly isPart: boolean;
  readonly #wholeMark: SessionOpening['mark'];
  /** The session, or the session of which it is a part, was recovered. */
  #isRecovered: boolean;
  readonly #table: SessionTable;
  readonly #binder: Binder;
  readonly #session: BoundSession;
  /** The state of the session: that of its actor, or what remains of it while it has none. */
  #state: ClientSessionActor | RestingSession;
  #clientState: ClientState | undefined;
  #waiting: readonly Waiter[] = NO_WAITERS;
  /** The instance where the search for the first binding begins. Default: the strategy chooses. */
  #first: InstanceRef | undefined;
  /** The row of the session, once it is kept. */
  #row: KeptRow | undefined;

  /** TEMPLATE_NOT_FOUND. */
  constructor(
    table: SessionTable,
    binder: Binder,
    session: BoundSession,
    value: SessionValue,
    opening: SessionOpening,
  ) {
    this.#table = table;
    this.#binder = binder;
    this.#session = session;
    this.isPart = opening.isPart === true;
    this.#wholeMark = opening.mark;
    this.#isRecovered = opening.isRecovered === true;
    this.#state = { session: value, binding: undefined };
    this.group = binder.deps.fleet.hold(value.template);
  }

  get deps(): SessionDeps {
    return this.#binder.deps;
  }
  /** What the session is. */
  get value(): SessionValue {
    return this.resting.session;
  }
  get isUnbound(): boolean {
    return this.#isIn('unbound');
  }
  /** The present binding, or the last one. */
  get binding(): Binding | undefined {
    return this.resting.binding;
  }
  get usableBinding(): Binding | undefined {
    return this.#isIn('serving') && isServed(this.#context) ? this.#context.binding : undefined;
  }
  get mayMove(): boolean {
    return mayMove({ session: this.value, host: this });
  }
  /** False when the template demands that clients share a conversation. */
  get mayUpgrade(): boolean {
    return this.group.policy.session !== 'shared';
  }
  /** Ten minutes, or as long as a call may take. Source: ADR 112. */
  get questionMs(): number {
    const { maxCallMs = 0 } = this.deps;
    const longestMs = Math.max(LIMITS.callMaximumMs, maxCallMs, timeoutFor(this.group.policy));
    return Math.min(longestMs, LIMITS.callLongestMs);
  }
  /** The queue of the template, where calls of an absent client offer their capacity. */
  get queue(): Group['queue'] {
    return this.group.queue;
  }
  get uris(): ResourceUris {
    return this.value.uris.length === 0 ? NO_URIS : this.#client.uris;
  }

  /** Binds a new session to a first instance: at once if nothing has to be opened there, else as the machine finds it. */
  async open(): Promise<void> {
    const first = this.#binder.choose(this.value.template, this.value.ownerId);
    if (this.#bindAt(first)) return; // no actor before its first request
    this.#first = first;
    await firstValueFrom(this.untilBound(false));
  }

  /**
   * Prepares a session that was read: it prefers the instance that it had. Where it shared a conversation it has lost nothing and
   * is bound again; elsewhere its next request decides, as after the loss of a conversation.
   */
  recover(): void {
    this.#isRecovered = true;
    this.#row = this.#table.keep(this, true);
    const { instanceId = '', serverId, isShared } = this.value.binding ?? {};
    const instance = this.group.instances.get(instanceId);
    const first = instance instanceof InstanceRef && instance.serverId === serverId ? instance : undefined;
    if (first?.state === 'healthy' && !(isShared && this.#bindAt(first))) this.#first = first;
  }

  /** Cold: emits the next usable binding, once. `needsDedicated`: a dedicated conversation is required. */
  untilBound(needsDedicated: boolean): Observable<Binding> {
    return new Observable((subscriber) => {
      const { template, endReason } = this.value;
      if (!this.deps.isAccepting()) return subscriber.error(shuttingDown());
      if (endReason !== undefined) return subscriber.error(sessionLost(endReason));
      if (this.#waiting.length >= LIMITS.queuedPerInstance) return subscriber.error(queueFull(template));
      const waiter = { needsDedicated, subscriber };
      this.#waiting = [...this.#waiting, waiter];
      this.requestBinding(needsDedicated);
      return () => {
        this.#waiting = this.#waiting.filter((each) => each !== waiter);
      };
    });
  }

  carry(request: ExchangeRequest, route: CallRoute): Observable<Answer> {
    return this.deps.dispatcher.carry(this.value.template, request, () => {
      const { group } = this;
      return { group, request, route, wantedTool: group.approvedTool(request) };
    });
  }

  /** For requests of `setsClientState`; undefined for others. */
  statePlan(request: ExchangeRequest, binding: Binding): AttemptPlan | LocalAnswer | undefined {
    return setsClientState(request.method) ? this.#client.plan(request, binding) : undefined;
  }

  /** True when the pool gives the instance no calls because other calls failed there. */
  isEjected({ ref }: Binding): boolean {
    return this.group.pool.outliers.ejectionOf(ref) !== undefined;
  }

  /**
   * Cold: a binding at none of these instances, for one call that is silent at this binding; the session stays here. Unsubscribing
   * ends the search. Undefined when the session may not move, when it will because the pool avoids its instance, or without another
   * instance. Source: ADR 103.
   */
  findHedge(at: Binding, without: ReadonlySet<string>): Observable<Binding> | undefined {
    const isOwnProcess = at.upstream !== undefined && !isNetworked(at.ref.definition);
    if (isOwnProcess || !this.mayMove || this.isEjected(at)) return undefined;
    if (this.group.pool.candidates.every(({ id }) => without.has(id))) return undefined;
    const needs = { ...this.#needs, asksForLog: false, repeatState: undefined };
    const options = { without, last: at.ref, withinMs: timeoutFor(this.group.policy) };
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
    if (binding !== this.binding) return true; // another call made it move
    if (!this.mayMove || !hasOthers({ host: this }, binding.ref)) return false;
    this.send({ type: 'abandoned' });
    return true;
  }

  /** Notes a call that is not safe to repeat; see ClientSessionEvent. After the first one that arrived there is nothing to note. */
  noteUnsafe(delivered: Delivered): void {
    if (this.value.unsafe !== 'yes') this.send({ type: 'unsafe', delivered });
  }

  /**
   * The mark of the session, or of the whole of which it is a part, as long as the first call there that needs it has to wait. A session
   * that shares a backend over a network loses nothing there.
   */
  missingMarkAt({ ref, isShared }: Binding): SessionOpening['mark'] {
    const mark = this.#wholeMark ?? this.#row;
    const isNeeded = mark?.isUnmarked === true && needsMark(this.group.policy, this.isPart);
    return isNeeded && !(isShared && isNetworked(ref.definition)) ? mark : undefined;
  }

  /** See McpSession of protocol/ports.ts. */
  keep(): Promise<boolean> | undefined {
    if (this.value.endReason === undefined) this.#row ??= this.#table.keep(this);
    return this.#row?.save();
  }

  /** See SessionRecord. */
  get isRecoverable(): boolean {
    return this.#row?.isStored === true && outlivesNode(this.value, this.group);
  }

  get id(): string {
    return this.#session.id;
  }

  takenOver(): void {
    void this.end(TAKEN_OVER);
  }

  wake(): void {
    if (this.#state instanceof Actor || this.value.endReason !== undefined) return;
    const actor = createActor(clientSessionMachine, {
      id: SESSION_ACTOR_ID,
      parent: this.deps.fleet.root,
      input: this,
    });
    actor.on('*', this.#follow.bind(this)); // one listener: each kind would take a set of its own
    this.#state = actor; // before it starts: it may end synchronously
    actor.start();
  }

  /** Ends the actor; the session remains. */
  park(): void {
    this.send({ type: 'park' });
    this.#rest();
  }

  /** A request found no usable binding, or needs a dedicated conversation. */
  requestBinding(needsDedicated: boolean): void {
    this.wake();
    if (this.isUnbound) this.send({ type: 'requested' });
    else if (this.#isIn('serving'))
      this.send({ type: needsDedicated && isServed(this.#context) ? 'upgrade' : 'lost' });
    else this.callEnded();
  }

  /** A call has ended, perhaps the last one of a finishing session. */
  callEnded(): void {
    if (this.#isIn('finishing')) this.send({ type: 'callEnded' });
  }

  /** Ends the session. `reason` is a clause; the first one counts. Resolves when nothing is left of a dedicated conversation. */
  async end(reason: string): Promise<void> {
    const state = this.#state;
    if (state instanceof Actor) state.send({ type: 'end', reason });
    else if (state.session.endReason === undefined) {
      this.#state = { ...state, session: endedBy(state.session, reason) };
      this.#ended(false, undefined);
    }
    await this.binding?.close();
  }

  /** To its actor, while it has one. */
  send(event: ClientSessionEvent): void {
    if (!(this.#state instanceof Actor)) return;
    this.#state.send(event);
    this.#row?.changed();
  }

  // --- for the machine ------------------------------------------------------------------------------------------------

  get resting(): RestingSession {
    return this.#state instanceof Actor ? this.#state.getSnapshot().context : this.#state;
  }

  now(): number {
    return this.deps.now();
  }

  find(signal: AbortSignal): Promise<Binding> {
    const context = this.#context;
    const from = context.binding?.ref;
    const only = (this.#needsDedicated && isServed(context)) || isReturning(context) ? from : undefined;
    const [withinMs, isRecovered] = [bindTimeoutMs(context), this.#isRecovered];
    const options = { first: this.#first, only, last: from, withinMs, isRecovered };
    return this.#binder.findBinding(this.#needs, options, signal);
  }

  get isListened(): boolean {
    const { binding, uris } = this.value;
    // One that was read again opens a dedicated conversation with its next request: many clients reopen streams at once.
    const isNeeded = this.binding !== undefined || binding?.isShared === true || uris.length > 0;
    return this.#session.isListened && isNeeded;
  }

  get isCalling(): boolean {
    return this.#session.isCalling;
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  // -----------------------------------------------------------------------------------------------------------------

  get #context(): ClientSessionContext {
    if (this.#state instanceof Actor) return this.#state.getSnapshot().context;
    throw new Error('a session without an actor has no context');
  }

  #follow(emission: ClientSessionEmission): void {
    if (emission.type === 'bound') this.#bound(emission.from);
    else if (emission.type === 'serving') this.#resume(emission.binding, emission.failure);
    else if (emission.type === 'refused')
      this.#refuse(emission.failure, () =>
        emission.why === 'finishing' ? sessionLost(NO_NEW_CALLS) : this.group.noneHealthy(),
      );
    else this.#ended(emission.isLost, emission.failure);
  }

  #isIn(state: 'serving' | 'unbound' | 'finishing'): boolean {
    return this.#state instanceof Actor && this.#state.getSnapshot().value === state;
  }

  #rest(): void {
    const { session, binding } = this.resting;
    this.#state = { session, binding };
  }

  /** Binds a session without an actor, if nothing has to be opened for it. */
  #bindAt(ref: InstanceRef | undefined): boolean {
    const binding = ref && this.#binder.at(ref, this.#needs);
    if (binding === undefined) return false;
    const from = this.resting;
    this.#state = boundTo(from, binding);
    this.#bound(from);
    return true;
  }

  #bound(from: RestingSession): void {
    const { binding } = this;
    if (binding === undefined) return;
    this.#first = undefined;
    if (this.value.uris.length > 0) this.#client.moved(binding);
    this.#session.moved(binding, from);
    this.#row?.changed();
    from.binding?.retire();
  }

  /**
   * Resumes the requests; those that need a dedicated conversation are refused if opening one has failed. In a microtask: no call
   * runs inside of the mailbox, so that what it reports is in force at once.
   */
  #resume(binding: Binding, failure: GatewayError | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = NO_WAITERS;
    if (waiting.length === 0) return;
    queueMicrotask(() => {
      for (const { needsDedicated, subscriber } of waiting) {
        if (failure !== undefined && needsDedicated) subscriber.error(failure);
        else subscriber.next(binding);
      }
    });
  }

  /** Without a failure `why` is the error. While the gateway closes, that is SHUTTING_DOWN. A later request waits. */
  #refuse(failure: GatewayError | undefined, why: () => GatewayError): void {
    const waiting = this.#waiting;
    this.#waiting = NO_WAITERS;
    if (waiting.length === 0) return;
    const error = failure ?? (this.deps.isAccepting() ? why() : shuttingDown());
    for (const { subscriber } of waiting) subscriber.error(error);
  }

  get #needsDedicated(): boolean {
    return this.#waiting.some(({ needsDedicated }) => needsDedicated);
  }

  get #client(): ClientState {
    this.#clientState ??= new ClientState(this, this.deps);
    return this.#clientState;
  }

  get #needs(): SessionNeeds {
    const { ownerId, profile, logLevel, uris } = this.value;
    const asksForLog = logLevel !== undefined || this.#needsDedicated;
    const client = logLevel === undefined && uris.length === 0 ? undefined : this.#client;
    const repeatState = client?.repeat.bind(client);
    return { group: this.group, ownerId, profile, holder: this.#session, asksForLog, repeatState };
  }

  /** Callers are answered first. */
  #ended(isLost: boolean, failure: GatewayError | undefined): void {
    this.#rest();
    const { endReason: reason = '' } = this.value;
    this.#refuse(failure, () => sessionLost(reason));
    this.#row?.end(reason, this.#table.leavesRow(reason) && outlivesNode(this.value, this.group));
    this.#session.ended({ reason, isLost });
    this.#clientState?.forget();
    void this.binding?.close();
    this.deps.fleet.release(this.group);
  }
}
