// A name and a password for a token. Source: spec, "Authentication" 1; decisions, "Login".

import Type from 'typebox';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { NOT_STORED } from '../schemas.ts';

/** What is no name and no password, for sure: nobody hashes it. */
const Entry = Type.String({ minLength: 1, maxLength: 1_024 });

/** Other fields are those of OAuth clients (`grant_type`, `scope`, ...): they change nothing. */
const LoginBody = Type.Object({ username: Entry, password: Entry });

const Token = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal('bearer'),
  /** Seconds. */
  expires_in: Type.Integer(),
});

export const loginRoutes: readonly Route[] = [
  defineRoute({
    method: 'POST',
    path: '/auth/login',
    summary: 'Log in: a token for a user name and a password, as a form or as JSON',
    scope: 'open',
    reader: 'form',
    request: { body: LoginBody },
    answers: { 200: { description: 'Send it as `Authorization: Bearer <access_token>`', body: Token } },
    errors: ['INVALID_CREDENTIALS', 'TOO_MANY_ATTEMPTS', 'DATABASE_UNAVAILABLE'],
    handler: async ({ body, request }, { auth }) => {
      const { username, password } = body;
      // Without an address the socket is gone; failures are counted by something all the same.
      const { address = 'unknown' } = request;
      const { accessToken, expiresInSeconds, user } = await auth.login({ username, password, address });
      return json(
        200,
        { access_token: accessToken, token_type: 'bearer', expires_in: expiresInSeconds },
        { headers: NOT_STORED, trail: { actor: { id: `user:${user.id}`, name: user.username } } },
      );
    },
  }),
];
