// One attempt at an instance of this node, for a call that another node runs. It counts at the instance like any other
// attempt. The other node decides about timeouts, retries and other instances; this node only sends a request again in a
// conversation that has repaired the cause of a refusal, and ends the attempt after the longest time of the call, in
// case the other node is frozen. Source: ADR 170, ADR 384.

import { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendTimeout } from '../../domain/errors/backend-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Conversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import { Attempt, type AttemptedCall } from './attempt.ts';

/** Extra time before this node ends the attempt, in ms: normally the node that runs the call has ended it by then. */
const GRACE_MS = 1_000;

interface HostedAttemptOptions {
  readonly group: TemplateGroup;
  readonly ref: InstanceRef;
  readonly conversation: Conversation;
  readonly request: ExchangeRequest;
  /** Gets +1 and -1 whenever the attempt begins or stops using capacity. */
  readonly count: (change: 1 | -1) => void;
  readonly clock: Clock;
}

/** Sends the request and emits like an exchange in `conversation`; cold. */
export function hostedAttempt(options: HostedAttemptOptions): Observable<ExchangeEvent> {
  const { group, ref, conversation, request, count } = options;
  const { now, alarm } = options.clock;
  return new Observable((subscriber) => {
    const { longestMs = LIMITS.callHardBoundMs } = request;
    const call: AttemptedCall = {
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
    const attempt = new Attempt(call, group, ref, { request, conversation }, 1, undefined);
    count(1);
    attempt.start();
    const disarm = alarm(longestMs + GRACE_MS, () => subscriber.error(backendTimeout(longestMs)));
    return () => {
      disarm();
      attempt.end();
    };
  });
}
