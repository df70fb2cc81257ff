// What one instance has open: its transports, one after the other. It waits until a predecessor on the same endpoint is
// gone, and closes the latest after a crash of the actor. When to open is decided in instance.machine.ts.

import { firstValueFrom, from, race, timer } from 'rxjs';
import { openingCancelled } from '../../domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Open } from '../../transports/opening.ts';
import type { Transport } from '../../transports/transport.ts';

export class Openings {
  readonly #open: Open;
  readonly #before: Promise<unknown> | undefined;
  /** Transports remember by it. What replaces it has another weight or other metadata, and means the same backend. */
  #definition: InstanceDefinition | undefined;
  #latest: Promise<Transport> | undefined;

  /** `before` is the end of those that must be gone first; it has to come. */
  constructor(open: Open, before?: Promise<unknown>) {
    this.#open = open;
    this.#before = before;
  }

  /** What the session opens with. Errors of the given `open`; BACKEND_UNAVAILABLE when it is called off before. */
  readonly open: Open = (present, signal, opener) => {
    this.#definition ??= present;
    const definition = this.#definition;
    const opened =
      this.#before === undefined
        ? this.#open(definition, signal, opener)
        : this.#openAfter(this.#before, definition, signal, opener);
    this.#latest = opened;
    return opened;
  };

  /** Closes what was opened last. Resolves when it is gone, at the latest after LIMITS.drainMs. Never rejects. */
  async close(): Promise<void> {
    await firstValueFrom(race(from(this.#closeLatest()), timer(LIMITS.drainMs)));
  }

  async #openAfter(
    before: Promise<unknown>,
    ...[definition, signal, opener]: Parameters<Open>
  ): Promise<Transport> {
    await Promise.race([before, endOf(signal)]);
    if (signal.aborted) throw openingCancelled();
    return this.#open(definition, signal, opener);
  }

  async #closeLatest(): Promise<void> {
    try {
      const transport = await this.#latest;
      await transport?.close();
    } catch {
      // It was not opened, or breaks its promise to close: either way nothing more can be done about it.
    }
  }
}

function endOf(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
