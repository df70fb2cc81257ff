// A grant: what a user has allowed a client of the authorization server. Each answered consent makes one.

import type { Scope } from './account.ts';

export interface Grant {
  /** UUID. */
  readonly id: string;
  readonly userId: string;
  /** As the client names itself: a random text, or the URL of its document. */
  readonly clientId: string;
  /** For people; the client has chosen it. */
  readonly clientName: string;
  /** The URL of the gateway, or of a part of it, for which its tokens are: see domain/resource.ts. */
  readonly resource: string;
  readonly scopes: readonly Scope[];
  /** ISO 8601, as all times here. */
  readonly createdAt: string;
  /** Of an access token of it. Absent: never. */
  readonly lastUsedAt?: string | undefined;
  /** Its refresh tokens end then at the latest. */
  readonly expiresAt: string;
}
