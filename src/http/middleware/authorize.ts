// The door of a matched route: who is calling, is it one request too many, may they do this, may they see this template, and
// is it known yet which templates there are.
// It stands before the body is read. Verifying and counting are src/auth; it waits for neither when they answer at once.

import type { Next } from 'koa';
import type { Auth } from '../../auth/auth.ts';
import { NOBODY, type Principal, type Scope } from '../../domain/account.ts';
import { gatewayStarting } from '../../domain/errors.ts';
import type { Gateway } from '../../gateway.ts';
import { callerCheck, credentialsOf, readsRegistry, refusalOf } from '../caller-check.ts';
import type { RouteContext, RouteMiddleware } from '../context.ts';
import { consumeRateLimit } from '../rate-limit.ts';
import type { RouteAccess } from '../route.ts';

/**
 * Lets a request in and leaves `principal`, `check` and `rateLimit` in the state. In this order: 401 for bad credentials, 429 over
 * the limit, 403 without the scope, 404 for a template that is not theirs, in the words of one that does not exist. A
 * request that is refused after the count has been counted: probing is limited like anything else. Open routes ask
 * nothing and count nothing. Where one HTTP request holds several, or none, they are counted by the handler; only the
 * window is looked up here. While the gateway starts, NO_HEALTHY_INSTANCE in front of the registry: what is not loaded yet is
 * not to be called unknown. Source: decisions, "Authentication" and "Limits".
 */
export function authorize(
  route: Pick<RouteAccess, 'scope' | 'speaks'>,
  auth: Auth,
  gateway: Pick<Gateway, 'phase'>,
): RouteMiddleware {
  if (route.scope === 'open') {
    return (context, next) => {
      context.state.principal = NOBODY;
      return next();
    };
  }
  const anyOf: readonly Scope[] = typeof route.scope === 'string' ? [route.scope] : route.scope;

  const check = callerCheck(anyOf, auth);
  const isCountedLater = route.speaks === 'json-rpc';
  const needsRegistry = readsRegistry(anyOf);

  const enter = (principal: Principal, { params }: RouteContext, next: Next): Promise<unknown> => {
    const refusal = refusalOf(principal, anyOf, params.template);
    if (refusal !== undefined) throw refusal;
    if (needsRegistry && gateway.phase === 'starting') throw gatewayStarting();
    return next();
  };

  const count = (principal: Principal, context: RouteContext, next: Next): Promise<unknown> => {
    const { state } = context;
    state.principal = principal;
    state.check = check;
    if (isCountedLater) {
      const window = auth.limiter.look(principal);
      if (window !== undefined) state.rateLimit = window;
      return enter(principal, context, next);
    }
    const counted = consumeRateLimit(state, auth.limiter, 1);
    if (counted === undefined) return enter(principal, context, next);
    return counted.then(() => enter(principal, context, next));
  };

  return (context, next) => {
    context.state.isPrivate = true;
    const principal = auth.authenticate(credentialsOf(context.req));
    if (!(principal instanceof Promise)) return count(principal, context, next);
    return principal.then((verified) => count(verified, context, next));
  };
}
