// One call on its way: choose, count, send, wait, and on to the next instance when that is safe. Choosing and counting
// happen in one synchronous block. Who may call, and the rules in full, are in dispatcher.ts.

import { type Subscriber, Subscription } from 'rxjs';
import {
  asGatewayError,
  backendTimeout,
  backendUnavailable,
  type GatewayError,
  noHealthyInstance,
  queueFull,
  shuttingDown,
  toolNotFound,
} from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { Answer, ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import { atInstance } from '../domain/failures.ts';
import type { InstanceState } from '../domain/instance.ts';
import { METHODS } from '../domain/mcp.ts';
import type { Upstream } from '../transports/transport.ts';
import { Deadline, type DeadlineParts } from './deadline.ts';
import type { Fleet } from './fleet.ts';
import type { Group } from './group.ts';
import { factOf } from './instance-facts.ts';
import type { InstanceRef } from './instance-ref.ts';
import type { Ending } from './reply.ts';
import type { RetryBudget } from './retry-budget.ts';
import { mayComeBack, whyNobody } from './why-nobody.ts';

export interface CallParts extends DeadlineParts {
  readonly budget: RetryBudget;
  readonly fleet: Pick<Fleet, 'members'>;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
}

/** States of an instance that takes nothing new, and may go on with what is under way there. */
const UNDER_WAY: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);

/** What is asked, of whom, and how long the answer may take. */
export interface CallOrder {
  readonly group: Group;
  readonly request: ExchangeRequest;
  /** Only this instance may answer. */
  readonly pinned: InstanceRef | undefined;
  /** The conversation it goes through; undefined for the instance's own. */
  readonly upstream: Upstream | undefined;
  /** False when the backend itself may say that it has no such tool. */
  readonly looksUpTools: boolean;
  readonly timeoutMs: number;
  /** The pinned instance may answer although it takes nothing new: it goes on with what is under way there. */
  readonly goesOn: boolean;
}

/** From the first choice to the end; the subscriber hears of it once. */
export class Call {
  readonly #parts: CallParts;
  readonly #order: CallOrder;
  readonly #subscriber: Subscriber<Answer>;
  /** Name of the tool, when the call is one: only an instance that has it is asked. */
  readonly #tool: string | undefined;
  readonly #deadline: Deadline;
  #tried: Set<string> | undefined;
  #retries = 0;
  #isAnswering = false;
  #lacksTool = false;
  /** The last instance it was sent to. */
  #asked: InstanceRef | undefined;
  #lastFailure: { readonly ref: InstanceRef; readonly error: GatewayError } | undefined;
  #overdue: GatewayError | undefined;
  #attempt: Subscription | undefined;
  #leaveLine: (() => void) | undefined;

  constructor(parts: CallParts, order: CallOrder, subscriber: Subscriber<Answer>) {
    const { method, params } = order.request;
    this.#parts = parts;
    this.#order = order;
    this.#subscriber = subscriber;
    this.#tool = method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
    this.#deadline = new Deadline(parts, order.timeoutMs, (passedMs) => this.#late(passedMs));
  }

  begin(): void {
    this.#try();
  }

  end(): void {
    this.#deadline.end();
    this.#leaveLine?.();
    this.#attempt?.unsubscribe();
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  #try(): boolean {
    if (this.#subscriber.closed) return false;
    let ref = this.#choose();
    while (ref !== undefined && this.#certainlyLacksTool(ref)) {
      this.#passOver(ref);
      ref = this.#choose();
    }
    if (ref === undefined) this.#wait();
    else if (this.#mayLackTool(ref)) this.#lookAgain(ref);
    else if (this.#lastFailure !== undefined && !this.#affords(this.#lastFailure.error)) this.#giveUp();
    else return this.#send(ref);
    return false;
  }

  #choose(): InstanceRef | undefined {
    const { group, pinned } = this.#order;
    if (pinned === undefined) return group.pool.pick(this.#tried);
    return this.#mayServe(pinned) && !isFull(pinned) ? pinned : undefined;
  }

  #mayServe(pinned: InstanceRef): boolean {
    const { state, id } = pinned;
    const isOpen = state === 'healthy' || (this.#order.goesOn && UNDER_WAY.has(state));
    return isOpen && !this.#tried?.has(id);
  }

  #mayLackTool({ tools }: InstanceRef): boolean {
    return this.#order.looksUpTools && this.#tool !== undefined && tools?.knows(this.#tool) === 'no';
  }

  #certainlyLacksTool(ref: InstanceRef): boolean {
    return this.#mayLackTool(ref) && !ref.tools?.mayRefresh;
  }

  #passOver(ref: InstanceRef): void {
    this.#lacksTool = true;
    this.#exclude(ref);
  }

  #exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** An unknown tool may be a new one: the list is looked up once more before the caller hears 404. */
  #lookAgain(ref: InstanceRef): void {
    this.#stepOutOfLine();
    const lookedUp = ref.tools?.lookUp();
    if (lookedUp === undefined) this.#giveUp(this.#failure() ?? queueFull(this.#order.group.template));
    void lookedUp?.then(() => {
      // However old the list is by now: this instance was asked, and it is not asked again.
      if (this.#mayLackTool(ref)) this.#passOver(ref);
      this.#try();
    });
  }

