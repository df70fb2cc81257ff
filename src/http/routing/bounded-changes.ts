// The routes that change the registry or its instances: of each caller, a bounded number of changes is under way. The registry
// makes one after the other, so those of one caller would keep the others waiting. Source: ADR 53.

import { shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { withinShare } from '../within-share.ts';
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
