// API keys: made by admins, shown once, revoked at once. Source: spec, "API key" and surface B; decisions, "API key".

import Type from 'typebox';
import { KeyName, SCOPES, TemplateList } from '../../domain/account.ts';
import { ApiKeyParams } from '../path-params.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED } from '../schemas.ts';
import { ApiKeyRecord, apiKeyRecord } from '../views/api-key-record.ts';

const NewApiKeyBody = Type.Object(
  {
    name: KeyName,
    permissions: Type.Array(Type.Enum([...SCOPES]), { minItems: 1, maxItems: 16 }),
    /** null = all. */
    templates: Type.Optional(Type.Union([TemplateList, Type.Null()])),
    /** ISO 8601 with an offset or `Z`; null = never. */
    expires_at: Type.Optional(Type.Union([Type.String({ maxLength: 64 }), Type.Null()])),
  },
  CLOSED,
);

/** The only answer that ever holds the key. */
const NewApiKey = Type.Object({ ...ApiKeyRecord.properties, key: Type.String() });

export const apiKeyRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/auth/api-keys',
    summary: 'List all API keys',
    scope: 'admin',
    answers: { 200: { description: 'In the order of their creation', body: Type.Array(ApiKeyRecord) } },
    errors: [],
    handler: async (_input, { auth }) => json(200, (await auth.accounts.apiKeys()).map(apiKeyRecord)),
  }),
  defineRoute({
    method: 'POST',
    path: '/auth/api-keys',
    summary: 'Create an API key; the answer is the only place where it stands',
    scope: 'admin',
    request: { body: NewApiKeyBody },
    answers: { 201: { description: 'The key and its record', body: NewApiKey } },
    errors: [],
    handler: async ({ body, principal }, { auth }) => {
      const { name, permissions, templates, expires_at: expiresAt } = body;
      const { apiKey, key } = await auth.accounts.createApiKey({
        name,
        permissions,
        templates: templates ?? undefined,
        expiresAt: expiresAt ?? undefined,
        ownerId: principal.userId,
      });
      const subject = `/auth/api-keys/${apiKey.apiKey.id}`;
      return json(201, { ...apiKeyRecord(apiKey), key }, { trail: { subject } });
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/auth/api-keys/:key_id',
    summary: 'Revoke an API key',
    scope: 'admin',
    request: { params: ApiKeyParams },
    answers: { 204: { description: 'It is void from now on' } },
    errors: ['API_KEY_NOT_FOUND'],
    handler: async ({ params }, { auth }) => {
      await auth.accounts.revokeApiKey(params.key_id);
      return noContent();
    },
  }),
];
