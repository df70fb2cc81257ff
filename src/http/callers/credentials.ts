// The credentials of a request, from its headers or the session cookie of the console.

import type { IncomingMessage } from 'node:http';
import type { Credentials } from '../../auth/credentials.ts';

/** The part of a request that a check of credentials reads. */
export interface CredentialedRequest {
  readonly req: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'socket'>>;
  readonly state: { readonly isSameHost?: boolean };
}

/**
 * Uses the session cookie only together with a header that no foreign page can send: browsers send the cookie
 * with requests of foreign pages, too.
 */
export function credentialsOf(context: CredentialedRequest): Credentials {
  const { authorization, 'x-api-key': key } = context.req.headers;
  // Node joins repeated headers; only a few others come as a list.
  const apiKey = typeof key === 'string' ? key : undefined;
  const hasOthers = authorization !== undefined || apiKey !== undefined;
  if (!hasOthers && hasConsoleHeader(context) && isOwnHost(context)) {
    const token = tokenIn(context.req.headers.cookie);
    if (token !== undefined) return { authorization: `Bearer ${token}` };
  }
  return { authorization, apiKey, connection: context.req.socket };
}

/**
 * True for a request with the header `X-Stagedoor-Console: 1`, which a page of another origin cannot send without a preflight;
 * no preflight allows it.
 */
export function hasConsoleHeader({ req: { headers } }: CredentialedRequest): boolean {
  return headers['x-stagedoor-console'] === '1';
}

/** True unless the `Origin` has another host than the gateway. Its scheme may differ: a proxy that is not trusted may end TLS. */
export function isOwnHost({ req: { headers }, state }: CredentialedRequest): boolean {
  return headers.origin === undefined || state.isSameHost === true;
}

const NAME = 'stagedoor_session';
const COOKIE = /(?:^|;\s*)stagedoor_session=([^;]*)/g;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The token of a `Cookie` header. Undefined for two cookies of this name: another site may have set either of them. */
function tokenIn(cookies: string | undefined): string | undefined {
  const [token, other] = [...(cookies ?? '').matchAll(COOKIE)].map(([, value = '']) => value.trim());
  return token !== undefined && other === undefined && TOKEN.test(token) ? token : undefined;
}

/** The header `Set-Cookie` of a session as `[name, value]`. `isSecure`: the request came over TLS. */
export function sessionCookie(token: string, seconds: number, isSecure: boolean): readonly string[] {
  const flags = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`;
  return ['Set-Cookie', `${NAME}=${token}; ${flags}${isSecure ? '; Secure' : ''}`];
}
