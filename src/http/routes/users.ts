// User accounts, for admins.

import Type, { type Static } from 'typebox';
import { Email, ROLES, type Role, TemplateList, type User, Username } from '../../domain/account.ts';
import { validationFailed } from '../../domain/error-catalogue.ts';
import { LIMITS } from '../../domain/limits.ts';
import { UserParams } from '../parameters.ts';
import { json, located, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, flag, LOCATION, nullableTemplates, Time, text } from '../schemas.ts';

/** A user without its password hash. `templates`: null for all. */
export const UserRecord = Type.Object({
  id: text('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  username: text('ada'),
  email: text('ada@localhost'),
  role: Type.Enum([...ROLES], { examples: ['user'] }),
  is_superuser: flag(false),
  templates: nullableTemplates(null),
  is_active: flag(true),
  created_at: Time,
  updated_at: Time,
});

export function userRecord(user: User): Static<typeof UserRecord> {
  return {
    id: user.id,
    username: user.username,
    email: user.email,
    role: user.role,
    is_superuser: user.role === 'admin',
    templates: user.templates === undefined ? null : [...user.templates],
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
  role: Type.Optional(Type.Enum([...ROLES], { examples: ['user'] })),
  /** The same as the role `admin`. */
  is_superuser: Type.Optional(flag(false)),
  /** null = all. */
  templates: Type.Optional(Type.Union([TemplateList, Type.Null()], { examples: [null] })),
};

const NewUserBody = Type.Object({ username: Username, email: Email, password: Password, ...rights }, CLOSED);

const UserChangeBody = Type.Object(
  {
    email: Type.Optional(Email),
    password: Type.Optional(Password),
    ...rights,
    is_active: Type.Optional(flag(true)),
  },
  CLOSED,
);

export const userRoutes: readonly Route[] = [
  defineRoute('GET', '/auth/users', {
    summary: 'List all users',
    scope: 'admin',
    answers: { 200: { description: 'In the order of their creation', body: Type.Array(UserRecord) } },
    handler: async (_input, { auth }) => json(200, (await auth.accounts.users()).map(userRecord)),
  }),
  defineRoute('POST', '/auth/users', {
    summary: 'Create a user',
    scope: 'admin',
    request: { body: NewUserBody },
    answers: { 201: { description: 'The user', body: UserRecord, headers: LOCATION } },
    errors: ['DUPLICATE_USERNAME', 'TOO_MANY_ATTEMPTS'],
    handler: async ({ body }, { auth }) => {
      const { username, email, password, templates } = body;
      const role = roleOf(body) ?? 'user';
      const user = await auth.accounts.createUser({
        ...{ username, email, password, role },
        templates: templates ?? undefined,
      });
      return located(201, `/auth/users/${user.id}`, userRecord(user));
    },
  }),
  defineRoute('GET', '/auth/users/:user_id', {
    summary: 'One user, by its id',
    scope: 'admin',
    request: { params: UserParams },
    answers: { 200: { description: 'The user', body: UserRecord } },
    errors: ['USER_NOT_FOUND'],
    handler: async ({ params }, { auth }) => json(200, userRecord(await auth.accounts.user(params.user_id))),
  }),
  defineRoute('PATCH', '/auth/users/:user_id', {
    summary: 'Change a user; a new password voids the tokens',
    scope: 'admin',
    request: { params: UserParams, body: UserChangeBody },
    answers: { 200: { description: 'The user as it is now', body: UserRecord } },
    errors: ['USER_NOT_FOUND', 'LAST_ADMIN', 'TOO_MANY_ATTEMPTS'],
    handler: async ({ params, body }, { auth }) => {
      const { email, password, templates, is_active: isActive } = body;
      const change = { email, password, templates, isActive, role: roleOf(body) };
      return json(200, userRecord(await auth.accounts.changeUser(params.user_id, change)));
    },
  }),
  defineRoute('DELETE', '/auth/users/:user_id', {
    summary: 'Delete a user and the API keys of that user',
    scope: 'admin',
    request: { params: UserParams },
    answers: { 204: { description: 'Deleted with its API keys; its tokens are no longer valid' } },
    errors: ['USER_NOT_FOUND', 'LAST_ADMIN'],
    handler: async ({ params }, { auth }) => {
      await auth.accounts.deleteUser(params.user_id);
      return noContent();
    },
  }),
];

/** The role that a body gives by either of two fields; undefined when it has neither. */
function roleOf({
  role,
  is_superuser: isSuperuser,
}: Pick<Static<typeof UserChangeBody>, 'role' | 'is_superuser'>): Role | undefined {
  if (isSuperuser === undefined) return role;
  const roleOfFlag: Role = isSuperuser ? 'admin' : 'user';
  if (role === undefined || role === roleOfFlag) return roleOfFlag;
  const msg = `Value error, it contradicts the role '${role}'`;
  throw validationFailed([{ loc: ['body', 'is_superuser'], msg, type: 'value_error' }]);
}
