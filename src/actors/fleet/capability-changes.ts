// Detects changes of a template's lists that no backend announces: the first instance connects, the server behind a new
// transport differs from all others, or the last transport of its kind ends. While no instance is healthy the lists
// count as unchanged.

import { hash } from 'node:crypto';
import type { InstanceState } from '../../domain/instances/instance.ts';
import { canonicalText } from '../../domain/json/json.ts';
import { type Handshake, type ListField, noticedListsOf } from '../../domain/mcp/mcp.ts';

/** `handshake`: undefined without an open transport. */
interface ListingInstance {
  readonly state: InstanceState;
  readonly handshake?: Handshake | undefined;
}

/** The open transport of an instance, as a source of lists. */
interface ListSource {
  readonly handshake: Handshake;
  /** A value that is equal for servers with equal descriptions of themselves, and unique for a server without one. */
  readonly kind: string | symbol;
}

/** Compares the servers behind the instances of one template. */
export class CapabilityChanges {
  readonly #instances: ReadonlyMap<string, ListingInstance>;
  /** The transports of healthy instances by instance id; while there is none, that of the last one. */
  readonly #listings = new Map<string, ListSource>();
  /**
   * The number of transports of each kind. Comparing all with all would be quadratic while thousands of instances
   * connect.
   */
  readonly #kinds = new Map<ListSource['kind'], number>();

  constructor(instances: ReadonlyMap<string, ListingInstance>) {
    this.#instances = instances;
  }

  /**
   * Checks an instance that became healthy or unhealthy, may have a new transport, or was removed. Returns the lists
   * that changed by this.
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
    // The first instance, or a server that differs from all others.
    const isNew = came !== undefined && !this.#kinds.has(came.kind);
    const replaced = outdated === undefined ? undefined : this.#remove(outdated);
    if (came !== undefined) this.#add(id, came);
    // The last transport of its kind has ended. Compared with other instances only: the lists of the same instance may
    // differ in its next transport.
    const isLast = gone !== undefined && this.#count(gone.kind) === (came?.kind === gone.kind ? 1 : 0);
    return new Set([
      ...(isNew ? noticedListsOf(came.handshake) : []),
      ...(isLast ? noticedListsOf(gone.handshake) : []),
      // So has that of the instance that was healthy last, while none was.
      ...(replaced !== undefined && this.#count(replaced.kind) === 0
        ? noticedListsOf(replaced.handshake)
        : []),
    ]);
  }

  #count(kind: ListSource['kind']): number {
    return this.#kinds.get(kind) ?? 0;
  }

  #add(id: string, listing: ListSource): void {
    this.#listings.set(id, listing);
    this.#kinds.set(listing.kind, this.#count(listing.kind) + 1);
  }

  #remove(id: string): ListSource | undefined {
    const listing = this.#listings.get(id);
    if (listing === undefined) return undefined;
    this.#listings.delete(id);
    const left = this.#count(listing.kind) - 1;
    if (left > 0) this.#kinds.set(listing.kind, left);
    else this.#kinds.delete(listing.kind);
    return listing;
  }

  /** The handshake of a healthy instance; undefined for any other. */
  #handshakeOf(id: string): Handshake | undefined {
    const instance = this.#instances.get(id);
    return instance?.state === 'healthy' ? instance.handshake : undefined;
  }
}

const NONE: ReadonlySet<ListField> = new Set();

/** The kind of a server: a digest, because handshake results may be long. */
function kindOf({ era, greeting }: Handshake): ListSource['kind'] {
  if (era === 'bare') return Symbol(); // it does not describe itself
  try {
    return hash('sha256', `${era} ${canonicalText(greeting)}`);
  } catch {
    return Symbol(); // nested too deeply to be serialized
  }
}
