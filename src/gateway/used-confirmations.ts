// The answers of users that were used: each counts once on all nodes. A row is kept for longer than the state that the answer belongs to is
// valid. Source: ADR 241.

import { oauthKey } from '../auth/oauth-rows.ts';
import type { Clock } from '../domain/clock.ts';
import { CONFIRM_MS } from '../domain/confirmation-required.ts';
import type { OAuthStore } from '../persistence/store.ts';

/** Clocks of nodes may differ. */
const KEPT_MS = 6 * CONFIRM_MS;

/** See EndpointOptions.useOnce. */
export function useOnceIn(
  store: Pick<OAuthStore, 'replace' | 'sweep'>,
  { wall, now }: Pick<Clock, 'wall' | 'now'>,
): (id: string) => Promise<boolean> {
  let sweptAtMs = now();
  return async (id) => {
    const atMs = wall();
    const createdAt = new Date(atMs).toISOString();
    const times = { createdAt, expiresAt: new Date(atMs + KEPT_MS).toISOString() };
    const isFirst = await store.replace(
      { kind: 'confirmation', key: oauthKey('confirmation', id), ...times, value: '' },
      0,
    );
    if (now() - sweptAtMs >= CONFIRM_MS) {
      sweptAtMs = now();
      store.sweep(createdAt).catch(() => undefined); // a later one deletes them
    }
    return isFirst;
  };
}
