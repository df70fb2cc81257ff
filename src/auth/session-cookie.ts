// The cookie in which a browser keeps the token of its login to the console.

const NAME = 'stagedoor_session';
const PORT = /:(\d+)$/;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * The token of a `Cookie` header; `host`: that of the request, as the client sees it. Undefined for two cookies of this name:
 * another site may have set either of them.
 */
export function sessionTokenIn(cookies: string | undefined, host: string | undefined): string | undefined {
  const start = `${nameAt(host)}=`;
  const own = (cookies ?? '').split(';').map((cookie) => cookie.trim());
  const [token, other] = own.filter((cookie) => cookie.startsWith(start));
  const value = token?.slice(start.length).trim();
  return value !== undefined && other === undefined && TOKEN.test(value) ? value : undefined;
}

/** The header `Set-Cookie` of a session of the console as `[name, value]`. `isSecure`: the request came over TLS. */
export function sessionCookie(
  token: string,
  seconds: number,
  { host, isSecure }: { readonly host: string | undefined; readonly isSecure: boolean },
): readonly string[] {
  const flags = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`;
  return ['Set-Cookie', `${nameAt(host)}=${token}; ${flags}${isSecure ? '; Secure' : ''}`];
}

/** Cookies do not know ports: a sign-in at another gateway of this host would replace this one. Some proxies add default ports. */
function nameAt(host = ''): string {
  const port = PORT.exec(host)?.[1];
  return port === undefined || port === '80' || port === '443' ? NAME : `${NAME}_${port}`;
}
