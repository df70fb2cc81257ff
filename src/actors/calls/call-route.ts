// What a route of calls is: it knows the next instance of a call, and how the call travels there. The call counts
// itself in the synchronous block in which it asks its route. Each route has a file: balanced-route.ts,
// bound-route.ts, stateless-route.ts, and session-route.ts of src/actors/sessions. Source: ADR 68, ADR 71.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent, FinalEvent } from '../../domain/calls/exchange-event.ts';
import type { RequestTrace } from '../../domain/calls/request-trace.ts';
import type { DecisionAtBound } from '../../domain/calls/retry-rules.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { CallConversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import type { AttemptEnding } from './call-events.ts';
import type { Deadline, DeadlineDeps } from './deadline.ts';
import type { Retries, RetryBudget } from './retries.ts';

/** Ids of the instances that a call does not try again; undefined while there are none. */
export type Tried = ReadonlySet<string> | undefined;

/** Where a call may go on. The call decides whether it does (call.ts). Source: ADR 131, ADR 325. */
export interface CallRoute {
  /** The only instance that may answer now: the call is sent to no other. */
  readonly bound: InstanceRef | undefined;
  /** The next step of the call; `trouble`: why it asks, if it was sent already. */
  step(call: RunningCall, trouble?: Trouble): Step;
  /** The call is over. Releases what is held for it. Default: nothing is. */
  end?(): void;
}

/**
 * What the call does next: send, wait, or one of these. `full`: an instance that may take the call is only full.
 * `none`: none may take it. `reopen`: the conversation of the failed attempt had ended unnoticed, so that no backend
 * got the request: the attempt counts as not made, and the call asks again.
 */
export type Step = SendStep | WaitStep | { readonly kind: 'full' | 'none' | 'reopen' };

/** The steps without data; one object each for all calls. */
export const FULL: Step = { kind: 'full' };
export const NONE: Step = { kind: 'none' };
export const REOPEN: Step = { kind: 'reopen' };

/** The call may be sent to this instance now, in the same synchronous block: see Pool.pick. */
export interface SendStep {
  readonly kind: 'send';
  readonly ref: InstanceRef;
  /** How the call travels there. Called when it does, since that may take a lease. Throws like an opening. */
  plan(): AttemptPlan | LocalAnswer | Opening;
}

/** The call asks again when this has emitted, once. An error is a refusal. Cold. */
export interface WaitStep {
  readonly kind: 'wait';
  readonly until$: Observable<unknown>;
}

/**
 * What the call needs at the instance is opened first: it asks again when this has emitted, once. An error is a
 * failed attempt there. Cold.
 */
export interface Opening {
  readonly kind: 'opening';
  readonly opened$: Observable<unknown>;
}

/** Nothing is sent: emits the answer, or errors like an attempt. Cold. */
export interface LocalAnswer {
  readonly kind: 'answer';
  readonly answer$: Observable<FinalEvent>;
}

/**
 * `failed`: that attempt failed, or what came before it; no other one is under way. `silent`: no message came for a long time; a
 * wait ends the attempt. `hedge`: it continues, and one more attempt may begin beside it, now or after a wait.
 */
export interface Trouble {
  readonly kind: 'failed' | 'silent' | 'hedge';
  readonly error: GatewayError;
  /** Undefined when nothing was sent. */
  readonly plan: AttemptPlan | undefined;
  /** After a failure at the only instance that may answer: what the rules say. */
  readonly atBound?: DecisionAtBound | undefined;
}

/** What all calls of a gateway share. */
export interface CallDeps extends DeadlineDeps {
  /** For tasks that come due by the thousand. */
  readonly scheduler: Pick<TaskScheduler, 'run' | 'each'>;
  readonly budget: RetryBudget;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
  /** For calls without a span; undefined while nothing is traced. Default: never. */
  readonly trace?: () => RequestTrace | undefined;
}

/** What is fixed before a call begins. */
export interface CallInput {
  readonly group: TemplateGroup;
  readonly request: ExchangeRequest;
  readonly route: CallRoute;
  /** The tool that an instance must have; undefined when any instance will do, or the backend itself may reject the tool. */
  readonly wantedTool: string | undefined;
  /** The timeout that the caller wants, in ms. Default: as in timeoutFor. */
  readonly timeoutMs?: number | undefined;
}

/** The call as its route sees it. */
export interface RunningCall {
  readonly tried: Tried;
  /** True while the backend waits for the client: the call uses no capacity. */
  readonly isAwaitingClient: boolean;
  readonly deadline: Pick<Deadline, 'timeoutAtMs'>;
  readonly retries: Pick<Retries, 'failure' | 'retriesMade'>;
  giveUp(error: GatewayError): void;
}

/** How a call travels to its instance: with which request, in which conversation. */
export interface AttemptPlan {
  readonly request: ExchangeRequest;
  /** The conversation for it; undefined: that of the instance. */
  readonly conversation?: CallConversation | undefined;
  /** False for messages that the client must not get. */
  receive?(event: ExchangeEvent): boolean;
  ended?(ending: AttemptEnding): void;
}

/** Sends a request as it is. The plan is the step itself: one object per call. */
export class DirectStep implements SendStep, AttemptPlan {
  readonly kind = 'send';
  readonly ref: InstanceRef;
  readonly request: ExchangeRequest;
  readonly conversation: CallConversation | undefined;

  constructor(ref: InstanceRef, request: ExchangeRequest, conversation?: CallConversation) {
    this.ref = ref;
    this.request = request;
    this.conversation = conversation;
  }

  plan(): AttemptPlan {
    return this;
  }
}
