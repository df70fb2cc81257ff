// One request of a session's client, from its arrival to its answer: at the session's binding, or after the session has moved.
// A call that broke off is repeated at the session's next binding, if that is safe: when it certainly did not arrive, or, once,
// when the request may be made twice. Waits and attempts share one timeout from the arrival of the request: during an attempt
// the dispatcher enforces it, during a wait this file.

import { type Observable, type Subscriber, Subscription } from 'rxjs';
import { answeredOnce, type ServerRequest } from '../../domain/client.ts';
import { backendTimeout, placeYielded } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { asGatewayError, perhapsDelivered } from '../../domain/errors.ts';
import type { Answer, CallRecord, ExchangeRequest } from '../../domain/exchange.ts';
import { retriedEvent } from '../calls/call-events.ts';
import { affords, mayGoOn } from '../calls/retry.ts';
import type { YieldingCall } from '../calls/wait-queue.ts';
import { isAboutTask, NO_TASKS } from '../task-requests.ts';
import type { Binding, SessionDeps, SessionInstance, Waiter } from './client-session-types.ts';
import { asksForLog, isSafe } from './client-state.ts';

/**
 * Wait before a call that broke off is repeated, in ms, longer by that much each time, and the number of repeats: by then it is
 * known whether its instance broke, too, and the session goes elsewhere.
 */
const FIRST_WAIT_MS = 5;
const WAIT_FACTOR = 5;
const MOST_REPEATS = 3;

/** What a call needs of its session. */
export interface CallSession {
  readonly deps: Pick<SessionDeps, 'alarm' | 'budget' | 'emit' | 'now'>;
  /** The binding, if it may be used now. */
  readonly usableBinding: Binding | undefined;
  /** The session may go on with another instance. */
  readonly mayMove: boolean;
  /** False when the template wants clients to share a conversation, with all that such a conversation cannot do. */
  readonly mayUpgrade: boolean;
  /** How long a call may take to its first answer. */
  readonly callTimeoutMs: number;
  /** Waits for a binding; the returned function ends the waiting. */
  wait(waiter: Waiter): () => void;
  /** `isStaying`: it goes on with a call, wherever that is. `slow`: see WithinOptions. */
  answers(
    request: ExchangeRequest,
    binding: Binding,
    isStaying: boolean,
    slow: (() => void) | undefined,
  ): Observable<Answer>;
  /** True when the pool gives the instance no calls because other calls failed there. */
  isEjected(binding: Binding): boolean;
  /** Gives up the binding: the session moves. False, without effect, when it may not move, or there is no other instance. */
  leave(binding: Binding): boolean;
  /** Counts calls that are not safe to repeat and may have been delivered. */
  countUnsafe(difference: 1 | -1): void;
}

export class ClientCall implements Waiter, YieldingCall {
  readonly #host: CallSession;
  readonly #request: ExchangeRequest;
  readonly #subscriber: Subscriber<Answer>;
  readonly #stay: Binding | undefined;
  readonly #cameAtMs: number;
  readonly #record: CallRecord = { call: 0, attempts: 0 };
  #hasWaited = false;
  #needsOwn = false;
  #heard: Answer | undefined;
  /** Questions that the client has not answered. */
  #unanswered = 0;
  #isSafe = true;
  #binding: Binding | undefined;
  /** The last instance it was sent to. */
  #asked: SessionInstance | undefined;
  #attempt: Subscription | undefined;
  /** Ends what it waits for. */
  #leave: (() => void) | undefined;
  #repeats = 0;
  /** The session has moved because of this call. */
  #hasMoved = false;
  /** The last failure; after a failure that left open whether the call arrived, always that failure. */
  #failure: GatewayError | undefined;
  /** The instance of that failure. */
  #failedAt: SessionInstance | undefined;

