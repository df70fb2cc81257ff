// The credentials of a request: its headers, or the session cookie of the console. A browser sends a cookie by itself, also
// for foreign pages; so the cookie counts only beside a header that no foreign page can send. Source: ADR 73.

import type { IncomingMessage } from 'node:http';
import type { Credentials } from '../auth/auth.ts';

/** What is read of a request. */
interface Sender {
  readonly req: Pick<IncomingMessage, 'headers'>;
  readonly state: { readonly isSameHost?: boolean };
}

export function credentialsOf(context: Sender): Credentials {
  const { authorization, 'x-api-key': key } = context.req.headers;
  // Node joins repeated headers; only a few others come as a list.
  const apiKey = typeof key === 'string' ? key : undefined;
  if (authorization === undefined && apiKey === undefined && saysConsole(context) && isOwnHost(context)) {
    const token = tokenIn(context.req.headers.cookie);
    if (token !== undefined) return { authorization: `Bearer ${token}` };
  }
  return { authorization, apiKey };
}

/**
 * True for a request with the header `X-Stagedoor-Console: 1`, which a page of another origin cannot send without a preflight;
 * no preflight allows it.
 */
export function saysConsole({ req: { headers } }: Sender): boolean {
  return headers['x-stagedoor-console'] === '1';
}

/** True when the `Origin`, if there is one, has the host of this gateway. Any scheme: a proxy that is not trusted may end TLS. */
export function isOwnHost({ req: { headers }, state }: Sender): boolean {
  return headers.origin === undefined || state.isSameHost === true;
}

const NAME = 'stagedoor_session';
const COOKIE = /(?:^|;\s*)stagedoor_session=([^;]*)/g;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The token of a `Cookie` header. With two cookies of the name one is of another site, and it is unknown which one. */
function tokenIn(cookies: string | undefined): string | undefined {
  const [token, other] = [...(cookies ?? '').matchAll(COOKIE)].map(([, value = '']) => value.trim());
  return token !== undefined && other === undefined && TOKEN.test(token) ? token : undefined;
}

/** The header `Set-Cookie` of a session as `[name, value]`. `isSecure`: the request came over TLS. */
export function sessionCookie(token: string, seconds: number, isSecure: boolean): readonly string[] {
  const flags = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`;
  return ['Set-Cookie', `${NAME}=${token}; ${flags}${isSecure ? '; Secure' : ''}`];
}
