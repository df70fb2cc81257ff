// The tools, prompts and resources that the lists of aggregates leave out because clients could not use them:
// those of the last list of each kind that was read of a template. Emits an event for each, once, and again for
// another reason. Source: ADR 116.

import { type GatewayEvent, withheldEvent } from '../../domain/events/events.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ListField, WithheldItem } from '../../domain/mcp/mcp.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** Reasons remembered of one template; items beyond them cause no event. */
const MAX_REPORTED = 400;

/** The items that the last lists of each template left out, so that only a difference is an event. */
export class WithheldItems {
  readonly #clock: Clock;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #waiting: (template: string) => readonly WithheldItem[];
  readonly #templates = new LruMap<{
    readonly lists: Map<ListField, readonly WithheldItem[]>;
    readonly reported: Map<string, string>;
  }>(LIMITS.templates);

  /** `waiting`: the tools of a template that wait for approval. */
  constructor(
    clock: Clock,
    emit: (event: GatewayEvent) => void,
    waiting: (template: string) => readonly WithheldItem[],
  ) {
    this.#clock = clock;
    this.#emit = emit;
    this.#waiting = waiting;
  }

  /** A list of the template was read, with these items withheld. */
  readonly listed = (list: ListField, template: string, items: readonly WithheldItem[]): void => {
    const known = this.#templates.get(template);
    if (known === undefined && items.length === 0) return;
    const { lists, reported } = known ?? { lists: new Map(), reported: new Map() };
    if (known === undefined) this.#templates.set(template, { lists, reported });
    lists.set(list, items);
    for (const item of items) {
      const key = `${list} ${item.name}`;
      if (reported.get(key) === item.reason || reported.size >= MAX_REPORTED) continue;
      reported.set(key, item.reason);
      this.#emit(withheldEvent(this.#clock.wall(), template, item));
    }
  };

  of(template: string): readonly WithheldItem[] {
    return [...(this.#templates.get(template)?.lists.values() ?? []), this.#waiting(template)].flat();
  }

  forget(template: string): void {
    this.#templates.delete(template);
  }
}
