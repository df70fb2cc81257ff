// Login (also with a session cookie for the console), logout and the account of the caller; users, for admins.

import Type, { type Static } from 'typebox';
import type { HashCaller } from '../../../auth/accounts/passwords.ts';
import { sessionCookie } from '../../../auth/session-cookie.ts';
import { type CreatedId, SCOPES, type User } from '../../../domain/accounts/account.ts';
import { Email, KeyPermissions, RoleName, Username } from '../../../domain/accounts/input-schemas.ts';
import { type Principal, userPrincipalId } from '../../../domain/accounts/principal.ts';
import { notLinked, unknownProvider } from '../../../domain/errors/account-errors.ts';
import { restOfChange } from '../../../domain/errors/gateway-errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import {
  CALLER_LIST_FIELDS,
  shownListFields,
  shownLists,
  shownRights,
  WRITTEN_LISTS,
  writtenRole,
} from '../../records/rights-fields.ts';
import {
  closed,
  flag,
  integer,
  LOCATION,
  NOT_STORED,
  named,
  nullableText,
  Time,
  text,
} from '../../records/schemas.ts';
import { BY_CREATION, creationOf, PAGE_HEADERS, PAGE_QUERY, pagedList } from '../../replies/paged-list.ts';
import { json, located, noContent } from '../../replies/reply.ts';
import type { HttpRequest } from '../../request.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { UserParams } from '../../routing/route-params.ts';

const CONSOLE_HEADER = 'X-Stagedoor-Console';

/** Longer text cannot be a name or a password, and is not hashed. */
const loginText = (example: string) => Type.String({ minLength: 1, maxLength: 1_024, examples: [example] });

/** Other fields are ignored, such as those of OAuth clients (`grant_type`, `scope`). */
const LoginBody = Type.Object({ username: loginText('ada'), password: loginText('correct horse battery') });

const HEX = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const ProofBody = closed({
  /** The id in an API key, `sd_<id>_<secret>`; for a token `proof_key_id` of its login. */
  key_id: Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$', examples: ['0123456789abcdef'] }),
  /** Random, and new for each request. */
  nonce: Type.String({ pattern: '^[A-Za-z0-9_-]{22,128}$', examples: ['bm9uY2Utb2YtMTYtYnl0ZXM'] }),
});

