// The tool that a call needs, if any: whether an instance may lack it, and the look-up in the instance's list.

import type { InstanceRef } from '../instances/instance-ref.ts';

type Listing = Pick<InstanceRef, 'tools'>;

/** The search of one call for an instance that has its tool. */
export class WantedTool {
  readonly #name: string | undefined;
  readonly #view: string | undefined;
  /** The name of the tool, if an instance lacked the tool. */
  lacking: string | undefined;
  /** The call waits for a list of tools. */
  isLookingUp = false;

  /** `name`: undefined when any instance will do, or the backend itself may reject the tool. `view`: of the call. */
  constructor(name: string | undefined, view: string | undefined) {
    this.#name = name;
    this.#view = view;
  }

  /** An instance lacks it. */
  noteLack(): void {
    this.lacking = this.#name;
  }

  /** True when the instance has not listed the tool: it lacks the tool, or the list is out of date. */
  mayBeAbsent({ tools }: Listing): boolean {
    return this.#name !== undefined && tools?.knows(this.#name, this.#view) === 'no';
  }

  /** True when the tool is absent and the list is too new to be out of date. */
  isAbsent(ref: Listing): boolean {
    return this.mayBeAbsent(ref) && ref.tools?.mayRefresh !== true;
  }

  /**
   * An unknown tool may be a new one: the instance lists its tools again before the caller gets 404. Calls `done` when it has.
   * False when it cannot.
   */
  lookUp({ tools }: Listing, done: () => void): boolean {
    const lookedUp = tools?.lookUp();
    if (lookedUp === undefined) return false;
    this.isLookingUp = true;
    void lookedUp.then(() => {
      this.isLookingUp = false;
      done();
    });
    return true;
  }
}
