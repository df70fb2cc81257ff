// The route of one call of a session: the call waits for the binding of the session, is sent there, and after a move to
// the new binding. Before it is retried there is a short pause, in which a failure of the instance is noticed. After a freeze
// of the node it is sent once it is known that no other node holds the session (ADR 365). Everything else is in calls/call.ts.
// Source: ADR 384.

import { from, Observable, of } from 'rxjs';
import { type ExchangeRequest, ownerIdOf, toolOf } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../domain/calls/exchange-event.ts';
import { isRepeatable, type TryKind } from '../../domain/calls/retry-rules.ts';
import { type GatewayError, moreTelling, perhapsDelivered } from '../../domain/errors/errors.ts';
import { capacityYielded } from '../../domain/errors/session-errors.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import { listReturnedBy, setsBackendState } from '../../domain/mcp/mcp.ts';
import type { Linked } from '../../domain/memory/linked-set.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { AttemptEnding } from '../calls/call-events.ts';
import type { AttemptPlan, CallRoute, RunningCall, SendStep, Step } from '../calls/call-route.ts';
import { ifAccepting } from '../calls/direct-route.ts';
import type { Tries } from '../calls/tries.ts';
import type { YieldingCall } from '../fleet/wait-queue.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { allowsDedicated, isAboutTask, NO_TASKS } from '../instances/process-sharing.ts';
import { asksForLog } from './backend-state.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionCore } from './session-core.ts';
import { hasOtherCandidates, mayMove, needsMark } from './session-rules.ts';

/**
 * The wait before a failed call is retried, in ms, and the factor for each further wait. In this time a failure of
 * the instance is noticed, and the session can move.
 */
const FIRST_WAIT_MS = 5;
const WAIT_FACTOR = 5;

/** The route of one round of a call. */
export class SessionRoute implements CallRoute, YieldingCall, Linked {
  readonly #session: SessionCore;
  readonly #request: ExchangeRequest;
  /**
   * The binding where the call has reserved capacity, because it continues there even if the instance takes no new
   * calls. Undefined for other calls.
   */
  readonly reservation: Binding | undefined;
  links: Linked['links'];
  /** The last event that the client got. */
  lastEvent: ExchangeEvent | undefined;
  #call: RunningCall | undefined;
  /** The binding where the call was sent last, or would be sent; undefined before the first one. */
  #current: Binding | undefined;
  /** The binding of the present attempt; undefined while the call waits for one, and after its end. */
  binding: Binding | undefined;
  #needsDedicated = false;
  #hasAwaitedTools = false;
  /** Bindings at other instances, for hedges beside a silent attempt. They end with the call. Source: ADR 40. */
  #hedgeBindings: Binding[] = [];
  /** The binding of the next hedge, once it is open. */
  #nextHedge: Binding | undefined;

  constructor(session: SessionCore, request: ExchangeRequest, reservation: Binding | undefined) {
    this.#session = session;
    this.#request =
      session.deps.untilLifeKnown === undefined
        ? request
        : { ...request, mayBeSent: () => this.#isLifeKnown && request.mayBeSent?.() !== false };
    this.reservation = reservation;
  }

  /** False after a freeze, until it is known whether this node still holds the session. */
  get #isLifeKnown(): boolean {
    return this.#session.deps.untilLifeKnown?.() === undefined;
  }

  get onlyInstance(): InstanceRef | undefined {
    return this.#current?.ref;
  }

  get boundAt(): InstanceRef | undefined {
    return this.onlyInstance;
  }

  step(call: RunningCall, kind?: TryKind): Step {
    this.#call = call;
    if (kind === 'hedge') return this.#hedge(call.tries);
    const binding = this.#current;
    if (kind === undefined || binding === undefined) return this.#next();
    return kind === 'move' && !this.#abandon(binding) ? 'none' : this.#waitBeforeRetry(call);
  }

  // --- for its attempts ------------------------------------------------------------------------------------

  /** Makes `binding` the binding of the call; a next round continues there. */
  bindTo(binding: Binding): void {
    if (this.binding === binding) return;
    this.#release();
    binding.beginCall();
    this.binding = binding;
  }

  hedgeSent(): void {
    this.#nextHedge = undefined;
  }

  /**
   * Counts an attempt that is not safe to repeat, before it is sent; `settleUnsafe` must follow. False when one has
   * arrived already: then there is nothing to count.
   */
  countUnsafe(): boolean {
    const isCounted = this.#session.value.unsafe !== 'yes';
    if (isCounted) this.#session.send({ type: 'unsafeCallNoted', delivered: 'unknown' });
    return isCounted;
  }