const Token = Type.Object({
  access_token: text('eyJhbGciOiJIUzI1NiJ9.e30.signature'),
  token_type: Type.Literal('bearer'),
  /** Seconds. */
  expires_in: integer(3_600),
  /** `key_id` for `POST /auth/proof`. */
  proof_key_id: text('0f1e2d3c4b5a6978-3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  /** The secret with which a client checks the proof, in hex. */
  proof_secret: text(HEX),
});

const Account = Type.Object({
  id: text('user:3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  kind: Type.Enum(['anonymous', 'user', 'api-key'], { examples: ['user'] }),
  name: text('ada'),
  /** The user, or the owner of the key. */
  user_id: nullableText('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  scopes: Type.Array(Type.Enum([...SCOPES]), { examples: [['gateway:read', 'tools:call']] }),
  ...CALLER_LIST_FIELDS,
});

export const accountRoutes: readonly HttpRoute[] = [
  defineRoute('POST', '/auth/login', {
    summary: 'Log in: a token for a user name and a password, as a form or as JSON',
    scope: 'open',
    bodyKind: 'form',
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
            'For the console: `stagedoor_session`, with `_` and the port unless it is 80 or 443. It is accepted only with the header `X-Stagedoor-Console: 1`, and when ' +
            'the request has no other credentials. `stagedoor_sign_in`: the sign-in of the pages below /oauth.',
        },
      },
    },
    errors: ['INVALID_CREDENTIALS', 'PASSWORDS_OFF', 'TOO_MANY_ATTEMPTS', 'DATABASE_UNAVAILABLE'],
    handler: async ({ body, request }, { auth, authorizationServer }) => {
      const { username, password } = body;
      const { isConsole, isSecure, isLocal, host } = request;
      // A closed socket has no address; failures are still counted.
      const { address = 'unknown' } = request;
      const attempt = { username, password, address, isLocal };
      const { accessToken, expiresInSeconds, expiresAtMs, user, proof } = await auth.logins.login(attempt);
      // The pages of the sign-in know the browser, too.
      const signedIn =
        (isConsole &&
          (await authorizationServer?.signIns.beginForConsole(
            user,
            'password',
            { id: proof.keyId, expiresAtMs },
            host,
          ))) ||
        [];
      return json(
        200,
        {
          access_token: accessToken,
          token_type: 'bearer',
          expires_in: expiresInSeconds,
          proof_key_id: proof.keyId,
          proof_secret: proof.secret,
        },
        {
          headers: isConsole
            ? [
                ...NOT_STORED,
                ...sessionCookie(accessToken, expiresInSeconds, { host, isSecure }),
                ...signedIn,
              ]
            : NOT_STORED,
          trail: { actor: { id: userPrincipalId(user.id), name: user.username } },
        },
      );
    },
  }),
  defineRoute('POST', '/auth/proof', {
    summary: 'Prove that this gateway knows a key or a token, before a client sends it over plain HTTP',
    scope: 'open',
    bodyKind: 'short',
    changesNothing: true,
    request: { body: ProofBody },
    answers: {
      200: {
        description:
          '`proof` is the HMAC-SHA-256, in hex, of `<nonce>\\n<address>\\n<port>`: address and port of the gateway as this ' +
          'connection has them. Its key is the SHA-256 of the secret in the API key, or `proof_secret` of the login. ' +
          'For an unknown id it is the proof of an unknown secret.',
        body: Type.Object({ proof: text(HEX) }),
      },
    },
    errors: ['TOO_MANY_ATTEMPTS', 'DATABASE_UNAVAILABLE'],
    handler: async ({ body, request }, { auth }) => {
      // A closed socket has no address; its answer reaches no client.
      const { address = 'unknown', ownEndpoint = { address: '', port: 0 } } = request;
      const proof = await auth.proofs.prove({ keyId: body.key_id, nonce: body.nonce }, ownEndpoint, address);
      return json(200, { proof }, { headers: NOT_STORED });
    },
  }),
  defineRoute('POST', '/auth/logout', {
    summary: 'Log out: ends the token that was sent, and the sign-in of its browser; an API key stays valid',
    scope: SCOPES,
    isUncounted: true,
    requestHeaders: { [CONSOLE_HEADER]: 'With `1` the session cookie is removed.' },
    answers: {
      204: {
        description: 'The token is refused from now on, by other gateways of the database within 10 s',
        headers: { 'Set-Cookie': 'For the console: removes the session cookie, and that of the pages.' },
      },
    },
    errors: ['DATABASE_UNAVAILABLE'],
    handler: async ({ request }, { auth, authorizationServer }) => {
      const { isConsole, isSecure, credentials, host } = request;
      await auth.tokenEnds.end(credentials);
      if (!isConsole) return noContent();
      const forgotten = authorizationServer?.signIns.forget(host) ?? [];
      return noContent({ headers: [...sessionCookie('', 0, { host, isSecure }), ...forgotten] });
    },
  }),
  defineRoute('GET', '/auth/me', {
    summary: 'The account of the caller, and its permissions',
    scope: SCOPES,
    answers: { 200: { description: 'The account of the credentials', body: Account } },
    handler: ({ principal }) =>
      json(200, {
        id: principal.id,
        kind: principal.kind,
        name: principal.name,
        user_id: principal.userId ?? null,
        scopes: SCOPES.filter((scope) => principal.scopes.has(scope)),
        ...shownRights(principal),
      }),
  }),
];

