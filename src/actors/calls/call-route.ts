// The interface of a route: it chooses the next instance of a call, and the conversation in which the call is sent. The
// call asks its route in the same synchronous block in which it counts itself at the instance. Each implementation has a
// file: direct-route.ts, stateless-route.ts, and session-route.ts of src/actors/sessions. Source: ADR 384.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { RequestTrace } from '../../domain/calls/request-trace.ts';
import type { FailedAttempt, TryKind } from '../../domain/calls/retry-rules.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { GatewayEvent } from '../../domain/events/events.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { CallConversation } from '../../transports/transport.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TrustOf } from '../instances/tool-trust.ts';
import type { AttemptEnding } from './call-events.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { Tries } from './tries.ts';

/** Says where a call can go next; the call itself decides whether it goes on (call.ts). Source: ADR 384. */
export interface CallRoute {
  /** The only instance that may answer at the moment; undefined when several may. */
  readonly onlyInstance: InstanceRef | undefined;
  /** The instance to which the session of the call is bound: there it is repeated, or the session moves. Default: it has no session. */
  readonly boundAt?: InstanceRef | undefined;
  /**
   * The next step of the call. `kind`: how the call goes on after a failure or a long silence of an attempt, or of the opening
   * before it; undefined at first, and after a wait. `failed`: how the failed attempt was sent; undefined without one, and for
   * an opening.
   */
  step(call: RunningCall, kind?: TryKind, failed?: AttemptPlan): Step;
  /** Called when the call is over: releases what the route holds for it. */
  end?(): void;
}

/**
 * What the call does next. It sends its request, or waits until `until$`, which is cold, emits once; then it asks its route
 * again. An error of `until$` refuses the call. `full`: all instances that may take the call are at their capacity. `none`: no
 * instance may.
 */
export type Step =
  | SendStep
  | { readonly kind: 'wait'; readonly until$: Observable<unknown> }
  | 'full'
  | 'none';

/** The step that sends the call to this instance now, in the same synchronous block (see Pool.pick). */
export interface SendStep {
  readonly kind: 'send';
  readonly ref: InstanceRef;
  /**
   * How the request is sent; or a cold Observable that emits once: the gateway's own answer, or undefined when an opening is
   * done and the route is to be asked again. Its error counts as a failed attempt there. Called only when the call is about to
   * be sent, because a dedicated conversation may be taken here. Throws what an opening may throw.
   */
  plan(): AttemptPlan | Observable<FinalEvent | undefined>;
}

/** What all calls of one gateway share. */
export interface CallDeps extends Timing {
  readonly fleet: Fleet;
  readonly emit: (event: GatewayEvent) => void;
  /** The trusted tool definitions of a template. */
  readonly trustOf: TrustOf;
  /** The longest duration of a call in ms; a longer timeout extends it. Default: LIMITS.callDefaultBoundMs. */
  readonly maxCallMs?: number | undefined;
  readonly budget: RetryBudget;
  /** False while the gateway closes: no new call is started then. */
  readonly isAccepting: () => boolean;
  /** The parent span of calls that have no span of their own; undefined while nothing is traced. */
  readonly trace: () => RequestTrace | undefined;
}

/** The fixed input of one call, besides its request. */
export interface CallOptions {
  readonly group: TemplateGroup;
  readonly route: CallRoute;
  /** True: no instance gets a tool that it does not list. False: only while definitions have to be approved. */
  readonly refusesUnknownTools: boolean;
  /** The timeout that the caller asked for, in ms. Undefined: timeoutFor chooses by view, tool and template. */
  readonly timeoutMs?: number | undefined;
}

/** A running call, as its route, its deadline and its attempts see it. They do not import Call, since circular imports are refused. */
export interface RunningCall {
  readonly tries: Tries;
  /** True while the backend waits for the client: the call uses no capacity. */
  readonly isAwaitingClient: boolean;
  /** The time at which the first timeout ends, if no message restarts it, in ms of the clock. */
  readonly deadline: { readonly timeoutAtMs: number };
  giveUp(error: GatewayError): void;
  /** An attempt has failed, and is not under way any more: the call goes on elsewhere, or gives up. `plan`: that of the attempt. */
  goOn(failed: FailedAttempt<InstanceRef>, plan: AttemptPlan): void;
  /** The timeout or the hard maximum has passed; called once. `passedMs`: the duration of the call in ms. */
  timedOut(passedMs: number): void;
  /**
   * A third of the timeout has passed, and no message came before. Returns the clock time in ms at which it is called
   * again. Source: ADR 40.
   */
  onSilent(): number;
}

/** How one attempt is sent: its request, and the conversation that carries it. */
export interface AttemptPlan {
  readonly request: ExchangeRequest;
  /** The conversation that carries the request. Undefined: the transport of the instance. */
  readonly conversation?: CallConversation | undefined;
  /** Gets each event of the backend before the client does. Returns false to withhold the event from the client. */
  receive?(event: ExchangeEvent): boolean;
  ended?(ending: AttemptEnding): void;
}
