// What `session_failover` says about a session whose place is lost, and which requests bind a session to its instance.
// Where it goes then is client-session-binding.ts, what it does meanwhile client-session.machine.ts.

import type { ExchangeRequest } from '../../domain/exchange.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import { isRepeatable } from '../calls/failover.ts';
import type { SessionGroup, SessionInstance } from './client-session-types.ts';
import { isTelling } from './client-state.ts';

/** True when a session may go on with another instance, after so many calls that are not safe. */
export function mayMove({ sessionFailover }: BalancerPolicy, unsafeCalls: number): boolean {
  return sessionFailover === 'always' || (sessionFailover === 'auto' && unsafeCalls === 0);
}

/** True when somebody else than this one could take a session of the template. */
export function hasOthers({ pool }: SessionGroup, than: SessionInstance): boolean {
  return pool.candidates.some((candidate) => candidate !== than);
}

/** True when a request may be made twice, and binds a session to no instance. */
export function isSafe(request: ExchangeRequest, at: SessionInstance): boolean {
  return isTelling(request.method) || isRepeatable(request, at);
}
