// Records every request that may change the registry, the accounts or the settings, and every login, with any outcome. Never
// bodies, queries or credentials.

import type { Audit } from '../../auth/auth.ts';
import { NO_PRINCIPAL } from '../../domain/account.ts';
import { asGatewayError } from '../../domain/errors.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { Proxies } from '../proxies.ts';
import type { HttpContext, RouteMiddleware } from '../request.ts';
import { CLIENT_CLOSED_REQUEST, ClientGone } from '../request.ts';
import type { RouteAccess } from '../route.ts';

type AuditedRoute = Pick<RouteAccess, 'method' | 'path' | 'scope'>;

/** The steps that record the requests of a route: one, or none. They come first, so that refusals are recorded, too. */
export type AuditTrail = (route: AuditedRoute) => RouteMiddleware[];

const MINUTE_MS = 60_000;

/**
 * Makes the steps of one app. The log keeps a bounded number of entries, and no caller may push out those of others:
 * refusals of one caller are recorded up to a number per minute, all unauthenticated callers together being one, and
 * requests over the rate limit are not recorded. `now` is monotonic, in ms.
 */
export function auditTrail(
  audit: Audit,
  proxies: Pick<Proxies, 'address'>,
  now: () => number = () => performance.now(),
): AuditTrail {
  let minuteEndsAtMs = 0;
  /** Refusals of this minute by caller: at most as many callers as there are accounts. */
  const refusals = new Map<string, number>();
  const isOneTooMany = (actorId: string): boolean => {
    if (now() >= minuteEndsAtMs) {
      minuteEndsAtMs = now() + MINUTE_MS;
      refusals.clear();
    }
    const count = (refusals.get(actorId) ?? 0) + 1;
    refusals.set(actorId, count);
    return count > HTTP_LIMITS.recordedRefusalsPerMinute;
  };

  const record = (action: string, { state, path, req }: HttpContext, status: number): void => {
    const { requestId, principal = NO_PRINCIPAL, trail } = state;
    const actor = trail?.actor ?? (principal === NO_PRINCIPAL ? UNKNOWN : principal);
    if (status === TOO_MANY_REQUESTS && actor !== UNKNOWN) return;
    if ((actor === UNKNOWN || status >= 400) && isOneTooMany(actor.id)) return;
    const address = proxies.address(req);
    audit.record({
      actor: actor.id,
      actorName: actor.name,
      action,
      subject: trail?.subject ?? path,
      status,
      ...(address === undefined ? {} : { address }),
      requestId,
    });
  };

  return (route) => (isAudited(route) ? [recording(`${route.method} ${route.path}`, record)] : []);
}

const TOO_MANY_REQUESTS = 429;
const UNKNOWN = { id: 'unknown', name: 'unknown' };

/** True for routes that change something, except calls to backends. */
function isAudited({ method, scope }: AuditedRoute): boolean {
  return method !== 'GET' && [scope].flat().some((one) => one !== 'tools:call' && one !== 'gateway:read');
}

function recording(
  action: string,
  record: (action: string, context: HttpContext, status: number) => void,
): RouteMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (thrown) {
      const isGone = thrown instanceof ClientGone;
      record(action, context, isGone ? CLIENT_CLOSED_REQUEST : asGatewayError(thrown).status);
      throw thrown;
    }
    record(action, context, context.res.statusCode);
  };
}
