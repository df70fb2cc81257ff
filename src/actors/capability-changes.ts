// Detects changed lists of a template: an instance sends a notice, the first instance connects, the server of a new session differs
// from all others, or the last session of its kind ends. While no instance is healthy the lists count as unchanged.

import { hash } from 'node:crypto';
import { endWith, ignoreElements, merge, type Observable, Subject, takeUntil } from 'rxjs';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText } from '../domain/json.ts';
import { type ListChange, type ListField, NOTICED_LISTS, type Peer } from '../domain/mcp.ts';
import type { Fleet } from './fleet.ts';
import { InstanceRef } from './instances/instance-ref.ts';

/** The session of an instance. */
interface Listing {
  readonly peer: Peer;
  /** Equal for servers with equal descriptions of themselves; unique for a server without one. */
  readonly kind: string | symbol;
}

/** By id of the instance. */
type Listings = ReadonlyMap<string, Listing>;

/** Follows the instances until the gateway closes. */
export class CapabilityChanges {
  /** Hot, no replay: lists that changed; `resources` includes resource templates. Completes with the fleet. */
  readonly changes$: Observable<ListChange>;
  readonly #fleet: Pick<Fleet, 'find' | 'listChanged$'>;
  readonly #changes = new Subject<ListChange>();
  /** By template: the sessions of healthy instances; while there is none, that of the last one. */
  readonly #listings = new Map<string, Listings>();

  /** `events$`: those of the gateway, hot. */
  constructor(fleet: Pick<Fleet, 'find' | 'listChanged$'>, events$: Observable<GatewayEvent>) {
    this.#fleet = fleet;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    this.changes$ = merge(fleet.listChanged$, this.#changes).pipe(takeUntil(closed$));
    events$.pipe(takeUntil(closed$)).subscribe((event) => {
      if (event.type.startsWith('instance.') && 'instanceId' in event)
        this.#check(event.template, event.instanceId);
    });
  }

  /** The instance became healthy or unhealthy, or may have a new session. */
  #check(template: string, id: string): void {
    const before: Listings = this.#listings.get(template) ?? new Map();
    const peer = this.#peerOf(template, id);
    if (peer === before.get(id)?.peer) return;
    const [last] = before.size === 1 ? before.keys() : [];
    if (peer === undefined && last === id && this.#fleet.find(template, id) !== undefined) return;
    const after = new Map(before);
    after.delete(id);
    if (last !== undefined && this.#peerOf(template, last) === undefined) after.delete(last);
    if (peer !== undefined) after.set(id, { peer, kind: kindOf(peer) });
    if (after.size === 0) this.#listings.delete(template);
    else this.#listings.set(template, after);
    const changed = [...without(before, after), ...without(after, before)];
    for (const list of new Set(changed.flatMap(listsOf))) this.#changes.next({ template, list });
  }

  /** Undefined unless the instance is healthy. */
  #peerOf(template: string, id: string): Peer | undefined {
    const ref = this.#fleet.find(template, id);
    return ref instanceof InstanceRef && ref.state === 'healthy' ? ref.peer : undefined;
  }
}

/** The servers of `some` that `others` lacks, also under another id. */
function without(some: Listings, others: Listings): Peer[] {
  const isMissing = (id: string, { kind }: Listing): boolean =>
    ![...others].some(([other, listing]) => other !== id && listing.kind === kind);
  return [...some]
    .filter(([id, listing]) => others.get(id) !== listing && isMissing(id, listing))
    .map(([, { peer }]) => peer);
}

/** A digest, because handshake results may be long. */
function kindOf({ era, greeting }: Peer): Listing['kind'] {
  if (era === 'bare') return Symbol(); // it does not describe itself
  try {
    return hash('sha256', `${era} ${canonicalText(greeting)}`);
  } catch {
    return Symbol(); // nested too deeply to be serialized
  }
}

function listsOf({ era, capabilities }: Peer): readonly ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}
