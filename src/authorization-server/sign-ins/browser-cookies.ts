// The cookies by which browsers are known during and after a sign-in: their names, how they are set, and how they are read.

/** All paths at which sign-ins begin or are needed. */
const PATHS = ['/oauth', '/connections'];

/** The name of a cookie of this gateway. Cookies do not know ports: another gateway of this machine has another name. */
export function cookieName(issuer: string, what: string): string {
  const { protocol, port } = new URL(issuer);
  return protocol === 'https:' ? `__Secure-stagedoor_${what}` : `stagedoor_${what}_${port || '80'}`;
}

/** The headers that set a cookie for the pages of sign-ins, as `[name, value, ...]`; with 0 seconds they delete it. */
export function setCookies(issuer: string, cookie: string, seconds: number): string[] {
  const secure = issuer.startsWith('https:') ? '; Secure' : '';
  return PATHS.flatMap((path) => [
    'Set-Cookie',
    `${cookie}; HttpOnly; SameSite=Lax; Path=${path}; Max-Age=${seconds}${secure}`,
  ]);
}

/** All cookies of a request. */
export function cookiesIn(header = ''): readonly { readonly name: string; readonly value: string }[] {
  return header.split(';').flatMap((cookie) => {
    const [name = '', value] = cookie.trim().split(/=(.*)/s, 2);
    return value === undefined ? [] : { name, value };
  });
}

/**
 * The value of this cookie, if it is one that the gateway makes: 32 random bytes in base64url. Undefined for two cookies of the
 * name: another site may have set either of them.
 */
export function randomCookie(header: string | undefined, name: string): string | undefined {
  const [own, other] = cookiesIn(header).filter((cookie) => cookie.name === name);
  return own !== undefined && other === undefined && RANDOM.test(own.value) ? own.value : undefined;
}

const RANDOM = /^[\w-]{43}$/;
