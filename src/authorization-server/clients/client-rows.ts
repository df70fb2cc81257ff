// Clients as rows of the table `oauth`. Commands load client-record.ts, and not the code that checks rows.

import Type from 'typebox';
import { StoredRightsLists, StoredScopes } from '../../auth/grants/grant-rows.ts';
import { rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow } from '../../persistence/oauth-store.ts';
import { AUTH_METHODS, type ClientRecord } from './client-record.ts';

export const readClient: (row: OAuthRow) => ClientRecord = rowReader(
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    redirectUris: Type.Array(Type.String()),
    mayRefresh: Type.Boolean(),
    mayAssert: Type.Optional(Type.Boolean()),
    authMethod: Type.Enum([...AUTH_METHODS]),
    source: Type.Enum(['registered', 'document', 'added']),
    scopes: StoredScopes,
    lists: Type.Optional(StoredRightsLists),
    secret: Type.Optional(Type.String()),
    jwks: Type.Optional(Type.Unknown()),
    jwksUri: Type.Optional(Type.String()),
  }),
);
