// Grants as rows of the table `oauth`.

import type { Grant } from '../../domain/accounts/grant.ts';
import { clientKeyOf, oauthKey } from '../../persistence/oauth-rows.ts';
import type { OAuthRow } from '../../persistence/oauth-store.ts';

type GrantValue = Pick<
  Grant,
  'clientId' | 'clientName' | 'resource' | 'scopes' | 'lists' | 'subject' | 'isAsserted'
>;

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

/** Undefined for a row of another kind, and for one without all fields. */
export function grantOf(row: OAuthRow): Grant | undefined {
  const { kind, grantId, userId, createdAt, usedAt, expiresAt, value } = row;
  if (kind !== 'grant' || grantId === undefined || userId === undefined || expiresAt === undefined)
    return undefined;
  // Written by `rowOfGrant`.
  const fields = JSON.parse(value) as GrantValue;
  return { id: grantId, userId, ...fields, createdAt, lastUsedAt: usedAt, expiresAt };
}
