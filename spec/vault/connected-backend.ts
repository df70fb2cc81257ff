// A backend that wants OAuth, its authorization server, and vaults on one store, whose users connect their accounts.

import { Subject } from 'rxjs';
import { asGatewayError } from '../../src/domain/errors/errors.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../src/domain/time/task-scheduler.ts';
import { addressesIn } from '../../src/net/network-guard.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import type { AccountTarget } from '../../src/vault/oauth-backends.ts';
import { Vault, type VaultOptions } from '../../src/vault/vault.ts';
import { type OAuthBackend, type OAuthBackendOptions, startOAuthBackend } from '../fixtures/oauth-backend.ts';

export const BASE = 'http://127.0.0.1:8080';
export const BINDING = 'a browser';

export interface World {
  readonly backend: OAuthBackend;
  readonly store: MemoryStore;
  readonly target: AccountTarget;
  /** A node: another vault on the same store. */
  node(options?: Partial<VaultOptions>): Vault;
}

export function withBackend(run: (world: World) => Promise<void>, options: OAuthBackendOptions = {}) {
  return async () => {
    const backend = await startOAuthBackend(options);
    const store = new MemoryStore();
    const target: AccountTarget = {
      template: 'mail',
      id: 'mail-1',
      endpoint: backend.url,
      auth: { who: 'user' },
    };
    try {
      await run({
        ...{ backend, store, target },
        node: (more) =>
          new Vault({
            ...{ clock: systemClock, scheduler: new TaskScheduler() },
            changes$: new Subject(),
            ...{ store: store.oauth, isDenied: addressesIn([]), address: { issuer: BASE, isPublic: false } },
            ...more,
          }),
      });
    } finally {
      await backend.close();
    }
  };
}

/** As a browser: the URL at the authorization server, and the query of the callback to which it leads. */
export async function browse(url: string): Promise<URLSearchParams> {
  const answer = await fetch(url, { redirect: 'manual' });
  return new URL(answer.headers.get('location') ?? '').searchParams;
}

export async function connect(vault: Vault, target: AccountTarget, owner: string, returnTo?: string) {
  const url = await vault.begin(target, { owner, binding: BINDING, returnTo });
  return vault.finish(await browse(url), BINDING);
}

/** Why an account is needed, by what the error says. */
const WORDS: Readonly<Record<string, string>> = {
  none: 'is not connected',
  ended: 'is no longer connected',
  scopes: 'may not do this yet',
};

export async function codeOf(promise: string | Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'none';
  } catch (thrown) {
    const { code, message } = asGatewayError(thrown);
    const [why = ''] = Object.keys(WORDS).filter((key) => message.includes(WORDS[key] ?? ''));
    return `${code} ${why}`.trim();
  }
}
