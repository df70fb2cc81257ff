// Grants as rows of the table `oauth`. The authorization server writes them; verification reads them.

import Type from 'typebox';
import type { Scope } from '../../domain/accounts/account.ts';
import type { Grant } from '../../domain/accounts/grant.ts';
import { clientKeyOf, oauthKey, rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow } from '../../persistence/oauth-store.ts';

type GrantValue = Pick<
  Grant,
  'clientId' | 'clientName' | 'resource' | 'scopes' | 'lists' | 'subject' | 'isAsserted'
>;

const texts = Type.Array(Type.String());

/** Any text: a later release may have stored scopes that this one does not know. */
export const StoredScopes = Type.Array(Type.Unsafe<Scope>(Type.String()));

export const StoredRightsLists = Type.Object({
  templates: Type.Optional(texts),
  views: Type.Optional(texts),
  tools: Type.Optional(texts),
});

const readValue: (row: OAuthRow) => GrantValue = rowReader(
  Type.Object({
    clientId: Type.String(),
    clientName: Type.String(),
    resource: Type.String(),
    scopes: StoredScopes,
    lists: Type.Optional(StoredRightsLists),
    subject: Type.Optional(Type.Object({ issuer: Type.String(), name: Type.String(), groups: texts })),
    isAsserted: Type.Optional(Type.Literal(true)),
  }),
);

export function rowOfGrant(grant: Grant): Omit<OAuthRow, 'version'> {
  const { id, userId, clientId, clientName, resource, scopes, lists, subject, isAsserted } = grant;
  const { createdAt, lastUsedAt, expiresAt } = grant;
  const value: GrantValue = { clientId, clientName, resource, scopes, lists, subject, isAsserted };
  return {
    kind: 'grant',
    key: oauthKey('grant', id),
    grantId: id,
    userId,
    clientKey: clientKeyOf(clientId),
    createdAt,
    usedAt: lastUsedAt,
    expiresAt,
    value: JSON.stringify(value),
  };
}

/** The result is undefined for a row of another kind, and for one without all fields. */
export function grantOf(row: OAuthRow): Grant | undefined {
  const { kind, grantId, userId, createdAt, usedAt, expiresAt } = row;
  if (kind !== 'grant' || grantId === undefined || userId === undefined || expiresAt === undefined)
    return undefined;
  return { id: grantId, userId, ...readValue(row), createdAt, lastUsedAt: usedAt, expiresAt };
}
