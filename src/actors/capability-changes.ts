// Detects changed lists of a template: an instance sends a notice, the first instance connects, the server of a new session differs
// from all others, or the last session of its kind ends. While no instance is healthy the lists count as unchanged.

import { createHash } from 'node:crypto';
import { endWith, ignoreElements, merge, type Observable, Subject, takeUntil } from 'rxjs';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText } from '../domain/json.ts';
import { type ListChange, type ListField, NOTICED_LISTS, type Peer } from '../domain/mcp.ts';
import type { Fleet } from './fleet.ts';
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
  /** By peer: handshake results may be long, so each is read once. */
  readonly #kinds = new WeakMap<Peer, Kind>();

  constructor({ fleet, events$ }: CapabilityChangesDeps) {
    this.#fleet = fleet;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    this.changes$ = merge(fleet.listChanged$, this.#changes).pipe(takeUntil(closed$));
    events$.pipe(takeUntil(closed$)).subscribe({
      next: (event) => {
        if (PRESENCE.has(event.type) && 'instanceId' in event) this.#check(event.template, event.instanceId);
      },
      error: () => undefined, // the events never fail
    });
  }

  /** An instance became healthy, stopped being so, or may have a new session. */
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
    if (peer.era === 'bare') return Symbol(); // it does not describe itself
    const kind = this.#kinds.get(peer) ?? kindOf(peer);
    this.#kinds.set(peer, kind);
    return kind;
  }
}

/** Equal for servers with equal descriptions of themselves; unique for a server without one. */
type Kind = string | symbol;

/** A healthy instance, and its session at that time. */
interface ListingInstance {
  readonly id: string;
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly kind: Kind;
}

/** The healthy instances of one template. Changes return the instances whose lists are new, unless another one is alike. */
class ListingInstances {
  readonly #healthy = new Map<string, ListingInstance>();
  /** The number of healthy instances of each kind. */
  readonly #counts = new Map<Kind, number>();
  /** While no instance is healthy: the last healthy one. */
  #last: ListingInstance | undefined;

  get isEmpty(): boolean {
    return this.#healthy.size === 0 && this.#last === undefined;
  }

  /** The instance is healthy. */
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

  /** The instance is not healthy; `ref` is the current instance of that id. Without another instance, the lists are unchanged. */
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

/** True when an instance of the same kind follows the last one, whose session is unchanged. */
function isSameServer({ kind }: ListingInstance, last: ListingInstance): boolean {
  return kind === last.kind && last.ref.peer === last.peer;
}

/** Events after which an instance may list, or not. `starting`: a replaced instance is gone when its successor starts. */
const PRESENCE: ReadonlySet<GatewayEvent['type']> = new Set([
  'instance.healthy',
  'instance.unhealthy',
  'instance.draining',
  'instance.starting',
  'instance.deregistered',
  'instance.stopped',
]);

/** A digest, because handshake results may be long. */
function kindOf({ era, greeting }: Peer): Kind {
  try {
    return createHash('sha256')
      .update(`${era} ${canonicalText(greeting)}`)
      .digest('base64');
  } catch {
    return Symbol(); // nested too deeply to be serialized
  }
}

/** The lists that the server offers. */
function listsOf({ peer: { era, capabilities } }: ListingInstance): readonly ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}
