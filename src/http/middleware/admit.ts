// The door of a matched route: who is calling, is it one request too many, may they do this, may they see this template.
// It stands before the body is read. Verifying and counting are src/auth; it waits for neither when they answer at once.

import type { Next } from 'koa';
import type { Auth, RateLimit } from '../../auth/auth.ts';
import { mayDo, mayUse, NOBODY, type Principal, type Scope } from '../../domain/account.ts';
import {
  accountsNeedAllTemplates,
  insufficientPermissions,
  rateLimitExceeded,
} from '../../domain/account-errors.ts';
import { templateNotFound } from '../../domain/errors.ts';
import type { RouteContext, RouteMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { RouteFacts } from '../route.ts';

/**
 * Lets a request in and leaves `principal` and `rateLimit` in the state. In this order: 401 for bad credentials, 429 over
 * the limit, 403 without the scope, 404 for a template that is not theirs, in the words of one that does not exist. A
 * request that is refused after the count has been counted: probing is limited like anything else. Open routes ask
 * nothing and count nothing. Source: decisions, "Authentication" and "Limits".
 */
export function admit(route: Pick<RouteFacts, 'scope'>, auth: Auth): RouteMiddleware {
  if (route.scope === 'open') {
    return (context, next) => {
      context.state.principal = NOBODY;
      return next();
    };
  }
  const anyOf: readonly Scope[] = typeof route.scope === 'string' ? [route.scope] : route.scope;

  const count = (principal: Principal, context: RouteContext, next: Next): Promise<unknown> => {
    context.state.principal = principal;
    if (principal.hourlyLimit === undefined) return enter(principal, anyOf, context, next);
    const window = auth.limiter.take(principal);
    if (!(window instanceof Promise)) return weigh(window, principal, context, next);
    return window.then((counted) => weigh(counted, principal, context, next));
  };
  const weigh = (window: RateLimit, principal: Principal, context: RouteContext, next: Next) => {
    context.state.rateLimit = window;
    const { limit, retryAfterSeconds } = window;
    if (retryAfterSeconds !== undefined) throw rateLimitExceeded(limit, retryAfterSeconds);
    return enter(principal, anyOf, context, next);
  };

  return (context, next) => {
    const { authorization, 'x-api-key': key } = context.req.headers;
    // Node joins what is sent twice: only a few headers ever come as a list, and this is none of them.
    const apiKey = typeof key === 'string' ? key : undefined;
    const principal = auth.authenticate({ authorization, apiKey });
    if (!(principal instanceof Promise)) return count(principal, context, next);
    return principal.then((verified) => count(verified, context, next));
  };
}

function enter(
  principal: Principal,
  anyOf: readonly Scope[],
  { params }: RouteContext,
  next: Next,
): Promise<unknown> {
  if (!mayDo(principal, anyOf)) throw insufficientPermissions(anyOf);
  // With an account of its own making it would be limited no more.
  if (principal.templates !== undefined && anyOf.every((scope) => scope === 'admin'))
    throw accountsNeedAllTemplates();
  const { template } = params;
  if (template !== undefined && !mayUse(principal, template)) {
    throw templateNotFound(template.slice(0, HTTP_LIMITS.locCharacters));
  }
  return next();
}
