// The states of confirmations, and of further rounds of calls that views limit, that were used: each counts once on all nodes.
// A row is kept at least as long as a state is valid. Source: ADR 232, ADR 241.

import { CONFIRM_MS } from '../../domain/calls/confirmation-required.ts';
import { type Clock, clockDoubt } from '../../domain/time/clock.ts';
import { oauthKey } from '../../persistence/oauth-rows.ts';
import type { Store } from '../../persistence/store.ts';
import type { EndpointOptions } from '../../protocol/endpoint-types.ts';

/** Time for which a used state is kept, in ms: longer than a confirmation is valid, because clocks of nodes may differ. */
const KEPT_MS = 6 * CONFIRM_MS;

/** Counts a state once on all nodes, see EndpointOptions.useOnce. */
export function useOnceIn(
  store: Pick<Store, 'oauth' | 'serverTimeMs'>,
  clock: Clock,
): EndpointOptions['useOnce'] {
  const { wall, now } = clock;
  const { oauth } = store;
  const doubt = clockDoubt(clock, () => store.serverTimeMs());
  let sweptAtMs = now();
  const sweep = async (at: string): Promise<void> => {
    if ((await doubt()) === undefined) await oauth.sweep(at);
  };
  return async (id) => {
    const atMs = wall();
    const createdAt = new Date(atMs).toISOString();
    const times = { createdAt, expiresAt: new Date(atMs + KEPT_MS).toISOString() };
    const key = oauthKey('confirmation', id);
    const isFirst = await oauth.replace({ kind: 'confirmation', key, ...times, value: '' }, 0);
    if (now() - sweptAtMs >= CONFIRM_MS) {
      sweptAtMs = now();
      sweep(createdAt).catch(() => undefined); // a later one deletes them
    }
    if (!isFirst) return undefined;
    return async () => {
      await oauth.delete('confirmation', [key]);
    };
  };
}
