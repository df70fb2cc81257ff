// The middleware that reads the bodies of one app: which reader a route has, and how many bytes it may read.

import { LIMITS } from '../../domain/limits.ts';
import type { HttpMiddleware, KoaContext, RouteContext, RouteMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { type BodyCosts, body } from '../middleware/body.ts';
import type { HttpRoute } from '../routing/route.ts';
import { koaBodyReader, readDirect } from './readers.ts';

export interface BodyMiddleware {
  /** The middleware of a route without koa's context; undefined when only koa's reader reads its body. */
  direct(route: HttpRoute): readonly RouteMiddleware[] | undefined;
  /** The middleware of a route with koa's context. */
  of(route: HttpRoute): readonly HttpMiddleware<KoaContext & RouteContext>[];
}

/** `maxBytes`: the largest body; that of a form has a smaller bound of its own. */
export function bodyMiddleware(maxBytes: number, costs: BodyCosts): BodyMiddleware {
  const form = { maxBytes: Math.min(maxBytes, HTTP_LIMITS.formBytes), mostValues: LIMITS.formFields };
  const readers = {
    short: body(readDirect, { kind: 'short', ...form }, costs),
    call: body(readDirect, { kind: 'call', maxBytes }, costs),
    form: body(readDirect, { kind: 'form', ...form }, costs),
    bytes: body(readDirect, { kind: 'bytes', maxBytes }, costs),
  };
  const managed = { kind: 'json', maxBytes, mostValues: HTTP_LIMITS.managementValues } as const;
  const koaBody = body(koaBodyReader(), managed, costs);
  const direct: BodyMiddleware['direct'] = (route) => {
    if (route.request.body === undefined) return [];
    const { bodyKind = 'json' } = route;
    return bodyKind === 'json' ? undefined : [readers[bodyKind]];
  };
  return { direct, of: (route) => direct(route) ?? [koaBody] };
}
