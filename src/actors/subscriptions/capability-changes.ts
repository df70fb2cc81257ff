// Detects lists of a template that changed without a notice: the first instance connects, the server of a new
// transport differs from all others, or the last transport of its kind ends. While no instance is healthy the
// lists count as unchanged.

import { hash } from 'node:crypto';
import type { InstanceState } from '../../domain/instances/instance.ts';
import { canonicalText } from '../../domain/json/json.ts';
import { type Handshake, type ListField, NOTICED_LISTS } from '../../domain/mcp/mcp.ts';

/** `handshake`: undefined without a transport. */
interface ListingInstance {
  readonly state: InstanceState;
  readonly handshake?: Handshake | undefined;
}

/** The open transport of an instance. */
interface Listing {
  readonly handshake: Handshake;
  /** Equal for servers with equal descriptions of themselves; unique for a server without one. */
  readonly kind: string | symbol;
}

/** The instances of one template. */
export class CapabilityChanges {
  readonly #instances: ReadonlyMap<string, ListingInstance>;
  /** The transports of healthy instances by id; while there is none, that of the last one. */
  readonly #listings = new Map<string, Listing>();
  /** Transports of each kind: a comparison of all with all would be quadratic while thousands of instances connect. */
  readonly #kinds = new Map<Listing['kind'], number>();

  constructor(instances: ReadonlyMap<string, ListingInstance>) {
    this.#instances = instances;
  }

  /**
   * The instance became healthy or unhealthy, may have a new transport, or was removed. Returns the lists that
   * changed by that.
   */
  check(id: string): ReadonlySet<ListField> {
    const before = this.#listings.get(id);
    const handshake = this.#handshakeOf(id);
    if (handshake === before?.handshake) return NONE;
    const [last] = this.#listings.size === 1 ? this.#listings.keys() : [];
    if (handshake === undefined && last === id && this.#instances.has(id)) return NONE;
    const outdated =
      last !== undefined && last !== id && this.#handshakeOf(last) === undefined ? last : undefined;
    const came = handshake && { handshake, kind: kindOf(handshake) };
    const gone = this.#remove(id);
    const isNew = came !== undefined && !this.#kinds.has(came.kind);
    const replaced = outdated === undefined ? undefined : this.#remove(outdated);
    if (came !== undefined) this.#add(id, came);
    // Compared with other instances only: the lists of the same instance may differ in its next transport.
    const isLast = gone !== undefined && this.#count(gone.kind) === (came?.kind === gone.kind ? 1 : 0);
    return new Set([
      ...(isNew ? listsOf(came.handshake) : []),
      ...(isLast ? listsOf(gone.handshake) : []),
      ...(replaced !== undefined && this.#count(replaced.kind) === 0 ? listsOf(replaced.handshake) : []),
    ]);
  }

  #count(kind: Listing['kind']): number {
    return this.#kinds.get(kind) ?? 0;
  }

  #add(id: string, listing: Listing): void {
    this.#listings.set(id, listing);
    this.#kinds.set(listing.kind, this.#count(listing.kind) + 1);
  }

  #remove(id: string): Listing | undefined {
    const listing = this.#listings.get(id);
    if (listing === undefined) return undefined;
    this.#listings.delete(id);
    const left = this.#count(listing.kind) - 1;
    if (left > 0) this.#kinds.set(listing.kind, left);
    else this.#kinds.delete(listing.kind);
    return listing;
  }

  /** Undefined unless the instance is healthy. */
  #handshakeOf(id: string): Handshake | undefined {
    const instance = this.#instances.get(id);
    return instance?.state === 'healthy' ? instance.handshake : undefined;
  }
}

const NONE: ReadonlySet<ListField> = new Set();

function listsOf({ era, capabilities }: Handshake): ListField[] {
  return NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined);
}

/** A digest, because handshake results may be long. */
function kindOf({ era, greeting }: Handshake): Listing['kind'] {
  if (era === 'bare') return Symbol(); // it does not describe itself
  try {
    return hash('sha256', `${era} ${canonicalText(greeting)}`);
  } catch {
    return Symbol(); // nested too deeply to be serialized
  }
}
