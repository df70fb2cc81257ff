// Which lists of a template are not what they were: an instance says so, or who could list is another one than before. That
// is when the first instance is there, or a session begins that is like no other, and when the last of its kind has gone.
// While nobody is healthy they are what they were last. What follows from a change is the endpoint's business.

import { createHash } from 'node:crypto';
import { endWith, filter, ignoreElements, merge, type Observable, Subject, takeUntil } from 'rxjs';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText } from '../domain/json.ts';
import type { ListField, Peer } from '../domain/mcp.ts';
import { NOTICED_LISTS } from '../domain/notices.ts';
import type { Fleet, ListChange } from './fleet.ts';
import { InstanceRef } from './instances/instance-ref.ts';

export interface CapabilityChangesDeps {
  readonly fleet: Pick<Fleet, 'find' | 'listChanged$'>;
  /** The facts of the gateway. Hot. */
  readonly events$: Observable<GatewayEvent>;
}

/** Follows the instances from when it is made until the gateway closes. */
export class CapabilityChanges {
  /** Hot, no replay: lists that changed; `resources` stands for their templates, too. Completes with the fleet. */
  readonly changes$: Observable<ListChange>;
  readonly #fleet: CapabilityChangesDeps['fleet'];
  readonly #changes = new Subject<ListChange>();
  /** By template. */
  readonly #listers = new Map<string, Listers>();
  /** What servers say of themselves may be long: it is read once. */
  readonly #kinds = new WeakMap<Peer, Kind>();

  constructor({ fleet, events$ }: CapabilityChangesDeps) {
    this.#fleet = fleet;
    const closed$ = fleet.listChanged$.pipe(ignoreElements(), endWith(true));
    this.changes$ = merge(fleet.listChanged$, this.#changes).pipe(takeUntil(closed$));
    events$.pipe(filter(isAboutPresence), takeUntil(closed$)).subscribe({
      next: ({ template, instanceId }) => this.#look(template, instanceId),
      error: () => undefined, // the facts never fail
    });
  }

  /** One instance came, went, or has another session by now. */
  #look(template: string, id: string): void {
    const member = this.#fleet.find(template, id);
    const ref = member instanceof InstanceRef ? member : undefined;
    const peer = ref?.state === 'healthy' ? ref.peer : undefined;
    const listers = this.#listers.get(template) ?? new Listers();
    const changed =
      ref === undefined || peer === undefined
        ? listers.left(id, ref)
        : listers.came({ id, ref, peer, kind: this.#kindOf(peer) });
    if (listers.isEmpty) this.#listers.delete(template);
    else this.#listers.set(template, listers);
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
interface Lister {
  readonly id: string;
  readonly ref: InstanceRef;
  readonly peer: Peer;
  readonly kind: Kind;
}

/** Who can list at one template. What it answers is whose lists are news: those of who came or went, if there is no other like it. */
class Listers {
  readonly #healthy = new Map<string, Lister>();
  /** How many of those there are of each kind. */
  readonly #counts = new Map<Kind, number>();
  /** While nobody is healthy: who was last. */
  #last: Lister | undefined;

  get isEmpty(): boolean {
    return this.#healthy.size === 0 && this.#last === undefined;
  }

  /** It is healthy. */
  came(lister: Lister): readonly Lister[] {
    const last = this.#last;
    const before = last ?? this.#healthy.get(lister.id);
    this.#last = undefined;
    this.#remove(lister.id);
    const isSame =
      before !== undefined &&
      (before.id === lister.id ? before.peer === lister.peer : isLike(lister, before));
    const isKnown = this.#counts.has(lister.kind) && (before === undefined || this.#counts.has(before.kind));
    this.#healthy.set(lister.id, lister);
    this.#counts.set(lister.kind, (this.#counts.get(lister.kind) ?? 0) + 1);
    if (isSame || isKnown) return [];
    return before === undefined ? [lister] : [before, lister];
  }

  /** It is not healthy; `ref` is who is there now. While there is nobody else, the lists are what they were. */
  left(id: string, ref: InstanceRef | undefined): readonly Lister[] {
    const before = this.#last?.id === id ? this.#last : this.#healthy.get(id);
    if (before === undefined) return [];
    this.#remove(id);
    this.#last = this.#healthy.size === 0 && before.ref === ref ? before : undefined;
    return this.#last === undefined && !this.#counts.has(before.kind) ? [before] : [];
  }

  #remove(id: string): void {
    const lister = this.#healthy.get(id);
    if (lister === undefined) return;
    this.#healthy.delete(id);
    const count = (this.#counts.get(lister.kind) ?? 0) - 1;
    if (count > 0) this.#counts.set(lister.kind, count);
    else this.#counts.delete(lister.kind);
  }
}

/** True when one takes over from the last one, in the same session as ever, and says the same. */
function isLike({ kind }: Lister, last: Lister): boolean {
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
function listsOf({ peer: { era, capabilities } }: Lister): readonly ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}
