// A grant: what a user has allowed a client of the authorization server. Each answered consent makes one. So does
// the identity assertion of another issuer, or of a provider, in which a company has allowed it (ADR 224, 227).

import type { Scope } from './account.ts';
import type { RightsLists } from './rights.ts';

export interface Grant {
  /** UUID. */
  readonly id: string;
  /** Without an account: the holder of the limits of a subject of another issuer. */
  readonly userId: string;
  /** For whom another issuer vouched. Absent: the user has an account here. */
  readonly subject?: IssuedSubject | undefined;
  /** The provider of the account has allowed it by an identity assertion. Absent: the user has, or there is a subject. */
  readonly isAsserted?: true | undefined;
  /** As the client names itself: a random text, or the URL of its document. */
  readonly clientId: string;
  /** For people; the client has chosen it. */
  readonly clientName: string;
  /** The URL of the gateway, or of a part of it, for which its tokens are: see domain/accounts/resource.ts. */
  readonly resource: string;
  readonly scopes: readonly Scope[];
  /** What an admin has limited the client to. Absent: nothing is. */
  readonly lists?: RightsLists | undefined;
  /** ISO 8601, as all times here. */
  readonly createdAt: string;
  /** The last use of one of its access tokens. Absent: never. */
  readonly lastUsedAt?: string | undefined;
  /** Time at which the refresh tokens end at the latest. */
  readonly expiresAt: string;
}

/** A subject of another issuer, which has no account here. */
export interface IssuedSubject {
  readonly issuer: string;
  /** For people. */
  readonly name: string;
  /** Groups that had a role at this gateway. */
  readonly groups: readonly string[];
}
