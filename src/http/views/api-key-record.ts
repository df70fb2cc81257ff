// How an API key looks to API clients: never with its secret. Source: decisions, "API key".

import Type, { type Static } from 'typebox';
import type { ApiKeyView } from '../../auth/auth.ts';
import { SCOPES } from '../../domain/account.ts';
import { NullableTemplates, NullableText } from '../schemas.ts';

/** Schema of the record. `templates` is null when all may be used, `created_by` when the operator made it. */
export const ApiKeyRecord = Type.Object({
  id: Type.String(),
  name: Type.String(),
  permissions: Type.Array(Type.Enum([...SCOPES])),
  templates: NullableTemplates,
  expires_at: NullableText,
  created_at: Type.String(),
  last_used_at: NullableText,
  is_active: Type.Boolean(),
  created_by: NullableText,
});
export type ApiKeyRecord = Static<typeof ApiKeyRecord>;

/** Makes the record. */
export function apiKeyRecord({ apiKey, isActive, createdBy }: ApiKeyView): ApiKeyRecord {
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
