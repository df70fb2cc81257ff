// Disabled authentication over an empty store in memory, for specs of the folders above it.

import { randomBytes } from 'node:crypto';
import { NEVER } from 'rxjs';
import { type Auth, composeAuth } from '../../../src/auth/auth.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';

export const CHANGES_ONLY = {
  recordsCalls: false,
  callArguments: 'digest' as const,
  keptCalls: 1_000,
  keptDays: 0,
};

/** Every caller is the anonymous admin. Accounts exist in memory only. */
export function anonymousAuth(): Auth {
  return composeAuth({
    authEnabled: false,
    store: new MemoryStore(),
    secrets: [randomBytes(32)],
    tokenLifetimeMs: 3_600_000,
    ...{ userHourlyLimit: 1_000, apiKeyHourlyLimit: 5_000, audit: CHANGES_ONLY },
    clock: systemClock,
    storeChanges$: NEVER,
    log: { info: () => {}, warn: () => {} },
  });
}
