// Keeps web pages of strangers away from a gateway without authentication: a page that a browser shows may neither
// name this gateway by a domain of its own (DNS rebinding: Host) nor call it from elsewhere (Origin).

import { originNotAllowed } from '../../domain/errors.ts';
import type { HttpContext, HttpMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { Proxies } from '../proxies.ts';
import { noContent } from '../reply.ts';
import { respond } from '../respond.ts';

export interface GuardOptions {
  /** Hosts besides this machine's own names: `gateway.example` on any port, `gateway.example:8080` on that one. */
  readonly allowedHosts: readonly string[];
  /** Origins that may call from a browser: `https://console.example`. `*` and `null` are ignored. */
  readonly allowedOrigins: readonly string[];
  readonly proxies: Proxies;
}

/** Refuses with ORIGIN_NOT_ALLOWED; answers preflights of allowed origins. Source: decisions, "Guard". */
export function guard({ allowedHosts, allowedOrigins, proxies }: GuardOptions): HttpMiddleware {
  const hosts: ReadonlySet<string> = new Set(allowedHosts.map(lowerCase));
  const origins: ReadonlySet<string> = new Set(allowedOrigins.map(lowerCase).filter(isOneOrigin));

  const isHostAllowed = (host: string): boolean => {
    if (LOCAL_HOST.test(host)) return true;
    const written = host.toLowerCase();
    return hosts.has(written) || hosts.has(written.replace(PORT, ''));
  };

  // `GET http://host/path` names a host a second time, and that one counts. Source: RFC 9112 section 3.2.2.
  const isTargetAllowed = (target: string): boolean =>
    ORIGIN_FORM.test(target) || (URL.canParse(target) && isHostAllowed(new URL(target).host));

  return (context, next) => {
    const request = context.req;
    const host = proxies.host(request);
    if (host === undefined || !isHostAllowed(host) || !isTargetAllowed(request.url ?? '')) {
      throw originNotAllowed('The Host of the request is not allowed. See allowed_hosts.');
    }
    const { origin } = request.headers;
    if (origin === undefined) return next();
    const written = origin.toLowerCase();
    if (origins.has(written)) return shareWith(origin, context, next);
    if (written === `${proxies.scheme(request)}://${host}`.toLowerCase()) return next();
    throw originNotAllowed('The Origin of the request is not allowed. See allowed_origins.');
  };
}

const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
const PORT = /:\d{1,5}$/;
const ORIGIN_FORM = /^[/*]/;

/** Marks the answer as readable for one other origin. Credentials are never allowed: nothing here uses cookies. */
function shareWith(
  origin: string,
  context: HttpContext,
  next: () => Promise<unknown>,
): Promise<unknown> | undefined {
  const { req: request, res: response } = context;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Vary', 'Origin');
  response.setHeader('Access-Control-Expose-Headers', 'X-Request-ID, X-Instance-ID, Retry-After');
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
    return next();
  }
  respond(context, noContent({ headers: PREFLIGHT_HEADERS }));
  return undefined;
}

const PREFLIGHT_HEADERS: readonly string[] = [
  ...['Access-Control-Allow-Methods', 'GET, HEAD, POST, PATCH, DELETE'],
  ...['Access-Control-Allow-Headers', 'Accept, Authorization, Content-Type, X-API-Key, X-Request-ID'],
  ...['Access-Control-Max-Age', String(HTTP_LIMITS.preflightSeconds)],
];

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function isOneOrigin(origin: string): boolean {
  return origin !== '*' && origin !== 'null';
}