  /** False when its caller left on hearing of the retry. */
  #send(ref: InstanceRef): boolean {
    this.#stepOutOfLine();
    if (this.#lastFailure !== undefined) this.#tellRetry(this.#lastFailure);
    if (this.#subscriber.closed) return false;
    this.#asked = ref;
    const mayRepeat = this.#isRepeatableOn(ref);
    const { request, upstream } = this.#order;
    const exchange$ = ref.exchange(request, {
      finished: (ending) => this.#finished(ref, ending),
      overdue: () => this.#overdue,
      rested: () => this.#order.group.line.advance(),
      upstream,
    });
    // Set before subscribing: an attempt that fails at once is followed by the next one in there.
    const attempt = new Subscription();
    this.#attempt = attempt;
    attempt.add(
      exchange$.subscribe({
        next: (event) => this.#pass(ref, event),
        error: (thrown: unknown) => this.#failed(ref, asGatewayError(thrown), mayRepeat),
        complete: () => this.#subscriber.complete(),
      }),
    );
    return true;
  }

  #pass(ref: InstanceRef, event: ExchangeEvent): void {
    this.#isAnswering = true;
    this.#deadline.heard();
    const passed = event.kind === 'request' ? this.#deadline.standStillFor(event) : event;
    this.#subscriber.next({ event: passed, instanceId: ref.id, serverId: ref.serverId });
  }

  #failed(ref: InstanceRef, error: GatewayError, mayRepeat: boolean): void {
    this.#attempt = undefined;
    this.#lastFailure = { ref, error };
    this.#exclude(ref);
    if (this.#mayGoOn(error, mayRepeat)) this.#try();
    else this.#giveUp();
  }

  #mayGoOn({ delivered }: GatewayError, mayRepeat: boolean): boolean {
    const { pinned, group } = this.#order;
    if (this.#isAnswering || pinned !== undefined || this.#retries >= group.policy.maxRetries) return false;
    return delivered === 'no' || (delivered === 'unknown' && mayRepeat);
  }

  /** Asked when somebody is there to repeat it: a repeat that nobody can take costs nothing. */
  #affords({ delivered }: GatewayError): boolean {
    return delivered === 'no' || this.#parts.budget.take();
  }

  /** Asked before sending: afterwards the session that knew the tool may be gone. */
  #isRepeatableOn(ref: InstanceRef): boolean {
    if (this.#tool !== undefined) return ref.tools?.isRepeatable(this.#tool) ?? false;
    return METHODS[this.#order.request.method]?.repeatable ?? false;
  }

  #tellRetry({ ref, error }: { readonly ref: InstanceRef; readonly error: GatewayError }): void {
    this.#retries += 1;
    const { method } = this.#order.request;
    this.#parts.emit({ type: 'exchange.retried', ...factOf(ref), method, code: error.code });
  }

  /** Joins the line, or keeps its place there, while somebody who may serve it is only full. */
  #wait(): void {
    const { group, pinned } = this.#order;
    const isWorthIt =
      pinned === undefined ? group.pool.isFull(this.#tried) : this.#mayServe(pinned) && isFull(pinned);
    if (!isWorthIt) this.#giveUp();
    if (!isWorthIt || this.#leaveLine !== undefined) return;
    const giveUp = () => this.#giveUp(this.#failure() ?? queueFull(group.template));
    this.#leaveLine = group.line.join(group.longestLine, () => this.#try(), giveUp);
    if (this.#leaveLine === undefined) giveUp();
  }

  #stepOutOfLine(): void {
    this.#leaveLine?.();
    this.#leaveLine = undefined;
  }

  #failure(): GatewayError | undefined {
    return this.#lastFailure && atInstance(this.#lastFailure.error, this.#lastFailure.ref.id);
  }

  #whyNobody(): GatewayError {
    const { group, pinned } = this.#order;
    const { template } = group;
    if (!this.#parts.isAccepting()) return shuttingDown();
    const members = this.#parts.fleet.members(template);
    const mayBeThere =
      pinned === undefined && members.some((one) => !this.#tried?.has(one.id) && mayComeBack(one));
    if (this.#lacksTool && this.#tool !== undefined && !mayBeThere) return toolNotFound(this.#tool, template);
    if (pinned === undefined) return noHealthyInstance(template, whyNobody(members));
    return backendUnavailable(`"${pinned.id}" is ${pinned.state}`, { delivered: 'no' });
  }

  /** The last word. A call that never reached an instance is told as refused; one that did was told by its end there. */
  #giveUp(error: GatewayError = this.#failure() ?? this.#whyNobody()): void {
    const { method } = this.#order.request;
    const { template } = this.#order.group;
    this.#stepOutOfLine(); // first: what the caller does in its error handler may move the line
    if (this.#asked === undefined) {
      this.#parts.emit({ type: 'exchange.refused', atMs: Date.now(), template, method, code: error.code });
    }
    this.#subscriber.error(error);
  }

  #finished(ref: InstanceRef, { outcome, durationMs, error }: Ending): void {
    const { method } = this.#order.request;
    const failure = error === undefined ? {} : { code: error.code };
    this.#parts.emit({ type: 'exchange.finished', ...factOf(ref), method, outcome, durationMs, ...failure });
    this.#order.group.line.advance();
  }

  #late(passedMs: number): void {
    const mayHaveArrived = this.#attempt !== undefined || this.#lastFailure?.error.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    this.#overdue = this.#asked === undefined ? overdue : atInstance(overdue, this.#asked.id);
    this.#giveUp(this.#overdue);
  }
}

function isFull({ inFlight, capacity }: InstanceRef): boolean {
  return inFlight >= capacity;
}