  /** `stay`: the reservation of the call, for as long as that lasts, even if its instance takes nothing new. */
  constructor(host: CallSession, request: ExchangeRequest, subscriber: Subscriber<Answer>, stay?: Binding) {
    this.#stay = stay;
    this.#host = host;
    this.#request = request;
    this.#subscriber = subscriber;
    this.#cameAtMs = request.cameAtMs ?? host.deps.now();
  }

  get needsOwn(): boolean {
    return this.#needsOwn;
  }

  /** The binding of the attempt; undefined while the call waits for one, and after its end. */
  get binding(): Binding | undefined {
    return this.#binding;
  }

  /** The place that it occupies: none while its backend waits for the client. */
  get place(): SessionInstance | undefined {
    return this.#unanswered > 0 ? undefined : this.#binding?.ref;
  }

  /** Its client is away, and another call waits for its place. */
  yield(): void {
    this.#subscriber.error(placeYielded());
  }

  /** Its last answer. */
  get heard(): Answer | undefined {
    return this.#heard;
  }

  begin(): void {
    this.#leave = undefined;
    const binding = this.#isStaying ? this.#stay : this.#host.usableBinding;
    if (binding === undefined) this.#wait();
    else this.bound(binding);
  }

  end(): void {
    this.#stopWaiting();
    this.#attempt?.unsubscribe();
    this.#release();
  }

