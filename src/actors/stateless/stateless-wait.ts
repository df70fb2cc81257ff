// How long a call waits until it has its conversation: what is left of its time, or half of that where another instance
// could take it. The conversation is opened all the same, for those who come later: nobody ends it for being slow.

import { from, Observable, race } from 'rxjs';
import { backendTimeout } from '../../domain/backend-errors.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Conversation } from '../instances/conversation.ts';

/** The time of one call. */
export interface CallTime {
  /** When it came, in ms of the clock. */
  readonly cameAtMs: number;
  /** From then to its first answer. */
  readonly timeoutMs: number;
}

/** What is left of it, in ms; 0 and less: nothing. */
export function leftMs(clock: Pick<Clock, 'now'>, { cameAtMs, timeoutMs }: CallTime): number {
  return cameAtMs + timeoutMs - clock.now();
}

/**
 * Cold: emits the conversation when it is open and was told which log lines are wanted. Errors like its opening;
 * BACKEND_TIMEOUT, `delivered: 'no'`, when that took too long. `isSpare`: another instance could take the call.
 */
export function opened(
  conversation: Conversation,
  logLevel: string | undefined,
  clock: Clock,
  time: CallTime,
  isSpare: boolean,
): Observable<Upstream> {
  const late$ = new Observable<never>((subscriber) => {
    const waitMs = Math.ceil(leftMs(clock, time) / (isSpare ? 2 : 1));
    return clock.alarm(Math.max(0, waitMs), () => {
      const passedMs = Math.round(clock.now() - time.cameAtMs);
      subscriber.error(backendTimeout(passedMs, 'no'));
    });
  });
  return race(from(ready(conversation, logLevel)), late$);
}

async function ready(conversation: Conversation, logLevel: string | undefined): Promise<Upstream> {
  const upstream = await conversation.opened;
  if (logLevel !== undefined) await conversation.wantLevel(logLevel);
  return upstream;
}
