// Those who wait for a session to have a binding. Each is answered once; whoever comes while they are answered waits for what
// happens next.

import type { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Binding, Waiter } from './client-session-types.ts';

export class Waiting {
  #waiters: Set<Waiter> | undefined;
  #failure: GatewayError | undefined;

  /** True while somebody needs a conversation of the session's own. */
  get needsOwn(): boolean {
    for (const waiter of this.#waiters ?? []) if (waiter.needsOwn) return true;
    return false;
  }

  /** False when there are too many already. */
  add(waiter: Waiter): boolean {
    this.#waiters ??= new Set();
    if (this.#waiters.size >= LIMITS.queuedPerInstance) return false;
    this.#waiters.add(waiter);
    return true;
  }

  leave(waiter: Waiter): void {
    this.#waiters?.delete(waiter);
  }

  /** Why the session did not get on: whoever is refused the next time hears this, whatever else there is to say. */
  fail(failure: GatewayError): void {
    this.#failure = failure;
  }

  /** When an attempt to have a conversation of its own failed, those are refused who need one. */
  tell(binding: Binding): void {
    const failure = this.#takeFailure();
    for (const waiter of this.#take()) {
      if (failure !== undefined && waiter.needsOwn) waiter.refused(failure);
      else waiter.bound(binding);
    }
  }

  /** The error is only made when somebody waits. */
  refuse(why: () => GatewayError): void {
    const failure = this.#takeFailure();
    const waiters = [...this.#take()];
    if (waiters.length === 0) return;
    const error = failure ?? why();
    for (const waiter of waiters) waiter.refused(error);
  }

  /** Who comes from now on waits anew; who leaves while the others are told takes no notice. */
  #take(): Iterable<Waiter> {
    const waiters = this.#waiters ?? [];
    this.#waiters = undefined;
    return waiters;
  }

  #takeFailure(): GatewayError | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }
}
