// The identities of accounts, each a user of an identity provider, as rows of the table `oauth`.

import Type from 'typebox';
import type { User } from '../../domain/accounts/account.ts';
import { oauthKey, rowReader } from '../../persistence/oauth-rows.ts';
import type { OAuthRow } from '../../persistence/oauth-store.ts';

/** The identity of an account: a user of a provider. */
export interface CompanyIdentity {
  readonly issuer: string;
  readonly subject: string;
}

/**
 * An identity as it is stored: for an account that an admin has linked it is the identity alone, until the first sign-in. Times
 * are in ms since 1970.
 */
export interface StoredIdentity extends CompanyIdentity {
  /** The claim `sub`, by which the provider knows the user. */
  readonly sub?: string;
  /** The time at which the provider last confirmed the rights of the user. */
  readonly confirmedAtMs?: number;
  readonly refreshToken?: string | undefined;
  /** A node asks the provider until then: most refresh tokens work once. */
  readonly askedUntilMs?: number | undefined;
  /** The account was disabled here, and not by an admin: `updatedAt` of the account as it was then. */
  readonly sleptAt?: string | undefined;
}

export const readIdentity: (row: OAuthRow) => StoredIdentity = rowReader(
  Type.Object({
    issuer: Type.String(),
    subject: Type.String(),
    sub: Type.Optional(Type.String()),
    confirmedAtMs: Type.Optional(Type.Number()),
    refreshToken: Type.Optional(Type.String()),
    askedUntilMs: Type.Optional(Type.Number()),
    sleptAt: Type.Optional(Type.String()),
  }),
);

export function identityKey({ issuer, subject }: CompanyIdentity): string {
  return oauthKey('identity', JSON.stringify([issuer, subject]));
}

export function rowOfIdentity(identity: StoredIdentity, { id, createdAt }: User): Omit<OAuthRow, 'version'> {
  return {
    kind: 'identity',
    key: identityKey(identity),
    userId: id,
    createdAt,
    value: JSON.stringify(identity),
  };
}
