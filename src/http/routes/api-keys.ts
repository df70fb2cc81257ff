// API keys, for admins.

import Type, { type Static } from 'typebox';
import type { ApiKeyView } from '../../auth/accounts.ts';
import { KeyName, SCOPES, TemplateList } from '../../domain/account.ts';
import { ApiKeyParams } from '../parameters.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, flag, NullableTime, nullableTemplates, nullableText, Time, text } from '../schemas.ts';

/** A key without its secret. `templates`: null for all; `created_by`: null for the operator. */
export const ApiKeyRecord = Type.Object({
  id: text('00112233445566ff'),
  name: text('nightly build'),
  permissions: Type.Array(Type.Enum([...SCOPES]), { examples: [['tools:call']] }),
  templates: nullableTemplates(['everything']),
  expires_at: nullableText('2099-12-31T23:59:59Z'),
  created_at: Time,
  last_used_at: NullableTime,
  is_active: flag(true),
  created_by: nullableText('admin'),
});

export function apiKeyRecord({ apiKey, isActive, createdBy }: ApiKeyView): Static<typeof ApiKeyRecord> {
  return {
    id: apiKey.id,
    name: apiKey.name,
    permissions: [...apiKey.permissions],
    templates: apiKey.templates === undefined ? null : [...apiKey.templates],
    expires_at: apiKey.expiresAt ?? null,
    created_at: apiKey.createdAt,
    last_used_at: apiKey.lastUsedAt ?? null,
    is_active: isActive,
    created_by: createdBy,
  };
}

const NewApiKeyBody = Type.Object(
  {
    name: KeyName,
    permissions: Type.Array(Type.Enum([...SCOPES]), {
      minItems: 1,
      maxItems: 16,
      examples: [['tools:call']],
    }),
    /** null = all. */
    templates: Type.Optional(Type.Union([TemplateList, Type.Null()], { examples: [['everything']] })),
    /** ISO 8601 with an offset or `Z`; null = never. */
    expires_at: Type.Optional(
      Type.Union([Type.String({ maxLength: 64 }), Type.Null()], { examples: ['2099-12-31T23:59:59Z'] }),
    ),
  },
  CLOSED,
);

/** The only answer with the key itself. */
const NewApiKey = Type.Object({
  ...ApiKeyRecord.properties,
  key: text(`sd_00112233445566ff_${'x'.repeat(43)}`),
});

export const apiKeyRoutes: readonly Route[] = [
  defineRoute('GET', '/auth/api-keys', {
    summary: 'List all API keys',
    scope: 'admin',
    answers: { 200: { description: 'In the order of their creation', body: Type.Array(ApiKeyRecord) } },
    handler: async (_input, { auth }) => json(200, (await auth.accounts.apiKeys()).map(apiKeyRecord)),
  }),
  defineRoute('POST', '/auth/api-keys', {
    summary: 'Create an API key, which only this answer contains',
    scope: 'admin',
    request: { body: NewApiKeyBody },
    answers: { 201: { description: 'The key and its record', body: NewApiKey } },
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
  defineRoute('DELETE', '/auth/api-keys/:key_id', {
    summary: 'Revoke an API key',
    scope: 'admin',
    request: { params: ApiKeyParams },
    answers: { 204: { description: 'The key is no longer valid' } },
    errors: ['API_KEY_NOT_FOUND'],
    handler: async ({ params }, { auth }) => {
      await auth.accounts.revokeApiKey(params.key_id);
      return noContent();
    },
  }),
];