  /** Reports whether a counted attempt arrived: see ClientSessionEvent. */
  settleUnsafe(delivered: 'yes' | 'no'): void {
    this.#session.send({ type: 'unsafeCallNoted', delivered });
  }

  /** How to carry out a request of `setsBackendState`; undefined for other requests, and for continued calls. */
  backendStatePlan(binding: Binding): AttemptPlan | Observable<FinalEvent> | undefined {
    return binding === this.reservation ? undefined : this.#session.backendStatePlan(this.#request, binding);
  }

  end(): void {
    this.#release();
    for (const binding of this.#hedgeBindings.splice(0)) binding.endAfterCalls();
  }

  // --- for the calls of its session, and for the queue -----------------------------------------------------

  /** The instance whose capacity the call uses; undefined while the backend waits for the client. */
  get target(): InstanceRef | undefined {
    return this.#call?.isAwaitingClient === true ? undefined : this.binding?.ref;
  }

  /** Ends the call, because its client is away and another call waits for the capacity. */
  yield(): void {
    this.#call?.giveUp(capacityYielded());
  }

  /**
   * Ends the call, because the session is over. A failure of the call itself is reported instead of `error`, unless
   * another attempt is under way.
   */
  refuse(error: GatewayError): void {
    const call = this.#call;
    call?.giveUp(this.binding ? perhapsDelivered(error) : moreTelling(call.tries.failure, error));
  }

  #next(): Step {
    const known = this.#session.deps.untilLifeKnown?.();
    if (known !== undefined) return { kind: 'wait', until$: from(known) };
    const request = this.#request;
    const { reservation } = this;
    const binding = this.#isReserved ? reservation : this.#session.usableBinding;
    if (binding === undefined) return this.#untilBound();
    const wantsDedicated = isMixedTask(request, binding) || asksForLog(request, binding);
    if (wantsDedicated && !this.#needsDedicated && allowsDedicated(this.#session.group.policy)) {
      this.#needsDedicated = true; // once: the session gets one, or the call is refused
      return this.#untilBound();
    }
    this.#current = binding;
    // Without exclusions: a failed instance is asked again while the session is bound to it.
    const isContinuation = binding === reservation;
    const choice = ifAccepting(binding.ref, ownerIdOf(request), isContinuation, binding.conversation);
    if (typeof choice === 'string') return choice;
    return this.#untilMarked(binding) ?? new SessionStep(this, binding, request, false);
  }

  /**
   * A wait until the mark `unsafe` is stored; undefined when the call may be sent, because it is safe to
   * repeat or the row has the mark.
   */
  #untilMarked(binding: Binding): Step | undefined {
    const { unsafeMark, group, isPart } = this.#session;
    if (unsafeMark?.isUnmarked !== true || !needsMark(group.policy, isPart)) return undefined;
    const { ref, isShared } = binding;
    if (isShared && isNetworked(ref.definition)) return undefined; // it loses nothing there
    const isMovable = group.policy.sessionFailover === 'auto';
    const tool = toolOf(this.#request);
    // After a restart the tools may not be listed yet, and any call would count as one that is not safe.
    if (isMovable && tool !== undefined && ref.tools?.lists(tool) === 'unknown' && !this.#hasAwaitedTools) {
      this.#hasAwaitedTools = true;
      const listed = ref.tools.lookUp();
      if (listed !== undefined) return { kind: 'wait', until$: from(listed) };
    }
    if (isMovable && isRepeatable(this.#request, ref)) return undefined;
    const marked = unsafeMark.writeMark();
    return marked && { kind: 'wait', until$: from(marked) };
  }

  #untilBound(): Step {
    return { kind: 'wait', until$: this.#session.untilBound(this.#needsDedicated) };
  }

  #hedge(tries: Tries): Step {
    const { binding } = this;
    const request = this.#request;
    const { method } = request;
    if (!this.#isLifeKnown) return 'none';
    // A cursor or a task in the answer is known at one instance only.
    const mayBeElsewhere =
      !setsBackendState(method) && listReturnedBy(method) === undefined && !isAboutTask(request);
    if (binding === undefined || binding === this.reservation || !mayBeElsewhere) return 'none';
    if (this.#nextHedge !== undefined) return new SessionStep(this, this.#nextHedge, request, true);
    if (!this.#mayHedgeBeside(binding, tries)) return 'none';
    return { kind: 'wait', until$: this.#hedgeBinding(tries) };
  }

  /**
   * True when the call may be sent to a second instance while the session stays at its own. False when there is no
   * other instance, when the session may not move, and when it moves anyway because its instance is suspended.
   * Source: ADR 40.
   */
  #mayHedgeBeside({ ref, conversation }: Binding, tries: Tries): boolean {
    const { value, group } = this.#session;
    const isDedicatedProcess = conversation !== undefined && !isNetworked(ref.definition);
    if (isDedicatedProcess || !mayMove(value, group) || group.pool.outliers.isSuspended(ref)) return false;
    return tries.hasAlternative(ref, group);
  }

  /** Opens a binding at another instance and emits it; cold. Unsubscribing ends the search. */
  #hedgeBinding(tries: Tries): Observable<Binding> {
    return new Observable((subscriber) => {
      const over = new AbortController();
      const found = (binding: Binding): void => {
        if (over.signal.aborted) {
          binding.endAfterCalls();
          return;
        }
        this.#hedgeBindings.push(binding);
        this.#nextHedge = binding;
        subscriber.next(binding);
      };
      const failed = (thrown: unknown): void => subscriber.error(thrown);
      this.#session.findHedgeBinding(tries, over.signal).then(found, failed);
      return () => over.abort();
    });
  }

  #release(): void {
    const binding = this.binding;
    this.binding = undefined;
    binding?.endCall();
  }

  get #isReserved(): boolean {
    const { reservation } = this;
    if (reservation?.isIntact !== true) return false;
    const { ref, conversation } = reservation;
    if (ref.acceptsCalls(conversation) || ref.state === 'draining') return true;
    const { value, group } = this.#session;
    return ref.state === 'unhealthy' && !mayMove(value, group); // an unhealthy instance may still answer
  }

  /**
   * Makes the session give up its binding. Returns false, without effect, when it may not move, the call continues something at
   * its instance, or there is no other one.
   */
  #abandon(binding: Binding): boolean {
    if (binding === this.reservation) return false;
    const { binding: present, value, group } = this.#session;
    if (binding !== present) return true; // another call made it move
    if (!mayMove(value, group) || !hasOtherCandidates(group, binding.ref)) return false;
    this.#session.send({ type: 'abandon' });
    return true;
  }

