// The tool that a call needs, if any: whether an instance may lack it, and the look-up in the list of the instance.

import type { InstanceRef } from '../instances/instance-ref.ts';

/** Checks for one call whether an instance has the wanted tool. */
export class WantedTool {
  readonly #name: string | undefined;
  readonly #view: string | undefined;
  /** The name of the wanted tool, once an instance was found to lack it; undefined before. */
  lacking: string | undefined;
  /** True while the call waits for a tool list. */
  isLookingUp = false;
  /** The tools that the call has had listed again last: they are not asked again, also if no list came. */
  #lookedUp: InstanceRef['tools'];

  /**
   * `name`: the tool; undefined when any instance will do, or when the backend itself may reject the tool. `view`:
   * the view of the call.
   */
  constructor(name: string | undefined, view: string | undefined) {
    this.#name = name;
    this.#view = view;
  }

  /** Records that an instance lacks the tool. */
  noteLack(): void {
    this.lacking = this.#name;
  }

  /** True when the instance has not listed the tool: either it lacks the tool, or its list is out of date. */
  mayBeAbsent({ tools }: InstanceRef): boolean {
    return this.#name !== undefined && tools?.lists(this.#name, this.#view) === 'no';
  }

  /**
   * True when the instance has not listed the tool, and is not asked again: its list is new, or was read again for this call.
   */
  isAbsent(ref: InstanceRef): boolean {
    return this.mayBeAbsent(ref) && (ref.tools?.mayRefresh !== true || ref.tools === this.#lookedUp);
  }

  /**
   * Lets the instance list its tools again, since an unknown tool may be a new one; otherwise the caller would get
   * 404. Calls `done` afterwards. Returns false when the list cannot be renewed.
   */
  lookUp({ tools }: InstanceRef, done: () => void): boolean {
    const lookedUp = tools?.lookUp();
    if (lookedUp === undefined) return false;
    this.isLookingUp = true;
    this.#lookedUp = tools;
    void lookedUp.then(() => {
      this.isLookingUp = false;
      done();
    });
    return true;
  }
}
