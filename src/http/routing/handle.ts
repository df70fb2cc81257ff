// The middleware around the routes: `handle` runs a route and writes its reply, `knownPath` checks the names of its
// path early, `unmatched` answers requests without a route.

import type { Router } from '@koa/router';
import type { Auth } from '../../auth/auth.ts';
import { NO_PRINCIPAL } from '../../domain/accounts/principal.ts';
import { methodNotAllowed, routeNotFound } from '../../domain/errors/request-errors.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { credentialsOf } from '../callers/caller-credentials.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { HttpMiddleware, RouteContext, RouteMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { noContent } from '../replies/reply.ts';
import { respond } from '../replies/respond.ts';
import { writeReply } from '../replies/write-reply.ts';
import { HttpRequest, type HttpRequestOptions } from '../request.ts';
import type { Services } from '../services.ts';
import type { EventStreams } from '../sse/event-stream.ts';
import type { HttpRoute, RawInput } from './route.ts';

/** The last middleware of a route: runs its handler and writes the reply. */
export function handle(
  route: HttpRoute,
  services: Services,
  options: HttpRequestOptions & { readonly streams: EventStreams },
): RouteMiddleware {
  return (context) => {
    context.state.route = route.path;
    const request = new HttpRequest(context, options);
    const reply = route.run(inputOf(context, request), services);
    return whenKnown(reply, (value) => writeReply(context, value, options.streams, request));
  };
}

/** Moves the body out of the state, so that its memory can be freed while the handler waits. */
function inputOf(context: RouteContext, request: HttpRequest): RawInput {
  const { state, params } = context;
  const query = context.req.url?.includes('?') === true ? context.querystring : '';
  state.pathName = params.template;
  const { body, bodyFields, principal = NO_PRINCIPAL } = state;
  state.body = undefined;
  state.bodyFields = undefined;
  return { params, query, body, bodyFields, request, principal };
}

/**
 * Refuses invalid names and unknown templates before a body is read, for routes whose later errors are JSON-RPC errors:
 * TEMPLATE_NOT_FOUND; VALIDATION_ERROR for invalid text.
 */
export function knownPath(
  route: Pick<HttpRoute, 'checkPath'>,
  gateway: Pick<Gateway, 'requireExisting' | 'phase'>,
): RouteMiddleware {
  return (context, next) => {
    const { params } = context;
    route.checkPath(params);
    if (params.template !== undefined && gateway.phase !== 'starting')
      gateway.requireExisting(params.template);
    return next();
  };
}

/**
 * Answers requests without a route: OPTIONS on a known path lists its methods, another method is 405, an unknown
 * path is 404. They are not counted, but a known caller with a limit sees its window.
 */
export function unmatched(
  router: Pick<Router, 'match'>,
  auth: Pick<Auth, 'authenticate' | 'limiter'>,
  proxies: Pick<Proxies, 'address' | 'host'>,
): HttpMiddleware {
  return async (context) => {
    const { method, path, state } = context;
    const known = router.match(path, 'OPTIONS').path.flatMap((row) => row.methods);
    const allow = known.length === 0 ? [] : [...new Set([...known, 'OPTIONS'])].sort();
    if (method === 'OPTIONS' && allow.length > 0) {
      respond(context, noContent({ headers: ['Allow', allow.join(', ')] }));
      return;
    }
    try {
      const address = () => proxies.address(context.req) ?? 'unknown';
      state.rateLimit = auth.limiter.peek(await auth.authenticate(credentialsOf(context, proxies), address));
      state.isPrivate = state.rateLimit !== undefined;
    } catch {
      // A request without a known caller has no window.
    }
    const shown = path.slice(0, HTTP_LIMITS.loggedPathCharacters);
    throw allow.length > 0 ? methodNotAllowed(method, shown, allow) : routeNotFound(method, shown);
  };
}
