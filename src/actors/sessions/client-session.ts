// One session of a legacy client with one template: it keeps its id when it moves to another instance, and answers
// its calls before it ends. client-session.machine.ts decides about its states; session-state.ts has that actor, which the
// session wakes with the first request that needs one and ends when it is idle. What others change of the session passes `send`;
// the work that follows from a change is in `follow`. Its calls are in session-calls.ts, its idle time in idle-sweep.ts.

import { AsyncSubject, firstValueFrom, Observable, of } from 'rxjs';
import { longestQuestionMs, timeoutFor } from '../../balancing/policy.ts';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import { callCutOff } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { EndReason } from '../../domain/errors/session-ends.ts';
import { sessionEnded, sessionLost } from '../../domain/errors/session-errors.ts';
import { eventOf } from '../../domain/events/events.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { listedAnswers } from '../../domain/lists/listed-tools.ts';
import type { ServerMessage } from '../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../domain/mcp/jsonrpc.ts';
import { type Handshake, isOfOtherEra, listReturnedBy, setsBackendState } from '../../domain/mcp/mcp.ts';
import type { AllSessions, SessionRow } from '../../domain/sessions/all-sessions.ts';
import { type McpSession, SessionActivity } from '../../domain/sessions/mcp-session.ts';
import { sessionFingerprint } from '../../domain/sessions/session-fingerprint.ts';
import type { SessionValue, StoredBinding, StoredHandshake } from '../../domain/sessions/session-value.ts';
import { Tries } from '../calls/tries.ts';
import { noHealthyError } from '../fleet/no-instance.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { NO_URIS } from '../subscriptions/feed.ts';
import { BackendState } from './backend-state.ts';
import type { Binder } from './binding/binder.ts';
import type { Binding } from './binding/binding.ts';
import {
  bindTimeoutMs,
  type ClientSessionEmission,
  isReturning,
  isServed,
} from './client-session.machine.ts';
import { SessionCalls } from './session-calls.ts';
import type { SessionCore } from './session-core.ts';
import type { SessionDeps, SessionOptions } from './session-deps.ts';
import { SessionMessages } from './session-messages.ts';
import { isRecoverable } from './session-rules.ts';
import { SessionState } from './session-state.ts';
import { type ClientSessionEvent, leftBinding } from './session-transitions.ts';

/** A session of a legacy client. Its members are described in mcp-session.ts and session-core.ts. */
export class ClientSession implements McpSession, SessionCore {
  readonly id: string;
  readonly group: TemplateGroup;
  readonly activity = new SessionActivity();
  generation: number | undefined;
  readonly #sessions: AllSessions;
  readonly #binder: Binder;
  readonly #options: SessionOptions;
  readonly #state: SessionState;
  #holds = 0;
  // An idle session consists of few objects: these are made at their first use.
  #calls: SessionCalls | undefined;
  #messages: SessionMessages | undefined;
  #backendState: BackendState | undefined;
  #ended: AsyncSubject<EndReason> | undefined;
  /** The instance where the search for the first binding begins. Undefined: the strategy chooses. */
  #first: InstanceRef | undefined;
  /** The row of the session in the store, once the session is kept. */
  #row: SessionRow | undefined;

  /** `value`: sessions with equal profiles may share one profile object. Throws TEMPLATE_NOT_FOUND. */
  constructor(all: AllSessions, binder: Binder, id: string, value: SessionValue, options: SessionOptions) {
    this.id = id;
    this.#sessions = all;
    this.#binder = binder;
    this.#options = options;
    this.#state = new SessionState(this, value);
    this.group = binder.deps.fleet.templates.acquire(value.template);
  }

