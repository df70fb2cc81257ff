// Detects changed lists of a template: an instance sends a notice, the first instance connects, a session differs from all others,
// or the last one of its kind ends. While no instance is healthy the lists count as unchanged.

import { createHash } from 'node:crypto';
import { endWith, filter, ignoreElements, merge, type Observable, Subject, takeUntil } from 'rxjs';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText } from '../domain/json.ts';
import { type ListField, NOTICED_LISTS, type Peer } from '../domain/mcp.ts';
import type { Fleet, ListChange } from './fleet.ts';
import { InstanceRef } from './instances/instance-ref.ts';

export interface CapabilityChangesDeps {
  readonly fleet: Pick<Fleet, 'find' | 'listChanged$'>;
  /** The events of the gateway. Hot. */
  readonly events$: Observable<GatewayEvent>;
}

/** Follows the instances until the gateway closes. */
export class CapabilityChanges {
  /** Hot, no replay: lists that changed; `resources` stands for their templates, too. Completes with the fleet. */
  readonly changes$: Observable<ListChange>;
  readonly #fleet: CapabilityChangesDeps['fleet'];
  readonly #changes = new Subject<ListChange>();
  /** By template. */
  readonly #listing = new Map<string, ListingInstances>();
  /** Handshake results may be long: each is read once. */
  readonly #kinds = new WeakMap<Peer, Kind>();

  constructor({ fleet, events$ }: CapabilityChangesDeps) {
    this.#fleet = fleet;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    this.changes$ = merge(fleet.listChanged$, this.#changes).pipe(takeUntil(closed$));
    events$.pipe(filter(isAboutPresence), takeUntil(closed$)).subscribe({
      next: ({ template, instanceId }) => this.#check(template, instanceId),
      error: () => undefined, // the events never fail
    });
  }

  /** One instance came, went, or has another session by now. */
  #check(template: string, id: string): void {
    const member = this.#fleet.find(template, id);
    const ref = member instanceof InstanceRef ? member : undefined;
    const peer = ref?.state === 'healthy' ? ref.peer : undefined;
    const listing = this.#listing.get(template) ?? new ListingInstances();
    const changed =
      ref === undefined || peer === undefined
        ? listing.removed(id, ref)
        : listing.added({ id, ref, peer, kind: this.#kindOf(peer) });
    if (listing.isEmpty) this.#listing.delete(template);
    else this.#listing.set(template, listing);
    for (const list of new Set(changed.flatMap(listsOf))) this.#changes.next({ template, list });
  }

  #kindOf(peer: Peer): Kind {
    if (peer.era === 'bare') return Symbol(); // it says nothing of itself
    const kind = this.#kinds.get(peer) ?? kindOf(peer);
    this.#kinds.set(peer, kind);
    return kind;
  }
}

/** The same for servers that say the same of themselves; of one that says nothing, unlike any other. */
type Kind = string | symbol;

/** An instance that lists, and its session of then. */
interface ListingInstance {
  readonly id: string;
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly kind: Kind;
}

/** The instances that list at one template. A change returns the instances whose lists are new, if no other one is alike. */
class ListingInstances {
  readonly #healthy = new Map<string, ListingInstance>();
  /** How many of those there are of each kind. */
  readonly #counts = new Map<Kind, number>();
  /** While no instance is healthy: the last one that was. */
  #last: ListingInstance | undefined;

  get isEmpty(): boolean {
    return this.#healthy.size === 0 && this.#last === undefined;
  }

  /** It is healthy. */
  added(instance: ListingInstance): readonly ListingInstance[] {
    const last = this.#last;
    const before = last ?? this.#healthy.get(instance.id);
    this.#last = undefined;
    this.#remove(instance.id);
    const isSame =
      before !== undefined &&
      (before.id === instance.id ? before.peer === instance.peer : isSameServer(instance, before));
    const isKnown =
      this.#counts.has(instance.kind) && (before === undefined || this.#counts.has(before.kind));
    this.#healthy.set(instance.id, instance);
    this.#counts.set(instance.kind, (this.#counts.get(instance.kind) ?? 0) + 1);
    if (isSame || isKnown) return [];
    return before === undefined ? [instance] : [before, instance];
  }

  /** It is not healthy; `ref` is the current instance of that id. While there is no other instance, the lists are unchanged. */
  removed(id: string, ref: InstanceRef | undefined): readonly ListingInstance[] {
    const before = this.#last?.id === id ? this.#last : this.#healthy.get(id);
    if (before === undefined) return [];
    this.#remove(id);
    this.#last = this.#healthy.size === 0 && before.ref === ref ? before : undefined;
    return this.#last === undefined && !this.#counts.has(before.kind) ? [before] : [];
  }

  #remove(id: string): void {
    const instance = this.#healthy.get(id);
    if (instance === undefined) return;
    this.#healthy.delete(id);
    const count = (this.#counts.get(instance.kind) ?? 0) - 1;
    if (count > 0) this.#counts.set(instance.kind, count);
    else this.#counts.delete(instance.kind);
  }
}

/** True when an instance takes over from the last one, whose session is unchanged, and its server says the same. */
function isSameServer({ kind }: ListingInstance, last: ListingInstance): boolean {
  return kind === last.kind && last.ref.peer === last.peer;
}

function isAboutPresence(event: GatewayEvent): event is Extract<GatewayEvent, { type: Presence }> {
  return PRESENCE.has(event.type);
}

type Presence = (typeof PRESENT)[number];
/** An instance that is replaced is gone when its successor starts. */
const PRESENT = [
  'instance.healthy',
  'instance.unhealthy',
  'instance.draining',
  'instance.starting',
  'instance.deregistered',
  'instance.stopped',
] as const satisfies readonly GatewayEvent['type'][];
const PRESENCE: ReadonlySet<string> = new Set(PRESENT);

/** A digest, since a server may say much of itself. */
function kindOf({ era, greeting }: Peer): Kind {
  try {
    return createHash('sha256')
      .update(`${era} ${canonicalText(greeting)}`)
      .digest('base64');
  } catch {
    return Symbol(); // it is nested too deep to be read
  }
}

/** The lists that it offers. */
function listsOf({ peer: { era, capabilities } }: ListingInstance): readonly ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}