  bound(binding: Binding): void {
    if (this.#subscriber.closed) return;
    this.#stopWaiting();
    const isMixedTask = isAboutTask(this.#request) && isMixed(binding);
    if (!this.#needsOwn && this.#host.mayUpgrade && (isMixedTask || asksForLog(this.#request, binding))) {
      this.#needsOwn = true; // once: it may have one, or will be refused
      this.#wait();
      return;
    }
    const refusal = isMixedTask ? NO_TASKS : this.#request.refusedAt?.(binding.ref.id);
    if (refusal === undefined) {
      this.#send(binding);
      return;
    }
    this.#subscriber.next({ event: refusal, instanceId: binding.ref.id, serverId: binding.ref.serverId });
    this.#subscriber.complete();
  }

  /** The failure at its first instance says more than the lack of a second one. */
  refused(error: GatewayError): void {
    this.#stopWaiting();
    const told = this.#binding === undefined ? error : perhapsDelivered(error);
    this.#subscriber.error(this.#failure ?? told);
  }

  next(answer: Answer): void {
    const { event } = answer;
    this.#heard = event.kind === 'request' ? { ...answer, event: this.#asking(event) } : answer;
    this.#subscriber.next(this.#heard);
  }

  complete(): void {
    this.#release();
    this.#subscriber.complete();
  }

  error(thrown: unknown): void {
    const error = asGatewayError(thrown);
    if (!this.#isSafe && error.delivered === 'no') this.#host.countUnsafe(-1);
    const binding = this.#binding;
    this.#release();
    if (this.#mayRepeat(error) || this.#movesOn(error, binding)) this.#repeatSoon(error);
    else this.#subscriber.error(this.#isUncertain ? this.#failure : error);
  }

  #asking(request: ServerRequest): ServerRequest {
    this.#unanswered += 1;
    return answeredOnce(request, () => {
      this.#unanswered -= 1;
    });
  }

  /** Waits for a binding, as long as its time lasts. */
  #wait(): void {
    const { deps, callTimeoutMs } = this.#host;
    const leftMs = this.#cameAtMs + callTimeoutMs - deps.now();
    const disarm = deps.alarm(Math.max(0, Math.ceil(leftMs)), () => this.#late());
    this.#hasWaited = true;
    this.#leave = disarm; // before it waits: it may be answered in there
    const leave = this.#host.wait(this);
    if (this.#leave !== disarm) return;
    this.#leave = () => {
      disarm();
      leave();
    };
  }

  #stopWaiting(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  #late(): void {
    const passedMs = Math.round(this.#host.deps.now() - this.#cameAtMs);
    this.refused(backendTimeout(passedMs, 'no'));
  }

  #send(binding: Binding): void {
    this.#isSafe = isSafe(this.#request, binding.ref); // before: afterwards no instance may know the tool
    if (!this.#isSafe) this.#host.countUnsafe(1);
    if (this.#failure !== undefined && this.#asked !== undefined)
      this.#tellRepeat(this.#asked, this.#failure);
    binding.take();
    this.#binding = binding;
    this.#asked = binding.ref;
    const attempt = new Subscription();
    this.#attempt = attempt; // before subscribing: it may fail in there, and be followed by the next
    const record = this.#record;
    const request = this.#hasWaited
      ? { ...this.#request, record, cameAtMs: this.#cameAtMs }
      : { ...this.#request, record };
    const slow = this.#isSafe ? () => this.#slow(binding) : undefined;
    attempt.add(this.#host.answers(request, binding, binding === this.#stay, slow).subscribe(this));
  }

  /** A silent call is only given up where other calls get no answers either. */
  #slow(binding: Binding): void {
    if (this.#binding !== binding || this.#heard !== undefined || !this.#host.isEjected(binding)) return;
    const passedMs = Math.round(this.#host.deps.now() - this.#cameAtMs);
    const error = backendTimeout(passedMs);
    if (!this.#movesFrom(binding)) return;
    this.#attempt?.unsubscribe();
    this.#release();
    this.#repeatSoon(error);
  }

  get #isStaying(): boolean {
    if (this.#stay?.isIntact !== true) return false;
    const { ref, upstream } = this.#stay;
    if (ref.takes(upstream) || ref.state === 'draining') return true;
    return ref.state === 'unhealthy' && !this.#host.mayMove; // an unhealthy one may still answer
  }

  #release(): void {
    const binding = this.#binding;
    this.#binding = undefined;
    binding?.release();
  }

  get #isUncertain(): boolean {
    return this.#failure?.delivered === 'unknown';
  }

  #mayRepeat({ code, delivered }: GatewayError): boolean {
    if (this.#heard !== undefined || code !== 'BACKEND_UNAVAILABLE' || this.#repeats >= MOST_REPEATS)
      return false;
    if (!mayGoOn(delivered, this.#isSafe && !this.#isUncertain)) return false;
    return affords(this.#host.deps.budget, delivered);
  }

  /** Its instance failed twice: the session goes elsewhere. */
  #movesOn({ code, delivered }: GatewayError, binding: Binding | undefined): boolean {
    if (binding === undefined || this.#heard !== undefined || code !== 'BACKEND_UNAVAILABLE') return false;
    if (!this.#isUncertain || binding.ref !== this.#failedAt) return false;
    return mayGoOn(delivered, this.#isSafe) && this.#movesFrom(binding);
  }

  /** Once: a call that fails everywhere does not move its session again and again. */
  #movesFrom(binding: Binding): boolean {
    if (this.#hasMoved || binding === this.#stay || !affords(this.#host.deps.budget, 'unknown')) return false;
    this.#hasMoved = this.#host.leave(binding);
    return this.#hasMoved;
  }

  #repeatSoon(error: GatewayError): void {
    if (!this.#isUncertain) {
      this.#failure = error;
      this.#failedAt = this.#asked;
    }
    const waitMs = FIRST_WAIT_MS * WAIT_FACTOR ** this.#repeats;
    this.#repeats += 1;
    this.#hasWaited = true;
    this.#leave = this.#host.deps.alarm(waitMs, () => this.begin());
  }

  /** Adds the instance of the failure to the error. */
  #tellRepeat(ref: SessionInstance, { code }: GatewayError): void {
    const { call, attempts: attempt } = this.#record;
    this.#host.deps.emit(retriedEvent(ref, { call, attempt }, this.#request, code));
  }
}

/** True where the backend cannot tell its clients apart. */
function isMixed({ upstream, peer }: Binding): boolean {
  return upstream === undefined && peer.era === 'legacy';
}
