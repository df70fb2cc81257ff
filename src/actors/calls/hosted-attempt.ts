// One attempt for a call that another node runs: counts at its instance like any other. That node decides about
// timeouts, repeats and other instances, except what the conversation here has repaired; here only the longest
// time of the call ends it, in case that node is frozen. Source: ADR 170, ADR 340.

import { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendTimeout } from '../../domain/errors/error-catalogue.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Conversation } from '../../transports/transport.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { TemplateGroup } from '../template-group.ts';
import { Attempt, type AttemptCaller, reportAwaiting, reportEnd } from './attempt.ts';

/** The node that runs the call ends it itself. */
const GRACE_MS = 1_000;

/**
 * Cold. Emits and errors like an exchange in this conversation. `count` gets each change of the number of calls at
 * work, which is one.
 */
export function hostedAttempt(
  group: TemplateGroup,
  ref: InstanceRef,
  conversation: Conversation,
  request: ExchangeRequest,
  count: (change: 1 | -1) => void,
  { now, alarm }: Pick<Clock, 'now' | 'alarm'>,
): Observable<ExchangeEvent> {
  return new Observable((subscriber) => {
    const { outliers } = group.pool;
    const { longestMs = LIMITS.callLongestMs } = request;
    const caller: AttemptCaller = {
      deadline: { beganAtMs: now(), needsProgress: false, longestLeftMs: longestMs },
      now,
      inTurn: (task) => task(),
      onEvent: ({ sent }, event) => {
        outliers.noteMessage(sent);
        subscriber.next(event);
      },
      failed: (_attempt, error) => subscriber.error(error),
      completed: () => subscriber.complete(),
      awaitingClient: (attempt, isAwaitingClient) => {
        count(isAwaitingClient ? -1 : 1);
        reportAwaiting(group, attempt, isAwaitingClient);
      },
      ended: (attempt, ending) => {
        count(-1);
        reportEnd(group, attempt, ending);
      },
    };
    const attempt = new Attempt(caller, ref, { request, conversation }, outliers.sent(ref), 1, undefined);
    count(1);
    attempt.start();
    const disarm = alarm(longestMs + GRACE_MS, () => subscriber.error(backendTimeout(longestMs)));
    return () => {
      disarm();
      attempt.end();
    };
  });
}
