// Work of which each caller may have a part under way. Of the routes that change the registry or its instances it is a number of
// changes: the registry makes one after the other, so those of one caller would keep the others waiting. Source: ADR 53.

import { tooMany } from '../../domain/errors/request-errors.ts';
import { shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { changesInstances, type HttpRoute } from './route.ts';

/** The most changes under way, and the part of them that one caller may have. */
export const CHANGES = { atOnce: 1_000, share: 0.1 } as const;

/** The same routes, of whose changes each caller has a share. */
export function boundedChanges(routes: readonly HttpRoute[]): readonly HttpRoute[] {
  const shares = new UserShares(CHANGES.atOnce, shareOf(CHANGES.atOnce, CHANGES.share));
  return routes.map((route) => {
    if (!changesInstances(route)) return route;
    const run: HttpRoute['run'] = (raw, services) =>
      withinShare(shares, raw.principal.id, 'changes under way', () => route.run(raw, services));
    return { ...route, run };
  });
}

/** Runs `work` in the share of the caller. Throws QUEUE_FULL. `what`: a plural, such as "running examinations". */
export async function withinShare<T>(
  shares: UserShares,
  callerId: string,
  what: string,
  work: () => T | Promise<T>,
): Promise<T> {
  const exceeded = shares.exceededBy(callerId);
  if (exceeded !== undefined) throw tooMany(what, exceeded, 5);
  shares.add(callerId);
  try {
    return await work();
  } finally {
    shares.release(callerId);
  }
}
