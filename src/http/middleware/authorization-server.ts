// Gives the authorization server its requests. Source: ADR 203.

import type { LazyAuthorizationServer } from '../../authorization-server/lazy-authorization-server.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { HttpMiddleware } from '../context.ts';

/** Answers the requests that are for the authorization server; passes others on. */
export function authorizationServerRequests(
  server: LazyAuthorizationServer,
  proxies: Proxies,
): HttpMiddleware {
  return async ({ path, req: request, res: response, state }, next) => {
    const route = server.routeOf(path, proxies.host(request));
    if (route === undefined) return next();
    state.route = route;
    response.setHeader('X-Request-ID', state.requestId);
    await server.serve({
      request,
      response,
      path,
      address: proxies.address(request) ?? 'unknown',
      requestId: state.requestId,
      isLocal: proxies.isLocal(request),
      isForeign: state.isSameHost !== true && server.isForeign(request),
    });
  };
}
