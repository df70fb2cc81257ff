// Authorizes the caller of a request for a route, and again while its event streams are open; and counts its requests.
// Authentication and the counters are src/auth.

import { isDeepStrictEqual } from 'node:util';
import type { Auth } from '../../auth/auth.ts';
import type { RateLimiter } from '../../auth/limits/rate-limiter.ts';
import type { Scope } from '../../domain/accounts/account.ts';
import { countedIdOfCaller, mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { isRestricted, mayUse } from '../../domain/accounts/rights.ts';
import {
  accountsNeedAllTemplates,
  insufficientPermissions,
  invalidCredentials,
  rateLimitExceeded,
} from '../../domain/errors/account-errors.ts';
import { asGatewayError, type GatewayError, hasCode } from '../../domain/errors/errors.ts';
import { templateNotFound } from '../../domain/errors/registry-errors.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import type { CallerCheck, RequestState } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { credentialsOf } from './caller-credentials.ts';
import type { Proxies } from './proxies.ts';

/** True for routes that need the registry: all but those for admins, which manage accounts. */
export function readsRegistry(anyOf: readonly Scope[]): boolean {
  return !anyOf.includes('admin');
}

/** True when the principal may use the template, or the view, of this name. */
export type MayUsePath = (principal: Principal, name: string) => boolean;

/** INSUFFICIENT_PERMISSIONS, or TEMPLATE_NOT_FOUND for a name that the principal may not use; undefined for an authorized caller. */
export function callerRefusalOf(
  principal: Principal,
  anyOf: readonly Scope[],
  pathName?: string,
  mayUsePath: MayUsePath = mayUse,
): GatewayError | undefined {
  if (!mayDo(principal, anyOf)) return insufficientPermissions(anyOf);
  // An admin with some rights could create an account with all of them.
  if (isRestricted(principal) && anyOf.every((scope) => scope === 'admin')) return accountsNeedAllTemplates();
  if (pathName !== undefined && !mayUsePath(principal, pathName)) return templateNotFound(pathName);
  return undefined;
}

/**
 * Makes the check of a route that needs one of these scopes. It refuses a caller whose credentials are no longer valid or now
 * belong to another principal. On a route without a name it also refuses a caller whose rights have changed, because its
 * events were selected by the earlier ones. While the database is unavailable, no caller is refused.
 */
export function callerCheck(
  anyOf: readonly Scope[],
  auth: Pick<Auth, 'authenticate'>,
  proxies: Pick<Proxies, 'host'>,
  mayUsePath: MayUsePath,
): CallerCheck {
  return (context) => {
    const { principal: before, pathName } = context.state;
    try {
      const refused = whenKnown(auth.authenticate(credentialsOf(context, proxies)), (now) => {
        if (now.id !== before?.id) return invalidCredentials();
        if (pathName === undefined && !isDeepStrictEqual(now, before)) return insufficientPermissions(anyOf);
        const refusal = callerRefusalOf(now, anyOf, pathName, mayUsePath);
        // The name of the called tool is not known here.
        return (
          refusal ??
          (isDeepStrictEqual(now.tools, before?.tools) ? undefined : insufficientPermissions(anyOf))
        );
      });
      return refused instanceof Promise ? refused.catch(refusalAfter) : refused;
    } catch (thrown) {
      return refusalAfter(thrown);
    }
  };
}

function refusalAfter(thrown: unknown): GatewayError | undefined {
  return hasCode(thrown, 'DATABASE_UNAVAILABLE') ? undefined : asGatewayError(thrown);
}

/**
 * Counts requests of the caller, up to a total of `count` for this HTTP request, and stores its window in the state, for the
 * headers of the answer. Throws RATE_LIMIT_EXCEEDED; without a promise when this process counts alone. A caller without a limit
 * is not counted.
 */
export function consumeRateLimit(
  state: RequestState,
  limiter: Pick<RateLimiter, 'take'>,
  count: number,
): void | Promise<void> {
  const { principal, counted = 0 } = state;
  if (count <= counted) return;
  state.counted = count;
  if (principal?.hourlyLimit === undefined) return;
  return whenKnown(
    limiter.take(countedIdOfCaller(principal), principal.hourlyLimit, count - counted),
    (window) => {
      state.rateLimit = window;
      const { limit, retryAfterSeconds } = window;
      if (retryAfterSeconds !== undefined) throw rateLimitExceeded(limit, retryAfterSeconds);
    },
  );
}

/** Requests that a body of this size counts as: one for each started 64 kB, by the work of reading and parsing it. */
export function requestsIn(bodyBytes: number): number {
  return Math.max(1, Math.ceil(bodyBytes / HTTP_LIMITS.requestBlockBytes));
}
