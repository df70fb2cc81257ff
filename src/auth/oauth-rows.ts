// The rows of the table `oauth` as the things that they are.

import { hash } from 'node:crypto';
import type { Grant } from '../domain/grant.ts';
import type { OAuthKind, OAuthRow } from '../persistence/store.ts';

/** The key of a row. Kind and id together, so that an id of one kind is none of another. */
export function oauthKey(kind: OAuthKind, id: string): string {
  return hash('sha256', `${kind}:${id}`, 'hex');
}

/** See OAuthRow.clientKey. */
export function clientKeyOf(clientId: string): string {
  return oauthKey('client', clientId);
}

type GrantValue = Pick<Grant, 'clientId' | 'clientName' | 'resource' | 'scopes' | 'subject'>;

export function rowOfGrant(grant: Grant): Omit<OAuthRow, 'version'> {
  const { id, userId, clientId, clientName, resource, scopes, subject, createdAt, lastUsedAt, expiresAt } =
    grant;
  const value: GrantValue = { clientId, clientName, resource, scopes, subject };
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
