// Many clients are the same program: sessions whose clients declared the same share one profile.

import type { ClientProfile } from '../../domain/client.ts';
import { canonicalText } from '../../domain/json.ts';

export class ClientProfiles {
  readonly #profiles = new Map<string, { readonly profile: ClientProfile; users: number }>();
  readonly #keys = new WeakMap<ClientProfile, string>();

  /** How many different ones are in use. */
  get size(): number {
    return this.#profiles.size;
  }

  /** The profile that all equal ones stand for, until it was released as often as it was taken. */
  take(profile: ClientProfile): ClientProfile {
    const { protocolVersion, capabilities, clientInfo } = profile;
    const key = canonicalText({ protocolVersion, capabilities, clientInfo });
    const known = this.#profiles.get(key);
    if (known !== undefined) {
      known.users += 1;
      return known.profile;
    }
    const own = { protocolVersion, capabilities, clientInfo };
    this.#profiles.set(key, { profile: own, users: 1 });
    this.#keys.set(own, key);
    return own;
  }

  /** `profile` is what `take` returned. */
  release(profile: ClientProfile): void {
    const key = this.#keys.get(profile) ?? '';
    const known = this.#profiles.get(key);
    if (known === undefined) return;
    known.users -= 1;
    if (known.users === 0) this.#profiles.delete(key);
  }
}
