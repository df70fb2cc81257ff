// Detects lists of a template that changed without a notice: the first instance connects, the server of a new session differs from
// all others, or the last session of its kind ends. While no instance is healthy the lists count as unchanged.

import { hash } from 'node:crypto';
import type { InstanceState } from '../domain/instance.ts';
import { canonicalText } from '../domain/json.ts';
import { type ListField, NOTICED_LISTS, type Peer } from '../domain/mcp.ts';

/** `peer`: undefined without a session. */
interface ListingMember {
  readonly state: InstanceState;
  readonly peer?: Peer | undefined;
}

/** The session of an instance. */
interface Listing {
  readonly peer: Peer;
  /** Equal for servers with equal descriptions of themselves; unique for a server without one. */
  readonly kind: string | symbol;
}

/** By id of the instance. */
type Listings = ReadonlyMap<string, Listing>;

/** The instances of one template. */
export class CapabilityChanges {
  readonly #members: ReadonlyMap<string, ListingMember>;
  /** The sessions of healthy instances; while there is none, that of the last one. */
  #listings: Listings = new Map();

  constructor(members: ReadonlyMap<string, ListingMember>) {
    this.#members = members;
  }

  /** The instance became healthy or unhealthy, may have a new session, or was removed. Returns the lists that changed by that. */
  check(id: string): ReadonlySet<ListField> {
    const before = this.#listings;
    const peer = this.#peerOf(id);
    if (peer === before.get(id)?.peer) return NONE;
    const [last] = before.size === 1 ? before.keys() : [];
    if (peer === undefined && last === id && this.#members.has(id)) return NONE;
    const after = new Map(before);
    after.delete(id);
    if (last !== undefined && this.#peerOf(last) === undefined) after.delete(last);
    if (peer !== undefined) after.set(id, { peer, kind: kindOf(peer) });
    this.#listings = after;
    const servers = [...without(before, after), ...without(after, before)];
    return new Set(
      servers.flatMap(({ era, capabilities }) =>
        NOTICED_LISTS.filter((list) => era === 'bare' || capabilities[list] !== undefined),
      ),
    );
  }

  /** Undefined unless the instance is healthy. */
  #peerOf(id: string): Peer | undefined {
    const member = this.#members.get(id);
    return member?.state === 'healthy' ? member.peer : undefined;
  }
}

const NONE: ReadonlySet<ListField> = new Set();

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
