// Login, also with a session cookie for the console, logout, and the account of the caller.

import Type from 'typebox';
import { mayDo, ROLES, SCOPES } from '../../domain/account.ts';
import { sessionCookie } from '../credentials.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { flag, integer, NOT_STORED, nullableTemplates, nullableText, text } from '../schemas.ts';

const CONSOLE_HEADER = 'X-Stagedoor-Console';

/** Longer text cannot be a name or a password, and is not hashed. */
const loginText = (example: string) => Type.String({ minLength: 1, maxLength: 1_024, examples: [example] });

/** Other fields are ignored, such as those of OAuth clients (`grant_type`, `scope`). */
const LoginBody = Type.Object({ username: loginText('ada'), password: loginText('correct horse battery') });

const Token = Type.Object({
  access_token: text('eyJhbGciOiJIUzI1NiJ9.e30.signature'),
  token_type: Type.Literal('bearer'),
  /** Seconds. */
  expires_in: integer(3_600),
});

const Account = Type.Object({
  id: text('user:3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  kind: Type.Enum(['anonymous', 'user', 'api-key'], { examples: ['user'] }),
  name: text('ada'),
  /** The user, or the owner of the key. */
  user_id: nullableText('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  /** Role of the user; null for a key, which has its own permissions. */
  role: Type.Union([Type.Enum([...ROLES]), Type.Null()], { examples: ['user'] }),
  scopes: Type.Array(Type.Enum([...SCOPES]), { examples: [['gateway:read', 'tools:call']] }),
  templates: nullableTemplates(['everything']),
  /** Requests per hour; null = no limit. */
  hourly_limit: Type.Union([Type.Integer(), Type.Null()], { examples: [1_000] }),
  /** False: every caller is an admin, and there is no sign-in. */
  auth_enabled: flag(true),
});

export const accountRoutes: readonly Route[] = [
  defineRoute('POST', '/auth/login', {
    summary: 'Log in: a token for a user name and a password, as a form or as JSON',
    scope: 'open',
    reader: 'form',
    request: { body: LoginBody },
    requestHeaders: {
      [CONSOLE_HEADER]: 'With `1`, from a page of this gateway, the token is also set as the session cookie.',
    },
    answers: {
      200: {
        description: 'Send it as `Authorization: Bearer <access_token>`',
        body: Token,
        headers: {
          'Set-Cookie':
            'For the console: `stagedoor_session`. It is accepted only with the header `X-Stagedoor-Console: 1`, and when ' +
            'the request has no other credentials.',
        },
      },
    },
    errors: ['INVALID_CREDENTIALS', 'TOO_MANY_ATTEMPTS', 'DATABASE_UNAVAILABLE'],
    handler: async ({ body, request }, { auth }) => {
      const { username, password } = body;
      const { isConsole, isSecure } = request;
      // A closed socket has no address; failures are still counted.
      const { address = 'unknown' } = request;
      const { accessToken, expiresInSeconds, user } = await auth.login({ username, password, address });
      return json(
        200,
        { access_token: accessToken, token_type: 'bearer', expires_in: expiresInSeconds },
        {
          headers: isConsole
            ? [...NOT_STORED, ...sessionCookie(accessToken, expiresInSeconds, isSecure)]
            : NOT_STORED,
          trail: { actor: { id: `user:${user.id}`, name: user.username } },
        },
      );
    },
  }),
  defineRoute('POST', '/auth/logout', {
    summary: 'Log out: ends the token that was sent; an API key stays valid',
    scope: SCOPES,
    isFree: true,
    requestHeaders: { [CONSOLE_HEADER]: 'With `1` the session cookie is removed.' },
    answers: {
      204: {
        description: 'The token is refused from now on, by other gateways of the database within 10 s',
        headers: { 'Set-Cookie': 'For the console: removes the session cookie.' },
      },
    },
    errors: ['DATABASE_UNAVAILABLE'],
    handler: async ({ request }, { auth }) => {
      const { isConsole, isSecure, credentials } = request;
      await auth.logout(credentials);
      return noContent({ headers: isConsole ? sessionCookie('', 0, isSecure) : [] });
    },
  }),
  defineRoute('GET', '/auth/me', {
    summary: 'The account of the caller, and its permissions',
    scope: SCOPES,
    answers: { 200: { description: 'The account of the credentials', body: Account } },
    handler: ({ principal }, { auth }) =>
      json(200, {
        id: principal.id,
        kind: principal.kind,
        name: principal.name,
        user_id: principal.userId ?? null,
        role: principal.kind === 'api-key' ? null : mayDo(principal, ['admin']) ? 'admin' : 'user',
        scopes: SCOPES.filter((scope) => principal.scopes.has(scope)),
        templates: principal.templates === undefined ? null : [...principal.templates].sort(),
        hourly_limit: principal.hourlyLimit ?? null,
        auth_enabled: auth.isEnabled,
      }),
  }),
];
