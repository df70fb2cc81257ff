// The cookie in which a browser keeps the token of its login to the console.

const NAME = 'stagedoor_session';
const COOKIE = /(?:^|;\s*)stagedoor_session=([^;]*)/g;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The token of a `Cookie` header. Undefined for two cookies of this name: another site may have set either of them. */
export function sessionTokenIn(cookies: string | undefined): string | undefined {
  const [token, other] = [...(cookies ?? '').matchAll(COOKIE)].map(([, value = '']) => value.trim());
  return token !== undefined && other === undefined && TOKEN.test(token) ? token : undefined;
}

/** The header `Set-Cookie` of a session of the console as `[name, value]`. `isSecure`: the request came over TLS. */
export function sessionCookie(token: string, seconds: number, isSecure: boolean): readonly string[] {
  const flags = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${seconds}`;
  return ['Set-Cookie', `${NAME}=${token}; ${flags}${isSecure ? '; Secure' : ''}`];
}
