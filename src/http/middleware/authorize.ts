// Authorizes a matched request before its body is read: credentials, rate limit, scope, template, and whether
// the registry is loaded. src/auth verifies and counts; when it answers at once, no promise is created.

import type { Next } from 'koa';
import type { Auth } from '../../auth/auth.ts';
import type { Principal, Scope } from '../../domain/account.ts';
import { accountsFromHereOnly } from '../../domain/error-catalogue.ts';
import { gatewayStarting } from '../../domain/errors.ts';
import type { Gateway } from '../../gateway.ts';
import {
  callerCheck,
  callerRefusalOf,
  consumeRateLimit,
  credentialsOf,
  readsRegistry,
} from '../caller-check.ts';
import type { Proxies } from '../proxies.ts';
import type { RouteContext, RouteMiddleware } from '../request.ts';
import type { RouteAccess } from '../route.ts';

/**
 * Authorizes a request and leaves `principal`, `check` and `rateLimit` in the state. In this order: 401 for
 * bad credentials, 429 over the limit (unless the route is free), 403 without the scope, 404 for a template
 * that does not exist or that the principal may not use. Requests that are refused after counting stay
 * counted, so that probing is limited. Open routes need no credentials and count nothing. Handlers count the
 * requests of JSON-RPC routes, because one HTTP request may hold several or none. While the gateway starts,
 * routes that need the registry answer NO_HEALTHY_INSTANCE: a template that is not loaded yet is not unknown.
 */
export function authorize(
  route: Pick<RouteAccess, 'scope' | 'speaks' | 'isFree'>,
  auth: Pick<Auth, 'authenticate' | 'limiter'>,
  gateway: Pick<Gateway, 'phase'>,
): RouteMiddleware {
  if (route.scope === 'open') return (_context, next) => next();
  const anyOf: readonly Scope[] = typeof route.scope === 'string' ? [route.scope] : route.scope;

  const check = callerCheck(anyOf, auth);
  const isCountedHere = route.speaks !== 'json-rpc' && route.isFree !== true;
  const needsRegistry = readsRegistry(anyOf);

  const authorizePrincipal = (
    principal: Principal,
    { params }: RouteContext,
    next: Next,
  ): Promise<unknown> => {
    const refusal = callerRefusalOf(principal, anyOf, params.template);
    if (refusal !== undefined) throw refusal;
    if (needsRegistry && gateway.phase === 'starting') throw gatewayStarting();
    return next();
  };

  const count = (principal: Principal, context: RouteContext, next: Next): Promise<unknown> => {
    const { state } = context;
    state.principal = principal;
    state.check = check;
    if (!isCountedHere) {
      state.rateLimit = auth.limiter.peek(principal);
      return authorizePrincipal(principal, context, next);
    }
    const counted = consumeRateLimit(state, auth.limiter, 1);
    if (counted === undefined) return authorizePrincipal(principal, context, next);
    return counted.then(() => authorizePrincipal(principal, context, next));
  };

  return (context, next) => {
    context.state.isPrivate = true;
    const principal = auth.authenticate(credentialsOf(context));
    if (!(principal instanceof Promise)) return count(principal, context, next);
    return principal.then((verified) => count(verified, context, next));
  };
}

/**
 * One step for routes that change accounts while authentication is off, else none. Every caller is an admin then, but the
 * accounts remain when authentication is on again: like commands, they are changed from this machine only, and not by web pages.
 */
export function localAccounts(
  { method, path, scope }: Pick<RouteAccess, 'method' | 'path' | 'scope'>,
  isAuthEnabled: boolean,
  proxies: Pick<Proxies, 'isLocal'>,
): RouteMiddleware[] {
  if (isAuthEnabled || scope !== 'admin' || method === 'GET' || !path.startsWith('/auth/')) return [];
  return [
    ({ req }, next) => {
      if (!proxies.isLocal(req) || req.headers.origin !== undefined) throw accountsFromHereOnly();
      return next();
    },
  ];
}
