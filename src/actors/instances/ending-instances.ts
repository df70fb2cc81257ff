// The instances that are leaving or have crashed, until their backends have ended. Two programs of one endpoint must
// never run at the same time: a new program waits here for the end of the earlier ones.

import { openingCancelled } from '../../domain/errors/backend-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import { unlessAborted } from '../../domain/time/clock.ts';
import type { Open } from '../../transports/open-options.ts';
import type { InstanceRef } from './instance-ref.ts';

/** The instances of a gateway that are ending. */
export class EndingInstances {
  readonly #ends = new Map<InstanceRef, Promise<void>>();

  get refs(): readonly InstanceRef[] {
    return [...this.#ends.keys()];
  }

  /** Resolves when all instances that are leaving at the moment have ended. */
  async untilEnded(): Promise<void> {
    await Promise.all(this.#ends.values());
  }

  /**
   * Adds an instance until `end` resolves; calls `onEnd` and then resolves. An instance that is removed and also
   * crashes is added twice, and ends when both ends have.
   */
  add(ref: InstanceRef, end: Promise<unknown>, onEnd: () => void): Promise<void> {
    const ended: Promise<void> = Promise.all([this.#ends.get(ref), end]).then(() => {
      if (this.#ends.get(ref) === ended) this.#ends.delete(ref);
      onEnd();
    });
    this.#ends.set(ref, ended);
    return ended;
  }

  /** An `open` that waits for the end of earlier programs before its first opening. */
  opensAfter(definition: InstanceDefinition, open: Open): Open {
    const before = this.#predecessorsOf(definition);
    if (before === undefined) return open;
    return async (signal, hooks) => {
      await unlessAborted(signal, before, openingCancelled);
      return open(signal, hooks);
    };
  }

  /**
   * Resolves at the end of the programs that still serve the endpoint of this one, or have the id of this shared
   * program. Undefined when there are none.
   */
  #predecessorsOf(next: InstanceDefinition): Promise<unknown> | undefined {
    const { endpoint, serverId } = next;
    if (!runsProgram(next) || (endpoint === undefined && !runsAnywhere(next))) return undefined;
    const ends = [...this.#ends]
      .filter(([{ isElsewhere }]) => !isElsewhere)
      .filter(([{ definition }]) =>
        endpoint === undefined
          ? definition.serverId === serverId
          : definition.endpoint === endpoint && runsProgram(definition),
      )
      .map(([, end]) => end);
    return ends.length === 0 ? undefined : Promise.all(ends);
  }
}
