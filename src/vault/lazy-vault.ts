// The vault, loaded with the first instance that has a backend which wants OAuth.

import { Subject } from 'rxjs';
import type { ConnectionChange } from '../domain/instances/account-connection.ts';
import { loadOnce } from '../domain/memory/load-once.ts';
import type { Vault, VaultOptions } from './vault.ts';

/** The vault before it is needed: `open` loads it, and its changes can be followed before. */
export class LazyVault {
  /**
   * The changes of connections on this node; an account that is connected again at another node is one when its token is read
   * here. Hot, no replay.
   */
  readonly changes$ = new Subject<ConnectionChange>();
  readonly open: () => Promise<Vault>;
  #loaded: Vault | undefined;

  constructor(options: Omit<VaultOptions, 'changes$'>) {
    const { changes$ } = this;
    this.open = loadOnce(async () => {
      const { Vault } = await import('./vault.ts');
      this.#loaded = new Vault({ ...options, changes$ });
      return this.#loaded;
    });
  }

  async stored(): Promise<void> {
    await this.#loaded?.stored();
  }
}
