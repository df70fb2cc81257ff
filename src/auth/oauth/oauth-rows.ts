// Rows of the table `oauth`: their keys, grants as rows, and a warning about rows that cannot be read.

import { hash } from 'node:crypto';
import type { Grant } from '../../domain/accounts/grant.ts';
import type { OAuthKind, OAuthRow, OAuthStore } from '../../persistence/oauth-store.ts';

/** The key of a row: a hash of kind and id, so that equal ids of two kinds are two rows. */
export function oauthKey(kind: OAuthKind, id: string): string {
  return hash('sha256', `${kind}:${id}`, 'hex');
}

/** See OAuthRow.clientKey. */
export function clientKeyOf(clientId: string): string {
  return oauthKey('client', clientId);
}

/** Rows of which a start says whether they can be read, the newest. */
const MAX_READ = 1_000;

/** A warning about rows that no key decrypts; undefined when all of the newest can be read. */
export async function unreadableRows(store: Pick<OAuthStore, 'count' | 'list'>): Promise<string | undefined> {
  const count = Math.min(await store.count({}), MAX_READ);
  const unread = count === 0 ? 0 : count - (await store.list({}, count)).length;
  if (unread === 0) return undefined;
  return (
    `${unread} of the newest ${count} rows of sign-ins, clients and connections cannot be read, because their key is lost: ` +
    'users sign in and connect again, or add the earlier key last to GATEWAY_ENCRYPTION_KEY'
  );
}

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
