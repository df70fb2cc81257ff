// The credentials of a request, from its headers or the session cookie of the console.

import type { Credentials } from '../../auth/credentials.ts';
import { sessionTokenIn } from '../../auth/session-cookie.ts';
import type { HttpContext } from '../context.ts';
import type { Proxies } from './proxies.ts';

/**
 * Uses the session cookie only together with a header that no foreign page can send: browsers send the cookie
 * with requests of foreign pages, too.
 */
export function credentialsOf(
  context: Pick<HttpContext, 'req' | 'state'>,
  proxies: Pick<Proxies, 'host'>,
): Credentials {
  const { authorization, 'x-api-key': key } = context.req.headers;
  // Node joins repeated headers; only a few others come as a list.
  const apiKey = typeof key === 'string' ? key : undefined;
  const hasOthers = authorization !== undefined || apiKey !== undefined;
  if (!hasOthers && hasConsoleHeader(context) && isOwnHost(context)) {
    const token = sessionTokenIn(context.req.headers.cookie, proxies.host(context.req));
    if (token !== undefined) return { authorization: `Bearer ${token}` };
  }
  return { authorization, apiKey, connection: context.req.socket };
}

/**
 * True for a request with the header `X-Stagedoor-Console: 1`, which a page of another origin cannot send without a preflight;
 * no preflight allows it.
 */
export function hasConsoleHeader({ req: { headers } }: Pick<HttpContext, 'req'>): boolean {
  return headers['x-stagedoor-console'] === '1';
}

/** True unless the `Origin` has another host than the gateway. Its scheme may differ: a proxy that is not trusted may end TLS. */
export function isOwnHost({ req: { headers }, state }: Pick<HttpContext, 'req' | 'state'>): boolean {
  return headers.origin === undefined || state.isSameHost === true;
}
