// One attempt at an instance of this node, for a call that another node runs. It counts at the instance like any other
// attempt. The calling node decides about timeouts and retries. This node only resends after a repair, and ends the attempt
// after the longest time of the call, in case the other is frozen. Source: ADR 170, ADR 384.

import { Observable } from 'rxjs';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendTimeout } from '../../domain/errors/backend-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { Attempt, type AttemptOwner } from './attempt.ts';
import type { AttemptPlan } from './call-route.ts';

/** Extra time before this node ends the attempt, in ms: normally the node that runs the call has ended it by then. */
const GRACE_MS = 1_000;

/**
 * Sends a request as the plan says, and emits like an exchange in its conversation; cold. `count` gets +1 and -1 whenever the
 * attempt begins or stops using capacity.
 */
export function hostedAttempt(
  group: TemplateGroup,
  ref: InstanceRef,
  plan: AttemptPlan,
  count: (change: 1 | -1) => void,
  { now, alarm }: Clock,
): Observable<ExchangeEvent> {
  return new Observable((subscriber) => {
    const { longestMs = LIMITS.callHardBoundMs } = plan.request;
    const owner: AttemptOwner = {
      deadline: { beganAtMs: now(), needsProgress: false, longestLeftMs: longestMs },
      now,
      onEvent: (_attempt, event) => subscriber.next(event),
      failed: (failed, error) => {
        subscriber.error(error);
        failed.end();
      },
      completed: () => subscriber.complete(),
      setAwaitingClient: (isAwaitingClient) => count(isAwaitingClient ? -1 : 1),
      ended: () => count(-1),
    };
    const attempt = new Attempt(owner, group, ref, plan, 1, undefined);
    count(1);
    attempt.start();
    const disarm = alarm(longestMs + GRACE_MS, () => subscriber.error(backendTimeout(longestMs)));
    return () => {
      disarm();
      attempt.end();
    };
  });
}
