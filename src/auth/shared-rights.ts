// Keeps equal lists of rights of callers once. Source: ADR 299.

import { hash } from 'node:crypto';
import { isRestricted, type Rights, rightsKey } from '../domain/accounts/rights.ts';
import { definedFields } from '../domain/json/json.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { MAX_ENTRIES } from './credential-cache.ts';

/**
 * Equal lists of rights as one, as long as a caller or a session has them: a caller may have thousands of tokens
 * and sessions.
 */
export class SharedRights {
  readonly #known = new LruMap<WeakRef<Rights>>(MAX_ENTRIES);

  shared<I extends { readonly principal: Rights }>(identity: I): I {
    const { principal } = identity;
    if (!isRestricted(principal)) return identity;
    const key = hash('sha256', rightsKey(principal), 'base64url');
    const known = this.#known.get(key)?.deref();
    if (known === undefined) {
      this.#known.set(key, new WeakRef(principal));
      return identity;
    }
    const { templates, views, tools } = known;
    return { ...identity, principal: { ...principal, ...definedFields({ templates, views, tools }) } };
  }
}