  #waitBeforeRetry({ tries }: RunningCall): Step {
    this.#release();
    const waitMs = FIRST_WAIT_MS * WAIT_FACTOR ** tries.retriesMade;
    return { kind: 'wait', until$: timer$(this.#session.deps.clock, waitMs) };
  }
}

/**
 * One attempt of a call: at the session's binding, or at a hedge binding beside it. The call belongs to the hedge
 * binding once that answers.
 */
class SessionStep implements SendStep, AttemptPlan {
  readonly kind = 'send';
  readonly ref: InstanceRef;
  readonly request: ExchangeRequest;
  readonly conversation: Binding['conversation'];
  readonly binding: Binding;
  readonly #isHedge: boolean;
  readonly #route: SessionRoute;
  /** True for an attempt that is not safe to repeat, if it counts: see SessionRoute.countUnsafe. */
  #isCounted = false;
  /** The plan that forwards a request of `setsBackendState`; undefined for other requests. */
  #sentPlan: AttemptPlan | undefined;

  constructor(route: SessionRoute, binding: Binding, request: ExchangeRequest, isHedge: boolean) {
    this.#route = route;
    this.binding = binding;
    this.ref = binding.ref;
    this.conversation = binding.conversation;
    this.request = request;
    this.#isHedge = isHedge;
  }

  plan(): AttemptPlan | Observable<FinalEvent> {
    const { binding, request } = this;
    if (this.#isHedge) this.#route.hedgeSent();
    else if (isMixedTask(request, binding)) return of(NO_TASKS);
    else {
      this.#route.bindTo(binding);
      const plan = this.#route.backendStatePlan(binding);
      if (plan !== undefined && !('request' in plan)) return plan;
      this.#sentPlan = plan;
      // Before sending: afterwards the transport that knew the tool may be gone.
      this.#isCounted = !isRepeatable(request, this.ref) && this.#route.countUnsafe();
    }
    return this;
  }

  receive(event: ExchangeEvent): boolean {
    this.#route.bindTo(this.binding);
    this.#route.lastEvent = event;
    return this.#sentPlan?.receive?.(event) !== false;
  }

  ended(ending: AttemptEnding): void {
    const { error } = ending;
    this.#sentPlan?.ended?.(ending);
    if (!this.#isCounted) return;
    const conversation = this.conversation ?? this.ref.opened?.transport;
    // The program ends, whatever the call did.
    const isForgotten = conversation?.endsAfterCall === true;
    this.#route.settleUnsafe(isForgotten || error?.delivered === 'no' ? 'no' : 'yes');
  }
}

/** True for a task request at a legacy backend that several sessions share: it cannot tell whose task it is. */
function isMixedTask(request: ExchangeRequest, { isShared, handshake }: Binding): boolean {
  return isAboutTask(request) && isShared && handshake.era === 'legacy';
}