/** A user without its password hash. A list of rights is null for all. */
const UserRecord = named('UserRecord', {
  id: text('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  username: text('ada'),
  email: text('ada@localhost'),
  role: RoleName,
  is_superuser: flag(false),
  /** Absent = all of the role. */
  scopes: Type.Optional(Type.Array(Type.Enum([...SCOPES]), { examples: [['gateway:read']] })),
  ...shownListFields(null),
  is_active: flag(true),
  created_at: Time,
  updated_at: Time,
});

function userRecord(user: User): Static<typeof UserRecord> {
  return {
    id: user.id,
    username: user.username,
    email: user.email,
    role: user.role,
    is_superuser: user.role === 'admin',
    ...(user.scopes === undefined ? {} : { scopes: [...user.scopes] }),
    ...shownLists(user),
    is_active: user.isActive,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}

/** The number of bytes is checked before hashing. */
const Password = Type.String({
  minLength: LIMITS.passwordCharacters,
  maxLength: LIMITS.passwordBytes,
  examples: ['correct horse battery'],
});

const rights = {
  role: Type.Optional(RoleName),
  /** The same as the role `admin`. */
  is_superuser: Type.Optional(flag(false)),
  /** Limits those of the role; null = all of them. */
  scopes: Type.Optional(Type.Union([KeyPermissions, Type.Null()], { examples: [null] })),
  ...WRITTEN_LISTS,
};

const NewUserBody = closed({ username: Username, email: Email, password: Password, ...rights });

const UserChangeBody = closed({
  email: Type.Optional(Email),
  password: Type.Optional(Password),
  ...rights,
  is_active: Type.Optional(flag(true)),
});

const LinkBody = closed({
  /** The issuer as `auth.providers` names it. */
  issuer: Type.String({ minLength: 1, maxLength: 2_048, examples: ['https://login.example.com'] }),
  /** The claim `sub`, or the one that `claims.subject` names. */
  subject: Type.String({ minLength: 1, maxLength: 1_024, examples: ['248289761001'] }),
});

export const userRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/auth/users', {
    summary: 'List all users',
    scope: 'admin',
    errors: ['INVALID_CURSOR'],
    request: { query: closed(PAGE_QUERY) },
    answers: { 200: { description: BY_CREATION, body: Type.Array(UserRecord), headers: PAGE_HEADERS } },
    handler: async ({ query }, { auth: { accounts }, scheduler }) => {
      const read = async (page: readonly CreatedId[]) =>
        (await accounts.users(page.map(({ id }) => id))).map(userRecord);
      return pagedList(
        'users',
        { items: await accounts.userIds(), idOf: creationOf, read },
        query,
        scheduler,
      );
    },
  }),
  defineRoute('POST', '/auth/users', {
    summary: 'Create a user',
    scope: 'admin',
    request: { body: NewUserBody },
    answers: { 201: { description: 'The user', body: UserRecord, headers: LOCATION } },
    errors: ['DUPLICATE_USERNAME', 'TOO_MANY_ATTEMPTS'],
    handler: async ({ body, ...from }, { auth }) => {
      const input = { ...body, role: writtenRole(body, auth.roles) ?? 'user' };
      const user = await auth.accounts.createUser(input, hashCaller(from));
      return located(201, `/auth/users/${user.id}`, userRecord(user));
    },
  }),
  defineRoute('GET', '/auth/users/:user_id', {
    summary: 'One user, by its id',
    scope: 'admin',
    request: { params: UserParams },
    answers: { 200: { description: 'The user', body: UserRecord } },
    handler: async ({ params }, { auth }) => json(200, userRecord(await auth.accounts.user(params.user_id))),
  }),
  defineRoute('PATCH', '/auth/users/:user_id', {
    summary: 'Change a user; a new password voids the tokens',
    scope: 'admin',
    request: { params: UserParams, body: UserChangeBody },
    answers: { 200: { description: 'The user as it is now', body: UserRecord } },
    errors: ['LAST_ADMIN', 'TOO_MANY_ATTEMPTS'],
    handler: async ({ params, body, ...from }, { auth }) => {
      const { role: _, is_superuser: __, is_active: isActive, ...fields } = body;
      const change = { ...fields, isActive, role: writtenRole(body, auth.roles) };
      return json(200, userRecord(await auth.accounts.changeUser(params.user_id, change, hashCaller(from))));
    },
  }),
  defineRoute('DELETE', '/auth/users/:user_id', {
    summary: 'Delete a user with the API keys and connected accounts of that user, whose tokens are revoked',
    scope: 'admin',
    request: { params: UserParams },
    answers: { 204: { description: 'Deleted with its API keys; its tokens are no longer valid' } },
    errors: ['LAST_ADMIN'],
    handler: async ({ params }, { auth, backendAccounts }) => {
      const { user_id: id } = params;
      const vault = await backendAccounts?.open();
      const deletion = () => auth.accounts.deleteUser(id);
      await (vault === undefined ? deletion() : vault.revokeAfter(id, deletion));
      return noContent();
    },
  }),
  defineRoute('POST', '/auth/users/:user_id/link', {
    summary: 'Let a user sign in with an account of an identity provider (`auth.providers`)',
    scope: 'admin',
    request: { params: UserParams, body: LinkBody },
    answers: {
      200: {
        description:
          'In force from the next sign-in, which also gives the role of the groups. An earlier link ends',
        body: UserRecord,
      },
    },
    handler: async ({ params, body }, { auth }) => {
      const user = await auth.accounts.user(params.user_id);
      if (auth.company === undefined) throw unknownProvider();
      await auth.company.link(user, body);
      const subject = `/auth/users/${user.id} ${body.issuer} ${body.subject}`;
      return json(200, userRecord(await restOfChange(auth.accounts.user(user.id))), { trail: { subject } });
    },
  }),
  defineRoute('DELETE', '/auth/users/:user_id/link', {
    summary: 'End the link of a user with an account of an identity provider',
    scope: 'admin',
    request: { params: UserParams },
    answers: {
      204: { description: 'Ended with the tokens and grants of the user; API keys and a password stay' },
    },
    errors: ['NOT_FOUND'],
    handler: async ({ params }, { auth }) => {
      const user = await auth.accounts.user(params.user_id);
      if (auth.company === undefined) throw notLinked(user.username);
      await auth.company.unlink(user);
      return noContent();
    },
  }),
];

/** The verified caller, in whose share of the hashes a new password is hashed. */
function hashCaller({
  principal,
  request,
}: {
  readonly principal: Principal;
  readonly request: Pick<HttpRequest, 'address'>;
}): HashCaller {
  return { user: principal.id, address: request.address ?? 'unknown', isKnown: true };
}
