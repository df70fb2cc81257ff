// Opens the transports of one instance, one after another: waits until a predecessor on the same endpoint is gone, and closes the
// latest one after a crash of the actor. instance.machine.ts decides when to open.

import { once } from 'node:events';
import { firstValueFrom, from, race, timer } from 'rxjs';
import { openingCancelled } from '../../domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Open } from '../../transports/opening.ts';
import type { Transport } from '../../transports/transport.ts';

export class Openings {
  readonly #open: Open;
  readonly #before: Promise<unknown> | undefined;
  /** Transports keep state by its identity. A changed definition differs in weight or metadata only, and means the same backend. */
  #definition: InstanceDefinition | undefined;
  #latest: Promise<Transport> | undefined;

  /** `before`: the end of the predecessors, which must resolve. */
  constructor(open: Open, before?: Promise<unknown>) {
    this.#open = open;
    this.#before = before;
  }

  /** Errors of the given `open`; BACKEND_UNAVAILABLE when it is aborted before. */
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

  /** Closes the latest transport. Resolves when it is gone, at the latest after LIMITS.drainMs; never rejects. */
  async close(): Promise<void> {
    await firstValueFrom(race(from(this.#closeLatest()), timer(LIMITS.drainMs)));
  }

  async #openAfter(
    before: Promise<unknown>,
    ...[definition, signal, opener]: Parameters<Open>
  ): Promise<Transport> {
    await Promise.race([before, once(signal, 'abort')]);
    if (signal.aborted) throw openingCancelled();
    return this.#open(definition, signal, opener);
  }

  async #closeLatest(): Promise<void> {
    try {
      const transport = await this.#latest;
      await transport?.close();
    } catch {
      // It was not opened, or cannot be closed: nothing more can be done.
    }
  }
}
