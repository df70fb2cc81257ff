// The continuations of a sign-in at an identity provider, by its purpose: the page that asked, or the console. Source: ADR 208,
// 214.

import type { Auth } from '../../auth/auth.ts';
import { sessionCookie } from '../../auth/session-cookie.ts';
import { DEVICE_PATH } from '../metadata.ts';
import type { Continuation, Purpose } from './provider-sign-ins.ts';
import type { SignIns } from './sign-ins.ts';

/** The path at which the console begins a sign-in; the id of a provider follows. */
export const CONSOLE_PATH = '/oauth/console/';

interface ContinuationOptions {
  readonly auth: Pick<Auth, 'logins'>;
  readonly signIns: SignIns;
  readonly issuer: string;
}

export function continuationOf(purpose: Purpose, options: ContinuationOptions): Continuation {
  if (purpose.kind === 'console') return consoleOf(options);
  const path = pathOf(purpose);
  return {
    back: path,
    go: async (user, { request }) => ({
      path,
      headers: await options.signIns.begin(user, 'provider', request.headers.cookie),
    }),
  };
}

function pathOf(purpose: Exclude<Purpose, { readonly kind: 'console' }>): string {
  if (purpose.kind === 'connections') return purpose.path;
  return purpose.kind === 'device' ? `${DEVICE_PATH}/${purpose.code}` : `/oauth/interaction/${purpose.uid}`;
}

/** Continues as a login of the console: its token is a cookie, and the pages know the browser, too. */
function consoleOf({ auth, signIns, issuer }: ContinuationOptions): Continuation {
  const { host, protocol } = new URL(issuer);
  return {
    back: '/console',
    go: async (user) => {
      const { accessToken, expiresInSeconds, expiresAtMs, proof } = await auth.logins.issueToken(
        user,
        'provider',
      );
      const token = { id: proof.keyId, expiresAtMs };
      const cookies = await signIns.beginForConsole(user, 'provider', token, host);
      const session = sessionCookie(accessToken, expiresInSeconds, { host, isSecure: protocol === 'https:' });
      return { path: '/console', headers: [...session, ...cookies] };
    },
  };
}
