// Authorizes a matched request before its body is read: credentials, rate limit, scope, template; and refuses permitted
// requests that have to come later. src/auth verifies and counts; when it answers at once, no promise is created.

import type { ServerResponse } from 'node:http';
import type { Next } from 'koa';
import type { Auth } from '../../auth/auth.ts';
import { FREE_MESSAGES_PER_SECOND, type RateLimiter } from '../../auth/limits/rate-limiter.ts';
import { NO_PRINCIPAL, type Principal } from '../../domain/accounts/principal.ts';
import { opens } from '../../domain/accounts/resource.ts';
import {
  accountsFromHereOnly,
  invalidCredentials,
  tooManyFreeMessages,
} from '../../domain/errors/account-errors.ts';
import { gatewayStarting } from '../../domain/errors/gateway-errors.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import {
  callerCheck,
  callerRefusalOf,
  consumeRateLimit,
  type MayUsePath,
  readsRegistry,
} from '../callers/caller-check.ts';
import { credentialsOf } from '../callers/caller-credentials.ts';
import { resourceOfRoute } from '../callers/challenge.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { Challenge, RouteContext, RouteMiddleware } from '../context.ts';
import type { UnreadAnswers } from '../replies/unread-answers.ts';
import type { HttpRoute } from '../routing/route.ts';

interface AuthorizeOptions {
  readonly auth: Pick<Auth, 'authenticate' | 'limiter'>;
  readonly proxies: Pick<Proxies, 'address' | 'host'>;
  readonly mayUsePath: MayUsePath;
  readonly challenge?: Challenge | undefined;
  readonly connections?: UnknownCallers | undefined;
}

/** Notes the answers to unknown callers, before the bodies of their requests are read. */
export interface UnknownCallers {
  receive(response: ServerResponse): void;
}

/**
 * Authorizes a request and leaves `principal`, `check`, `rateLimit` and `challenge` in the state. In this order:
 * 401 for bad credentials, 429 over the limit (unless the route is uncounted), 403 without the scope, 404 for a
 * template that the principal may not use. Requests that are refused after counting stay counted, so that probing
 * is limited. Open routes need no credentials and count nothing. Handlers count the requests of JSON-RPC routes,
 * because one HTTP request may hold several or none.
 */
export function authorize(
  route: Pick<HttpRoute, 'path' | 'scope' | 'speaks' | 'isUncounted'>,
  { auth, proxies, mayUsePath, challenge, connections }: AuthorizeOptions,
): RouteMiddleware {
  if (route.scope === 'open')
    return ({ res: response }, next) => {
      connections?.receive(response);
      return next();
    };
  const anyOf = [route.scope].flat();
  const check = callerCheck(anyOf, auth, proxies, mayUsePath);
  const resourceOf = resourceOfRoute(route.path);
  const isCountedHere = route.speaks !== 'json-rpc' && route.isUncounted !== true;
  const admit = (context: RouteContext, next: Next, principal: Principal): unknown => {
    const { state, params } = context;
    // This check comes before the state has the principal: such a token has no caller here.
    if (principal.client !== undefined && !opens(principal.client.audience, resourceOf(params.template)))
      throw invalidCredentials('The token is for another resource');
    state.principal = principal;
    state.check = check;
    if (!isCountedHere) state.rateLimit = auth.limiter.peek(principal);
    const counted = isCountedHere ? consumeRateLimit(state, auth.limiter, 1) : undefined;
    return counted === undefined
      ? pass(context, next, principal)
      : counted.then(() => pass(context, next, principal));
  };
  const pass = ({ params }: RouteContext, next: Next, principal: Principal): unknown => {
    const refusal = callerRefusalOf(principal, anyOf, params.template, mayUsePath);
    if (refusal !== undefined) throw refusal;
    return next();
  };
  return (context, next) => {
    context.state.isPrivate = true;
    if (challenge !== undefined) context.state.challenge = challenge;
    const address = () => proxies.address(context.req) ?? 'unknown';
    const principal = auth.authenticate(credentialsOf(context, proxies), address);
    if (principal instanceof Promise) return principal.then((known) => admit(context, next, known));
    return admit(context, next, principal); // nearly always: no function is made for it
  };
}

/**
 * One middleware before the body is read, or none: refuses permitted requests that must be repeated later. Throws
 * RATE_LIMIT_EXCEEDED at the MCP endpoint for a caller without requests left that sends too many messages, even of kinds that
 * do not count as requests. Throws NO_HEALTHY_INSTANCE while the gateway starts, because a template that is not loaded yet is
 * not unknown. Throws QUEUE_FULL for a request to servers of a caller with too many unread bytes. Without `limiter` no
 * messages are counted: another node has counted them.
 */
export function admission(
  { scope, speaks, asksServers = false }: Pick<HttpRoute, 'scope' | 'speaks' | 'asksServers'>,
  gateway: Pick<Gateway, 'phase'>,
  unread: Pick<UnreadAnswers, 'requireRoom'>,
  limiter?: Pick<RateLimiter, 'takeFree'>,
): RouteMiddleware[] {
  const free = speaks === 'json-rpc' ? limiter : undefined;
  const needsRegistry = scope !== 'open' && readsRegistry([scope].flat());
  if (free === undefined && !needsRegistry && !asksServers) return [];
  return [
    (context, next) => {
      const { principal = NO_PRINCIPAL } = context.state;
      if (free?.takeFree(principal) === false) throw tooManyFreeMessages(FREE_MESSAGES_PER_SECOND);
      if (needsRegistry && gateway.phase === 'starting') throw gatewayStarting();
      if (asksServers) unread.requireRoom(context);
      return next();
    },
  ];
}

/**
 * One middleware for routes that change accounts while authentication is off, else none. Every caller is an admin then, but the
 * accounts remain when authentication is on again: like commands, they are changed from this machine only, and not by web pages.
 */
export function localAccounts(
  { method, path, scope }: Pick<HttpRoute, 'method' | 'path' | 'scope'>,
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
