// Who a caller is, and what may be done with the credentials that were sent. Whoever may do anything may ask.

import Type from 'typebox';
import { SCOPES } from '../../domain/account.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { NullableTemplates, NullableText } from '../schemas.ts';

const Account = Type.Object({
  id: Type.String(),
  kind: Type.Enum(['anonymous', 'user', 'api-key']),
  name: Type.String(),
  /** The user, or the owner of the key. */
  user_id: NullableText,
  scopes: Type.Array(Type.Enum([...SCOPES])),
  templates: NullableTemplates,
  /** Requests per hour; null = no limit. */
  hourly_limit: Type.Union([Type.Integer(), Type.Null()]),
});

export const accountRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/auth/me',
    summary: 'Who you are, and what you may do',
    scope: SCOPES,
    answers: { 200: { description: 'The owner of the credentials that were sent', body: Account } },
    errors: [],
    handler: ({ principal }) =>
      json(200, {
        id: principal.id,
        kind: principal.kind,
        name: principal.name,
        user_id: principal.userId ?? null,
        scopes: SCOPES.filter((scope) => principal.scopes.has(scope)),
        templates: principal.templates === undefined ? null : [...principal.templates].sort(),
        hourly_limit: principal.hourlyLimit ?? null,
      }),
  }),
];
