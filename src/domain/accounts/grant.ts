// A grant: the rights that a user has given a client of the authorization server. Each answered consent makes one. So does the
// identity assertion of another issuer, or of a provider, in which a company has allowed it (ADR 224, 227).

import type { Scope } from './account.ts';
import type { RightsLists } from './rights.ts';

export interface Grant {
  /** A UUID. */
  readonly id: string;
  /** The user who allowed it. For a subject of another issuer, which has no account here: the id for which its limits count. */
  readonly userId: string;
  /** The subject for which another issuer vouched. Absent: the user has an account here. */
  readonly subject?: IssuedSubject | undefined;
  /**
   * True when the provider of the account has allowed it by an identity assertion. Absent: the user has, or there is
   * a subject.
   */
  readonly isAsserted?: true | undefined;
  /** The id that the client uses: a random text, or the URL of its document. */
  readonly clientId: string;
  /** The name for people; the client has chosen it. */
  readonly clientName: string;
  /** The URL of the gateway, or of a part of it, for which the tokens of the grant are: see domain/accounts/resource.ts. */
  readonly resource: string;
  readonly scopes: readonly Scope[];
  /** The lists to which an admin has limited the client. Absent: it is not limited. */
  readonly lists?: RightsLists | undefined;
  /** ISO 8601, as all times here. */
  readonly createdAt: string;
  /** The time of the last use of one of its access tokens. Absent: never. */
  readonly lastUsedAt?: string | undefined;
  /** The latest time at which the refresh tokens end. */
  readonly expiresAt: string;
}

/** A subject of another issuer, which has no account here. */
export interface IssuedSubject {
  readonly issuer: string;
  /** The name for people. */
  readonly name: string;
  /** The groups of the subject that had a role at this gateway. */
  readonly groups: readonly string[];
}
