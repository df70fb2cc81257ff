// The end of the list: no route took the request. OPTIONS on a known path lists its methods, another method is 405,
// an unknown path is 404, all in the shape of every other answer.

import type { Router } from '@koa/router';
import { methodNotAllowed, routeNotFound } from '../../domain/request-errors.ts';
import type { HttpMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { noContent } from '../reply.ts';
import { respond } from '../respond.ts';

/** Answers what none of the routers did. */
export function unmatched(routers: readonly Pick<Router, 'match'>[]): HttpMiddleware {
  return (context) => {
    const { method, path } = context;
    const allow = methodsFor(path, routers);
    if (method === 'OPTIONS' && allow.length > 0) {
      respond(context, noContent({ headers: ['Allow', allow.join(', ')] }));
      return;
    }
    const shown = path.slice(0, HTTP_LIMITS.loggedPathCharacters);
    throw allow.length > 0 ? methodNotAllowed(method, shown, allow) : routeNotFound(method, shown);
  };
}

function methodsFor(path: string, routers: readonly Pick<Router, 'match'>[]): string[] {
  if (path === '*') return ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST'];
  const rows = routers.flatMap((router) => router.match(path, 'OPTIONS').path);
  const methods = new Set(rows.flatMap((row) => row.methods));
  return methods.size === 0 ? [] : [...methods, 'OPTIONS'].sort();
}
