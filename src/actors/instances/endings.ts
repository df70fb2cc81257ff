// The instances that leave and may have calls, and crashed ones, until nothing is left of their backends. Two
// programs of one endpoint never run at the same time: a program waits here for the end of those before it.

import { once } from 'node:events';
import { openingCancelled } from '../../domain/errors/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import type { Open } from '../../transports/open-options.ts';
import type { InstanceRef } from './instance-ref.ts';

/** The instances of a gateway that are ending. */
export class Endings {
  readonly #ends = new Map<InstanceRef, Promise<void>>();

  get refs(): readonly InstanceRef[] {
    return [...this.#ends.keys()];
  }

  /** Resolves when the instances that are leaving now have ended. */
  async untilEnded(): Promise<void> {
    await Promise.all(this.#ends.values());
  }

  /** Resolves at the end of an instance, which may be dismissed and crash; `onEnd` is called before. */
  add(ref: InstanceRef, end: Promise<unknown>, onEnd: () => void): Promise<void> {
    const ended: Promise<void> = Promise.all([this.#ends.get(ref), end]).then(() => {
      if (this.#ends.get(ref) === ended) this.#ends.delete(ref);
      onEnd();
    });
    this.#ends.set(ref, ended);
    return ended;
  }

  /** Opens the transports of a program, the first when the programs before it have ended. */
  opensAfter(definition: InstanceDefinition, open: Open): Open {
    const before = this.#predecessorsOf(definition);
    if (before === undefined) return open;
    return async (signal, hooks) => {
      await Promise.race([before, once(signal, 'abort')]);
      if (signal.aborted) throw openingCancelled();
      return open(signal, hooks);
    };
  }

  /**
   * The end of the programs that still serve the endpoint of this program, or are a shared one with its id;
   * undefined without any.
   */
  #predecessorsOf({ endpoint, command, nodeId, serverId }: InstanceDefinition): Promise<unknown> | undefined {
    if (command === undefined || (endpoint === undefined && !runsAnywhere({ nodeId }))) return undefined;
    const ends = [...this.#ends]
      .filter(([{ definition, isElsewhere }]) =>
        endpoint === undefined
          ? definition.serverId === serverId && !isElsewhere
          : definition.endpoint === endpoint && definition.command !== undefined,
      )
      .map(([, end]) => end);
    return ends.length === 0 ? undefined : Promise.all(ends);
  }
}
