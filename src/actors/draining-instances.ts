// Instances that get no new calls but have not ended: they leave with calls under way, or their actor crashed before the backend
// ended. The fleet decides which instances leave, and which replace them.

import { filter, firstValueFrom } from 'rxjs';
import type { InstanceDefinition } from '../domain/instance.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

export class DrainingInstances {
  /** Each with the promise of its end. */
  readonly #leaving = new Map<InstanceRef, Promise<void>>();
  /** Each with the promise of the end of its backend. */
  readonly #crashed = new Map<InstanceRef, Promise<void>>();

  /** The instances that leave; they may have calls. */
  get leaving(): Iterable<InstanceRef> {
    return this.#leaving.keys();
  }

  /** Makes the instance leave, with this time for its calls. Resolves when it has ended. */
  leave(ref: InstanceRef, withinMs: number): Promise<void> {
    const stopped = firstValueFrom(ref.state$.pipe(filter((state) => state === 'stopped')));
    const ended = tracked(this.#leaving, ref, stopped);
    ref.leave(withinMs);
    return ended;
  }

  /** Its actor crashed; `gone` resolves when its backend is gone. */
  crashed(ref: InstanceRef, gone: Promise<unknown>): void {
    void tracked(this.#crashed, ref, gone);
  }

  /** Limits the remaining time of all that leave. */
  limit(withinMs: number): void {
    for (const ref of this.leaving) ref.leave(withinMs);
  }

  /** Resolves when all present ones have ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#leaving.values(), ...this.#crashed.values()]);
  }

  /** The end of the programs that still serve the endpoint of this program; undefined without any. */
  predecessorsOf({ endpoint, command }: InstanceDefinition): Promise<unknown> | undefined {
    if (endpoint === undefined || command === undefined) return undefined;
    const ends = [...this.#leaving, ...this.#crashed]
      .filter(([{ definition }]) => definition.endpoint === endpoint && definition.command !== undefined)
      .map(([, end]) => end);
    return ends.length === 0 ? undefined : Promise.all(ends);
  }
}

/** In the map until it has ended. */
function tracked(
  map: Map<InstanceRef, Promise<void>>,
  ref: InstanceRef,
  end: Promise<unknown>,
): Promise<void> {
  const ended = end.then(() => {
    map.delete(ref);
  });
  map.set(ref, ended);
  return ended;
}
