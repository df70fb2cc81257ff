// Gives the authorization server its requests. Source: ADR 203.

import type { LazyAuthorizationServer } from '../../authorization-server/lazy-authorization-server.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { HttpMiddleware } from '../context.ts';
import { limitReader } from '../replies/unread-answers.ts';
import type { UnknownCallers } from './authorize.ts';

/**
 * Answers the requests that are for the authorization server; passes others on. `connections`: the forms are those of
 * unknown callers.
 */
export function authorizationServerRequests(
  server: Pick<LazyAuthorizationServer, 'routeOf' | 'serve' | 'isForeign'>,
  proxies: Proxies,
  connections?: UnknownCallers,
): HttpMiddleware {
  return async ({ path, req: request, res: response, state }, next) => {
    const route = server.routeOf(path, proxies.host(request));
    if (route === undefined) return next();
    state.route = route;
    connections?.receive(response);
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
    if (response.writableLength > 0) limitReader(response);
  };
}
