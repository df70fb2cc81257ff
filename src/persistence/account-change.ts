// How a change is laid over a user: the same in every store, inside its transaction.

import type { User, UserChange } from '../domain/account.ts';

/**
 * The user after the change. `templates: null` takes the restriction away. Two changes of credentials never share a moment,
 * not even those of two nodes in one millisecond: tokens are good for one moment only.
 */
export function withChange(user: User, { templates, ...change }: UserChange): User {
  const { templates: before, ...rest } = user;
  const after = templates === undefined ? before : (templates ?? undefined);
  const { credentialsChangedAt: moment } = change;
  const credentials =
    moment === undefined ? {} : { credentialsChangedAt: laterThan(user.credentialsChangedAt, moment) };
  return { ...rest, ...change, ...credentials, ...(after === undefined ? {} : { templates: after }) };
}

/** Both ISO 8601. */
function laterThan(before: string, wanted: string): string {
  return wanted > before ? wanted : new Date(Date.parse(before) + 1).toISOString();
}
