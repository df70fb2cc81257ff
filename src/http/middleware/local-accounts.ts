// While authentication is off everybody is an admin. What an admin makes then would last longer than that, so accounts are
// changed from this machine only, and never by a page: the rule for commands (checked-command.ts).

import { accountsFromHereOnly } from '../../domain/account-errors.ts';
import type { RouteMiddleware } from '../context.ts';
import type { Proxies } from '../proxies.ts';
import type { RouteAccess } from '../route.ts';

/** One step for the routes that change accounts while authentication is off; none otherwise. */
export function localAccounts(
  { method, scope }: Pick<RouteAccess, 'method' | 'scope'>,
  isAuthEnabled: boolean,
  proxies: Pick<Proxies, 'isLocal'>,
): RouteMiddleware[] {
  if (isAuthEnabled || scope !== 'admin' || method === 'GET') return [];
  return [
    ({ req }, next) => {
      if (!proxies.isLocal(req) || req.headers.origin !== undefined) throw accountsFromHereOnly();
      return next();
    },
  ];
}
