// Detects changed lists of a template: an instance sends a notice, the first instance connects, the server of a new session differs
// from all others, or the last session of its kind ends. While no instance is healthy the lists count as unchanged.

import { createHash } from 'node:crypto';
import { endWith, ignoreElements, merge, type Observable, Subject, takeUntil } from 'rxjs';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText } from '../domain/json.ts';
import { type ListChange, type ListField, NOTICED_LISTS, type Peer } from '../domain/mcp.ts';
import type { Fleet } from './fleet.ts';
import { InstanceRef } from './instances/instance-ref.ts';

/** Follows the instances until the gateway closes. */
export class CapabilityChanges {
  /** Hot, no replay: lists that changed; `resources` includes resource templates. Completes with the fleet. */
  readonly changes$: Observable<ListChange>;
  readonly #fleet: Pick<Fleet, 'find' | 'listChanged$'>;
  readonly #changes = new Subject<ListChange>();
  /** By template. */
  readonly #listing = new Map<string, ListingInstances>();
  /** By peer: handshake results may be long, so each is read once. */
  readonly #kinds = new WeakMap<Peer, Kind>();

  /** `events$`: those of the gateway, hot. */
  constructor(fleet: Pick<Fleet, 'find' | 'listChanged$'>, events$: Observable<GatewayEvent>) {
    this.#fleet = fleet;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    this.changes$ = merge(fleet.listChanged$, this.#changes).pipe(takeUntil(closed$));
    events$.pipe(takeUntil(closed$)).subscribe((event) => {
      if (PRESENCE.has(event.type) && 'instanceId' in event) this.#check(event.template, event.instanceId);
    });
  }

  /** The instance became healthy or unhealthy, or may have a new session. */
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

/** The healthy instances of one template. Changes return the instances whose lists differ from those of all others. */
class ListingInstances {
  readonly #healthy = new Map<string, ListingInstance>();
  /** While no instance is healthy: the last healthy one. */
  #last: ListingInstance | undefined;

  get isEmpty(): boolean {
    return this.#healthy.size === 0 && this.#last === undefined;
  }

  added(instance: ListingInstance): readonly ListingInstance[] {
    const last = this.#last;
    const before = last ?? this.#healthy.get(instance.id);
    this.#last = undefined;
    this.#healthy.delete(instance.id);
    // The same session, or an instance of the same kind follows the last one, whose session is unchanged.
    const isSame =
      before?.id === instance.id
        ? before.peer === instance.peer
        : before?.kind === instance.kind && before.ref.peer === before.peer;
    const isKnown = this.#hasKind(instance) && (before === undefined || this.#hasKind(before));
    this.#healthy.set(instance.id, instance);
    if (isSame || isKnown) return [];
    return before === undefined ? [instance] : [before, instance];
  }

  /** The instance is not healthy; `ref` is the current instance of that id. Without another instance, the lists are unchanged. */
  removed(id: string, ref: InstanceRef | undefined): readonly ListingInstance[] {
    const before = this.#last?.id === id ? this.#last : this.#healthy.get(id);
    if (before === undefined) return [];
    this.#healthy.delete(id);
    this.#last = this.#healthy.size === 0 && before.ref === ref ? before : undefined;
    return this.#last === undefined && !this.#hasKind(before) ? [before] : [];
  }

  #hasKind({ kind }: ListingInstance): boolean {
    for (const healthy of this.#healthy.values()) if (healthy.kind === kind) return true;
    return false;
  }
}

/** Events that may change whether an instance counts. `starting`: a replaced instance is gone when its successor starts. */
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

function listsOf({ peer: { era, capabilities } }: ListingInstance): readonly ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}
