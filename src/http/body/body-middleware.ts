// The middleware that reads the bodies of one app: which reader a route has, and how many bytes it may read.

import { HTTP_LIMITS } from '../limits.ts';
import { type BodyCosts, body } from '../middleware/body.ts';
import type { HttpMiddleware, KoaContext, RouteContext, RouteMiddleware } from '../request.ts';
import type { HttpRoute } from '../routing/route.ts';
import { koaBodyReader, readDirect } from './readers.ts';

export interface BodyMiddleware {
  /** For a route without koa's context; undefined when only koa's reader reads its body. */
  direct(route: HttpRoute): readonly RouteMiddleware[] | undefined;
  /** For any route with koa's context. */
  of(route: HttpRoute): readonly HttpMiddleware<KoaContext & RouteContext>[];
}

/** `maxBodyBytes`: the setting, for all bodies but forms. */
export function bodyMiddleware(maxBodyBytes: number, costs: BodyCosts): BodyMiddleware {
  const formBytes = Math.min(maxBodyBytes, HTTP_LIMITS.formBytes);
  const readers = {
    short: body(readDirect, formBytes, 'short', costs, HTTP_LIMITS.formFields),
    call: body(readDirect, maxBodyBytes, 'call', costs),
    form: body(readDirect, formBytes, 'form', costs, HTTP_LIMITS.formFields),
    bytes: body(readDirect, maxBodyBytes, 'bytes', costs),
  };
  const koaBody = body(koaBodyReader(), maxBodyBytes, 'json', costs, HTTP_LIMITS.managementValues);
  const direct: BodyMiddleware['direct'] = (route) => {
    if (route.request.body === undefined) return [];
    const { bodyKind = 'json' } = route;
    return bodyKind === 'json' ? undefined : [readers[bodyKind]];
  };
  return { direct, of: (route) => direct(route) ?? [koaBody] };
}
