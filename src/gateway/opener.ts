// How a gateway opens its instances: what it calls itself, where it may not go, how long it waits, what a command means.

import { LIMITS } from '../domain/limits.ts';
import { VERSION } from '../domain/version.ts';
import { launchOf } from '../templates/launch.ts';
import { type Open, type OpeningOptions, openingWith } from '../transports/opening.ts';
import { Reaper } from '../transports/stdio/reaper.ts';

/** How the gateway introduces itself, to backends and to clients. */
export const GATEWAY_INFO = { name: 'stagedoor', version: VERSION };

/** Makes the function that opens instances. `handlers` are looked up when one is opened, so later ones count, too. */
export function openerOf(options: Pick<OpeningOptions, 'deniedNetworks' | 'handlers' | 'pace'>): Open {
  return openingWith({
    ...options,
    reaper: new Reaper(),
    handshakeTimeoutMs: LIMITS.handshakeMs,
    client: GATEWAY_INFO,
    launch: launchOf,
  });
}
