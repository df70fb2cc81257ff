// What of an account decides how long those who were let in with it may stay, whatever credentials they came with. Pure.
// What they may do is permissions.ts; who is looked at again, and when, is session-revalidator.ts.

import type { ApiKey, User } from '../domain/account.ts';

/** How somebody stands. */
export interface AccountStatus {
  /** The user, or the owner of the key. */
  readonly userId?: string;
  /** Another one when what they may do was changed, or the credentials of the account. */
  readonly stamp: string;
  /** When all credentials for it end, in ms since 1970: those of a key. Infinite for users, who log in again. */
  readonly endsAtMs: number;
}

export function userStatus(user: User): AccountStatus {
  return { userId: user.id, stamp: stampOf(user), endsAtMs: Number.POSITIVE_INFINITY };
}

/** Nothing of a key itself is ever changed, but what its owner may do cuts what it may. */
export function keyStatus(key: ApiKey, owner: User | undefined): AccountStatus {
  const endsAtMs = keyEndsAtMs(key);
  if (owner === undefined) return { stamp: '', endsAtMs };
  return { userId: owner.id, stamp: stampOf(owner), endsAtMs };
}

/** Ms since 1970; infinite for a key without an end. */
export function keyEndsAtMs({ expiresAt }: ApiKey): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

export function isActive(user: User | undefined): user is User {
  return user?.isActive === true;
}

/** A change of password, role or activity moves `credentialsChangedAt`. */
function stampOf({ credentialsChangedAt, templates }: User): string {
  return `${credentialsChangedAt} ${templates?.join() ?? '*'}`;
}
