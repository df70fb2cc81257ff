// The memory of the lists that the views of a gateway have compiled. Definitions that several lists share count once.

/**
 * Memory of the lists that all views of a gateway have compiled, and of one item besides its definition. Measured: 1.2 kB with
 * its names. Source: ADR 232.
 */
export const COMPILED_BYTES = 128 * 1024 * 1024;
const ITEM_BYTES = 1_280;

/** What counts of a compiled list. */
interface CountedList {
  readonly inputs: readonly { readonly items: object; readonly bytes?: number }[];
  readonly chosen: readonly unknown[];
}

interface CountedView {
  /** The memory of the lists that its own lists were made from. */
  readonly inputs: ReadonlyMap<object, number>;
  readonly itemBytes: number;
  readonly forget: () => void;
}

/** The lists of all views: those of the views that were listed last have room. The others compile them again. */
export class CompiledLists {
  readonly #mostBytes: number;
  /** The view that was listed longest ago first. */
  readonly #views = new Map<string, CountedView>();
  /** The number of views that have each input. */
  readonly #uses = new Map<object, number>();
  #bytes = 0;

  constructor(mostBytes = COMPILED_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /**
   * Counts these lists of a view, the newest first, in place of its earlier ones. Gives those for which there is no room, never
   * the first one. `forget` is called when another view needs the room of all.
   */
  use<L extends CountedList>(view: string, lists: Iterable<L>, forget: () => void): ReadonlySet<L> {
    this.delete(view);
    const inputs = new Map<object, number>();
    const beyond = new Set<L>();
    let [total, itemBytes] = [0, 0];
    for (const list of lists) {
      const others = list.inputs.filter(({ items }) => !inputs.has(items));
      const ofItems = list.chosen.length * ITEM_BYTES;
      const bytes = others.reduce((sum, { bytes: own = 0 }) => sum + own, ofItems);
      if (total > 0 && total + bytes > this.#mostBytes) {
        beyond.add(list);
        continue;
      }
      total += bytes;
      itemBytes += ofItems;
      for (const { items, bytes: own = 0 } of others) inputs.set(items, own);
    }
    this.#add(view, { inputs, itemBytes, forget });
    for (const [other, counted] of this.#views) {
      if (this.#bytes <= this.#mostBytes || other === view) break;
      this.delete(other);
      counted.forget();
    }
    return beyond;
  }

  delete(view: string): void {
    const counted = this.#views.get(view);
    if (counted === undefined) return;
    this.#views.delete(view);
    this.#bytes -= counted.itemBytes;
    for (const [items, bytes] of counted.inputs) {
      const uses = (this.#uses.get(items) ?? 0) - 1;
      if (uses > 0) this.#uses.set(items, uses);
      else {
        this.#uses.delete(items);
        this.#bytes -= bytes;
      }
    }
  }

  #add(view: string, counted: CountedView): void {
    this.#views.set(view, counted);
    this.#bytes += counted.itemBytes;
    for (const [items, bytes] of counted.inputs) {
      const uses = this.#uses.get(items) ?? 0;
      this.#uses.set(items, uses + 1);
      if (uses === 0) this.#bytes += bytes;
    }
  }
}
