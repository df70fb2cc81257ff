// The door to the vault: it is loaded with the first instance that has a backend which wants OAuth.

import { Subject } from 'rxjs';
import type { ConnectionChange } from '../domain/connection.ts';
import type { Vault, VaultOptions } from './vault.ts';

export class VaultDoor {
  /** Hot, no replay. Changes that other nodes make are seen by `Vault.find`. */
  readonly changes$ = new Subject<ConnectionChange>();
  readonly #options: Omit<VaultOptions, 'changes$'>;
  #vault: Promise<Vault> | undefined;

  constructor(options: Omit<VaultOptions, 'changes$'>) {
    this.#options = options;
  }

  open(): Promise<Vault> {
    const { changes$ } = this;
    this.#vault ??= import('./vault.ts').then(({ Vault }) => new Vault({ ...this.#options, changes$ }));
    return this.#vault;
  }
}