  /** Binds a new session: at once if nothing has to be opened, otherwise when the machine has found an instance. */
  async open(): Promise<void> {
    const first = this.#binder.choose(this.group.template, this.value.ownerId);
    if (this.#bindAt(first)) return; // no actor before its first request
    this.#first = first;
    await firstValueFrom(this.untilBound());
  }

  /**
   * Prepares the session after its value was read, and keeps it stored. The session prefers its former instance. If it
   * shared a conversation there, it has lost nothing and is bound again; otherwise its next request decides, as after
   * the loss of a conversation.
   */
  recoverAs(generation: number): void {
    this.generation = generation;
    this.#row = this.#sessions.rowFor(this, 'recovered');
    const { binding } = this.value;
    const former = binding && this.#binder.former(this.group, binding);
    if (former !== undefined && !(binding?.isShared && this.#bindAt(former))) this.#first = former;
  }

  get deps(): SessionDeps {
    return this.#binder.deps;
  }
  get isPart(): boolean {
    return this.#options.part !== undefined;
  }
  /** The value of the session in every state. It can be stored, and the session made again from it. */
  get value(): SessionValue {
    return this.#state.value;
  }
  get binding(): Binding | undefined {
    return this.#state.binding;
  }
  get questionMs(): number {
    return longestQuestionMs(this.group.policy, this.deps.maxCallMs);
  }
  get #storedHandshake(): StoredHandshake {
    const { greeted } = this.value;
    if (greeted === undefined) throw new Error('a session has no backend before it is open');
    return greeted;
  }
  /** The handshake of the present or last binding; for a recovered session without one, that of its first backend. */
  get handshake(): Handshake {
    return this.binding?.handshake ?? { ...this.#storedHandshake, greeting: {} };
  }
  /** The instance of the present or last binding. Throws before the first binding. */
  get instance() {
    const { template, binding } = this.value;
    if (binding === undefined) throw new Error('a session has no instance before it is open');
    return { template, id: binding.instanceId, serverId: binding.serverId };
  }
  /** The fields that every event of an open session has. */
  get eventFields() {
    const principal = this.value.ownerId;
    return { ...eventOf(this.deps.clock, this.instance), session: sessionFingerprint(this.id), principal };
  }
  isAt(instanceId: string): boolean {
    return this.value.binding?.instanceId === instanceId;
  }
  get isShared(): boolean {
    return this.value.binding?.isShared === true;
  }

  /** Emits the reason once when the session has ended, then completes. Late subscribers get it, too. */
  get ended$(): Observable<EndReason> {
    const { endReason } = this.value;
    if (endReason !== undefined) return of(endReason);
    this.#ended ??= new AsyncSubject();
    return this.#ended;
  }

  /**
   * Also errors with NO_HEALTHY_INSTANCE when the session could continue but no instance is healthy, and with
   * BACKEND_TIMEOUT when binding took too long: the next request tries again.
   */
  exchange(request: ExchangeRequest): Observable<SourcedEvent> {
    const { method } = request;
    if (isOfOtherEra(method, this.handshake.era) && !setsBackendState(method)) {
      const { id: instanceId, serverId } = this.instance;
      return of({ event: { kind: 'error', error: METHOD_NOT_FOUND }, instanceId, serverId });
    }
    const { binding } = this;
    const isListed =
      listReturnedBy(method) !== undefined && binding !== undefined && binding.conversation === undefined;
    const next = () => this.#ensuredCalls.carry(request);
    const events$ = (isListed && this.#options.lists?.exchangeIn(this, request, next)) || next();
    return listedAnswers(this.group.template, request, events$, this.deps);
  }

  reserve(sourced: SourcedEvent, lost: (error: GatewayError) => void) {
    return this.#ensuredCalls.reserve(sourced, lost);
  }
  setAway(isAway: boolean): void {
    this.#ensuredCalls.setAway(isAway);
  }

  notify(method: string, params: JsonObject): void {
    if (this.#state.isOver) return;
    this.#sessions.used(this); // needs no actor
    const { binding } = this;
    binding?.notify(method, params, this.value.ownerId, this.#calls?.isOnlyCallAt(binding) === true);
  }

  /** Subscribing counts as use. */
  get messages$(): Observable<ServerMessage> {
    const messages$ = new Observable<ServerMessage>((subscriber) => {
      this.used();
      if (this.#state.isOver) return subscriber.complete();
      this.#messages ??= new SessionMessages(this);
      this.#messages.addStream(subscriber);
      return () => this.activity.isIdle && this.#messages?.areObserved === false && this.setIdle();
    });
    return (
      this.#options.lists?.withNotices(messages$, {
        ...this.#storedHandshake,
        ownerId: this.value.ownerId,
      }) ?? messages$
    );
  }

  get untilListening(): Promise<void> | undefined {
    return this.#messages?.areObserved ? this.binding?.untilListening : undefined;
  }

  hold(): () => void {
    this.#holds += 1;
    this.used();
    return () => {
      this.#holds -= 1;
      this.callEnded();
    };
  }

  untilStored(): Promise<boolean> | undefined {
    if (!this.#state.isOver) this.#row ??= this.#sessions.rowFor(this, 'new');
    return this.#row?.save();
  }

  /** Ends the session and its calls; later reasons are ignored. Resolves when a dedicated conversation is closed. */
  async close(reason: EndReason = 'closed'): Promise<void> {
    this.send({ type: 'end', reason });
    await this.binding?.close();
  }

  /** True while a stream of the client holds the session. `messages$` may be observed without such a stream. */
  get isStreaming(): boolean {
    return this.#holds > 0;
  }
  get callCount(): number {
    return this.#calls?.size ?? 0;
  }
  get isRecoverable(): boolean {
    return this.#row?.isStored === true && isRecoverable(this.value, this.group);
  }

  /** Ends the actor, unless `messages$` has subscribers. A subscriber alone does not make the session used. */
  setIdle(): boolean {
    if (this.#holds > 0 || this.callCount > 0) return false;
    if (this.#messages?.areObserved) return true;
    this.send({ type: 'setIdle' });
    this.#state.dropActor();
    return true;
  }

  dismiss(error: GatewayError): void {
    this.#calls?.dismiss(error);
  }

  // --- SessionCore -----------------------------------------------------------------------------------------

  get needsBindingForStream(): boolean {
    // One that was read again opens a dedicated conversation with its next request: many clients reopen streams at once.
    const isNeeded = this.binding !== undefined || this.isShared || this.value.uris.length > 0;
    return this.#messages?.areObserved === true && isNeeded;
  }
  get isCalling(): boolean {
    return this.#calls?.isCalling === true;
  }
  get hasBindingWaits(): boolean {
    return this.#calls?.areWaiting === true;
  }

  findBinding(signal: AbortSignal): Promise<Binding> {
    const context = this.#state.contextIn();
    if (context === undefined) throw new Error('a session without an actor looks for no binding');
    const from = context.binding?.ref;
    const isOnlyThere = (this.#calls?.needDedicated && isServed(context)) || isReturning(context);
    const tries = new Tries(isOnlyThere ? 1 : this.group.policy.maxRetries + 1);
    const first = isOnlyThere ? from : this.#first;
    const options = { ...this.#needs, tries, first, last: from, withinMs: bindTimeoutMs(context), signal };
    if (from !== undefined) return this.#binder.findBinding(options);
    this.deps.budget.countCall(); // the call that needs a further binding is counted already
    const isRecovered = this.generation !== undefined || this.#options.part?.isRecovered === true;
    return isRecovered ? this.#binder.findRecovered(options) : this.#binder.findBinding(options);
  }

  get usableBinding(): Binding | undefined {
    const context = this.#state.contextIn('serving');
    return context !== undefined && isServed(context) ? context.binding : undefined;
  }
  get unsafeMark(): SessionCore['unsafeMark'] {
    return this.#options.part?.unsafeMark ?? this.#row;
  }
  get uris(): ReadonlySet<string> {
    return this.value.uris.length === 0 ? NO_URIS : this.#ensuredBackendState.uris;
  }

  findHedgeBinding({ left, excluded }: Tries, signal: AbortSignal): Promise<Binding> {
    const needs = { ...this.#needs, asksForLog: false, restoreBackendState: undefined };
    const options = {
      ...needs,
      tries: new Tries(left, excluded),
      withinMs: timeoutFor(this.group.policy),
      signal,
    };
    return this.#binder.findBinding(options);
  }

  untilBound(needsDedicated = false): Observable<Binding> {
    return this.#ensuredCalls.untilBound(needsDedicated);
  }

  requestBinding(needsDedicated = false): void {
    this.#state.wake();
    const serving = this.#state.contextIn('serving');
    if (serving && needsDedicated && isServed(serving)) this.send({ type: 'upgrade' });
    else if (serving || this.#state.contextIn('unbound')) this.send({ type: 'requested' });
    else this.#finish();
  }

  backendStatePlan(request: ExchangeRequest, binding: Binding) {
    return setsBackendState(request.method) ? this.#ensuredBackendState.plan(request, binding) : undefined;
  }

  send(event: ClientSessionEvent): void {
    this.#state.send(event);
    this.#row?.changed();
  }

  used(): void {
    if (this.#state.isOver) return;
    this.#state.wake();
    this.#sessions.used(this);
  }

  callEnded(): void {
    this.#finish();
    if (!this.#state.isOver) this.#sessions.used(this);
  }

  get #ensuredCalls(): SessionCalls {
    this.#calls ??= new SessionCalls(this);
    return this.#calls;
  }
  get #ensuredBackendState(): BackendState {
    this.#backendState ??= new BackendState(this);
    return this.#backendState;
  }
  /** What the session requires of a binding. */
  get #needs() {
    const { ownerId, profile, logLevel, uris } = this.value;
    const asksForLog = logLevel !== undefined || this.#calls?.needDedicated === true;
    const state = logLevel === undefined && uris.length === 0 ? undefined : this.#ensuredBackendState;
    const restoreBackendState = state?.restore.bind(state);
    return { group: this.group, ownerId, profile, session: this, asksForLog, restoreBackendState };
  }

  /** Reports the end of a call to a finishing session, which ends after its last call. */
  #finish(): void {
    if (this.#state.contextIn('finishing') !== undefined) this.send({ type: 'callEnded' });
  }

  /** Does the work that follows from a change of the state. */
  follow(emission: ClientSessionEmission): void {
    if (emission.type === 'bound') this.#bound(emission.from, emission.stored);
    else if (emission.type === 'serving') this.#calls?.serve(emission.binding, emission.failure);
    else if (emission.type === 'ended') this.#end(emission.isLost, emission.failure);
    else {
      const isFinishing = emission.why === 'finishing';
      const error = () =>
        isFinishing ? sessionLost('its instance takes no new calls') : noHealthyError(this.group);
      this.#calls?.refuseWaiting(emission.failure, error);
    }
  }

  /** Binds a session without an actor, if nothing has to be opened for it. Returns true when it is bound. */
  #bindAt(ref: InstanceRef | undefined): boolean {
    const binding = ref && this.#binder.at(ref, this.group.policy, this.#needs);
    if (binding === undefined) return false;
    this.send({ type: 'bound', binding });
    return true;
  }

  /** Carries out a change of the binding: informs the parts of the session and releases the previous binding. */
  #bound(from: Binding | undefined, stored: StoredBinding | undefined): void {
    const { binding } = this;
    if (binding === undefined) return;
    this.#first = undefined;
    const answers = this.value.uris.length > 0 ? this.#ensuredBackendState.moved(binding) : [];
    this.#messages?.movedTo(binding, answers);
    const left = leftBinding(from, stored, binding);
    if (left !== undefined) {
      const { instanceId: fromInstanceId, serverId: fromServerId } = left;
      this.deps.emit({ type: 'session.moved', ...this.eventFields, fromInstanceId, fromServerId });
    }
    this.#row?.changed();
    from?.endAfterCalls();
  }

  /** Ends the session. Callers are answered before the binding is closed. */
  #end(isLost: boolean, failure: GatewayError | undefined): void {
    this.#state.dropActor();
    const { endReason: reason = 'closed' } = this.value;
    this.#calls?.refuseWaiting(failure, () => sessionEnded(reason));
    this.#row?.end(reason, this.#sessions.leavesRow(reason));
    // A client that initializes again would be refused: it gets the same error as callers without a session.
    this.#calls?.refuse(this.deps.isAccepting() ? sessionEnded(reason) : callCutOff('no'));
    this.#messages?.complete();
    this.#ended?.next(reason);
    this.#ended?.complete();
    this.#sessions.remove(this, reason, { isLost });
    this.#backendState?.forget();
    void this.binding?.close();
    this.deps.fleet.templates.release(this.group);
  }
}
