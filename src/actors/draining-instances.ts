// Instances that get no new calls but are not gone yet: they leave with calls under way, or their actor crashed before the
// backend ended. The fleet decides which instances leave, and which replace them.

import { filter, firstValueFrom } from 'rxjs';
import type { InstanceDefinition } from '../domain/instance.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

export class DrainingInstances {
  /** With the promise of their end. */
  readonly #leaving = new Map<InstanceRef, Promise<void>>();
  /** With the promise of the end of their backend. */
  readonly #broken = new Map<InstanceRef, Promise<void>>();

  /** Those that leave; they may have calls. */
  get leaving(): Iterable<InstanceRef> {
    return this.#leaving.keys();
  }

  /** Makes the instance leave, with so much time for its calls. Resolves when it has ended. */
  leave(ref: InstanceRef, withinMs: number): Promise<void> {
    const stopped = firstValueFrom(ref.state$.pipe(filter((state) => state === 'stopped')));
    const ended = tracked(this.#leaving, ref, stopped);
    ref.leave(withinMs);
    return ended;
  }

  /** Its actor crashed; `gone` resolves when its backend is gone. */
  crashed(ref: InstanceRef, gone: Promise<unknown>): void {
    void tracked(this.#broken, ref, gone);
  }

  /** Limits the time of all that leave to this. */
  limit(withinMs: number): void {
    for (const ref of this.leaving) ref.leave(withinMs);
  }

  /** Resolves when nothing is left of those that are here now. */
  async ended(): Promise<void> {
    await Promise.all([...this.#leaving.values(), ...this.#broken.values()]);
  }

  /** The end of those that still hold the endpoint which a program of the gateway's own is to serve; undefined without any. */
  predecessorsOf({ endpoint, command }: InstanceDefinition): Promise<unknown> | undefined {
    if (endpoint === undefined || command === undefined) return undefined;
    const ends = [...this.#leaving, ...this.#broken]
      .filter(([{ definition }]) => definition.endpoint === endpoint && definition.command !== undefined)
      .map(([, end]) => end);
    return ends.length === 0 ? undefined : Promise.all(ends);
  }
}

/** Kept until it has ended. */
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
