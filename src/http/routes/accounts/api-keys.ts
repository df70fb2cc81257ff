// API keys, for admins.

import Type, { type Static } from 'typebox';
import type { ShownApiKey } from '../../../auth/accounts/accounts.ts';
import { type CreatedId, SCOPES } from '../../../domain/accounts/account.ts';
import { KeyName, KeyPermissions, RoleName } from '../../../domain/accounts/input-schemas.ts';
import { isOfIssuer } from '../../../domain/accounts/principal.ts';
import { keysNeedAnAccount } from '../../../domain/errors/account-errors.ts';
import { rightsOfNewKey, shownListFields, shownLists, WRITTEN_LISTS } from '../../records/rights-fields.ts';
import { closed, flag, NullableTime, named, nullableText, Time, text } from '../../records/schemas.ts';
import { BY_CREATION, creationOf, PAGE_HEADERS, PAGE_QUERY, pagedList } from '../../replies/paged-list.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { ApiKeyParams } from '../../routing/route-params.ts';

/** A key without its secret. A list of rights is null for all; `created_by`: null for the operator. */
const ApiKeyRecord = named('ApiKeyRecord', {
  id: text('00112233445566ff'),
  name: text('nightly build'),
  permissions: Type.Array(Type.Enum([...SCOPES]), { examples: [['tools:call']] }),
  ...shownListFields(['everything']),
  expires_at: nullableText('2099-12-31T23:59:59Z'),
  created_at: Time,
  last_used_at: NullableTime,
  is_active: flag(true),
  created_by: nullableText('admin'),
});

function apiKeyRecord({ apiKey, isActive, createdBy }: ShownApiKey): Static<typeof ApiKeyRecord> {
  return {
    id: apiKey.id,
    name: apiKey.name,
    permissions: [...apiKey.permissions],
    ...shownLists(apiKey),
    expires_at: apiKey.expiresAt ?? null,
    created_at: apiKey.createdAt,
    last_used_at: apiKey.lastUsedAt ?? null,
    is_active: isActive,
    created_by: createdBy,
  };
}

const NewApiKeyBody = closed({
  name: KeyName,
  /** The key gets its scopes and lists as they are now. */
  role: Type.Optional(RoleName),
  /** Required without a role; default its scopes. */
  permissions: Type.Optional(KeyPermissions),
  ...WRITTEN_LISTS,
  /** ISO 8601 with an offset or `Z`; null = never. */
  expires_at: Type.Optional(
    Type.Union([Type.String({ maxLength: 64 }), Type.Null()], { examples: ['2099-12-31T23:59:59Z'] }),
  ),
});

/** The only answer that contains the key. */
const NewApiKey = Type.Object({
  ...ApiKeyRecord.properties,
  key: text(`sd_00112233445566ff_${'x'.repeat(43)}`),
});

export const apiKeyRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/auth/api-keys', {
    summary: 'List all API keys',
    scope: 'admin',
    errors: ['INVALID_CURSOR'],
    request: { query: closed(PAGE_QUERY) },
    answers: { 200: { description: BY_CREATION, body: Type.Array(ApiKeyRecord), headers: PAGE_HEADERS } },
    handler: async ({ query }, { auth: { accounts }, scheduler }) => {
      const read = async (page: readonly CreatedId[]) =>
        (await accounts.apiKeys(page.map(({ id }) => id))).map(apiKeyRecord);
      return pagedList(
        'keys',
        { items: await accounts.apiKeyIds(), idOf: creationOf, read },
        query,
        scheduler,
      );
    },
  }),
  defineRoute('POST', '/auth/api-keys', {
    summary: 'Create an API key, which only this answer contains',
    scope: 'admin',
    request: { body: NewApiKeyBody },
    answers: { 201: { description: 'The key and its record', body: NewApiKey } },
    handler: async ({ body, principal }, { auth }) => {
      if (isOfIssuer(principal.id)) throw keysNeedAnAccount();
      const { name, expires_at: expiresAt } = body;
      const rights = rightsOfNewKey(body, auth.roles);
      const input = { name, ...rights, expiresAt, ownerId: principal.userId };
      const { apiKey, key } = await auth.accounts.createApiKey(input);
      const subject = `/auth/api-keys/${apiKey.apiKey.id}`;
      return json(201, { ...apiKeyRecord(apiKey), key }, { trail: { subject } });
    },
  }),
  defineRoute('PATCH', '/auth/api-keys/:key_id', {
    summary: 'Change the templates, views and tools of an API key',
    scope: 'admin',
    request: { params: ApiKeyParams, body: closed(WRITTEN_LISTS) },
    answers: { 200: { description: 'The key as it is now; what it has open ends', body: ApiKeyRecord } },
    handler: async ({ params, body }, { auth }) =>
      json(200, apiKeyRecord(await auth.accounts.changeApiKey(params.key_id, body))),
  }),
  defineRoute('DELETE', '/auth/api-keys/:key_id', {
    summary: 'Revoke an API key',
    scope: 'admin',
    request: { params: ApiKeyParams },
    answers: { 204: { description: 'The key is no longer valid' } },
    handler: async ({ params }, { auth }) => {
      await auth.accounts.revokeApiKey(params.key_id);
      return noContent();
    },
  }),
];
