// The events of the other nodes, for the readers of this one: one stream from each node while anything reads here,
// whose events are added to the recent events.

import { Observable } from 'rxjs';
import type { Peers } from '../../cluster/channel/peers.ts';
import { SCOPES } from '../../domain/accounts/account.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import { EVENTS, REGISTRY_EVENTS } from '../../domain/events/events.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { NO_BYTES } from '../../domain/memory/bounded-bytes.ts';
import { NO_CALLER } from '../../domain/memory/user-shares.ts';
import type { ForwardedAnswer } from '../../domain/nodes/forwarding.ts';
import type { ShownNode } from '../../domain/nodes/nodes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { SAMPLED } from '../../metrics/samples.ts';
import { SseReader } from '../../net/http1/sse-reader.ts';
import type { StreamEvent, StreamReader } from '../replies/reply.ts';
import type { PeerEvent, ReadOptions, RecentEvents, SelectableEvent } from '../sse/recent-events.ts';
import type { OtherMembers } from './other-members.ts';
import type { PeerLoads } from './peer-loads.ts';

/** Interval at which streams to new members are opened, and broken ones again, in ms. */
const CHECK_MS = 1_000;
/** Pause before a broken stream is opened again, in ms: doubled with each failure. */
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 30_000;
/** A stream that lasted this long was no failure. */
const STABLE_MS = 10_000;
/** The largest event, in bytes: a sample of 5,000 instances and 2,000 busy templates, with long names, has 3 MB. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;
const ID = /^[0-9a-f]{8}-\d{1,15}$/;

/** This node itself. */
const NODE: Principal = { id: NO_CALLER, kind: 'anonymous', name: '', scopes: new Set(SCOPES) };

interface PeerEventsOptions {
  readonly otherMembers: Pick<OtherMembers, 'list'>;
  readonly peers: Pick<Peers, 'ofLife'>;
  readonly events: RecentEvents;
  /** Gets the samples of other nodes. */
  readonly loads: Pick<PeerLoads, 'add' | 'forget'>;
  readonly clock: Clock;
}

/** One life of another node. */
interface FollowedPeer {
  readonly node: string;
  readonly life: string;
  /** Id of its newest event here: a new stream goes on after it. */
  lastId: string | undefined;
  stream: { readonly types: string; readonly openedAtMs: number; cancel: () => void } | undefined;
  /** True when the events of the node do not come, though they are wanted. */
  isMissing: boolean;
  /** Requests that failed one after the other. */
  failures: number;
  /** The time at which the node may be asked again, in ms of the clock. */
  dueAtMs: number;
}

/**
 * The streams from the other nodes, which end with the last reader. Each node sends all of its own events of the wanted
 * types, and none of others; the rights of a reader are applied here. Source: ADR 172.
 */
export class PeerEvents {
  readonly #options: PeerEventsOptions;
  readonly #clock: Clock;
  /** The types that each reader wants; undefined: all. */
  readonly #readers = new Set<{ readonly types: ReadonlySet<string> | undefined }>();
  /** The followed nodes by life. They are remembered while nothing reads. */
  readonly #peers = new Map<string, FollowedPeer>();
  #stopChecks: (() => void) | undefined;

  constructor(options: PeerEventsOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Reads the events of all nodes; otherwise the same as RecentEvents.read. */
  read(options: ReadOptions, reader: StreamReader): Observable<StreamEvent> {
    return new Observable((subscriber) => {
      const { types, after } = options;
      const isPartial = this.#mayMiss(after);
      subscriber.add(this.#options.events.read({ ...options, isPartial }, reader).subscribe(subscriber));
      if (!subscriber.closed) subscriber.add(this.#join(types, after));
    });
  }

  /** True when some events of other nodes are certainly, or perhaps, not among those that are kept here. */
  #mayMiss(after: string | undefined): boolean {
    const others = this.#options.otherMembers.list();
    if (others.length === 0) return false;
    const isOfPeer = after !== undefined && !this.#options.events.isOwnId(after);
    return isOfPeer || others.some(({ life }) => this.#peers.get(life)?.isMissing === true);
  }

  #join(types: ReadonlySet<string> | undefined, after: string | undefined): () => void {
    const reader = { types };
    this.#readers.add(reader);
    this.#stopChecks ??= this.#clock.background.every(CHECK_MS, () => this.#check());
    // The node that gave the id goes on after it; for the others it is unknown.
    this.#check(after !== undefined && ID.test(after) ? after : undefined);
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) {
        this.#check();
        return;
      }
      this.#stopChecks?.();
      this.#stopChecks = undefined;
      for (const peer of this.#peers.values()) stop(peer);
    };
  }

  #check(after?: string): void {
    const others = this.#options.otherMembers.list();
    for (const [life, peer] of this.#peers) {
      if (others.some((other) => other.life === life)) continue;
      this.#peers.delete(life);
      this.#options.loads.forget(life);
      if (peer.stream !== undefined) this.#options.events.miss();
      stop(peer);
    }
    const types = this.#wantedTypes();
    for (const other of others) {
      const peer = this.#peerOf(other, after);
      if (peer.stream !== undefined && peer.stream.types !== types) stop(peer);
      if (types === '' || peer.stream !== undefined || this.#clock.now() < peer.dueAtMs) continue;
      this.#open(peer, types);
    }
  }

  #peerOf({ id: node, life }: ShownNode, lastId: string | undefined): FollowedPeer {
    const known = this.#peers.get(life);
    if (known !== undefined) return known;
    const peer: FollowedPeer = {
      node,
      life,
      lastId,
      stream: undefined,
      isMissing: false,
      failures: 0,
      dueAtMs: 0,
    };
    this.#peers.set(life, peer);
    return peer;
  }

  /**
   * The names of the events to ask for, with commas, without those that this node emits as well. Samples are sent only to readers
   * that name them.
   */
  #wantedTypes(): string {
    const readers = [...this.#readers];
    const names = Object.keys(EVENTS).filter(
      (name) => !REGISTRY_EVENTS.has(name) && readers.some(({ types }) => types?.has(name) !== false),
    );
    const isSampled = readers.some(({ types }) => types?.has(SAMPLED));
    return [...names, ...(isSampled ? [SAMPLED] : [])].join();
  }

  #open(peer: FollowedPeer, types: string): void {
    const stream = { types, openedAtMs: this.#clock.now(), cancel: (): void => {} };
    peer.stream = stream;
    const isOver = (): boolean => peer.stream !== stream;
    const lose = (): void => {
      if (!isOver()) this.#lose(peer);
    };
    const client = this.#options.peers.ofLife(peer.life);
    if (client === undefined) {
      lose();
      return;
    }
    const reader = new SseReader(MAX_EVENT_BYTES, (data, type) => {
      if (isOver()) return;
      if (type === SAMPLED) this.#options.loads.add(peer.life, data.toString());
      else if (type === 'missed') this.#options.events.miss();
      else this.#add(peer, data.toString(), reader.lastEventId);
    });
    const answer: ForwardedAnswer = {
      head: (status) => {
        if (status !== 200) lose();
        else if (!isOver()) peer.isMissing = false;
      },
      data: (part) => {
        if (!isOver() && !reader.push(part)) lose();
        return true;
      },
      end: lose,
      failed: lose,
      notHolder: lose,
    };
    const forwarding = client.forward(
      {
        caller: { principal: NODE, requestId: crypto.randomUUID(), address: undefined },
        method: 'GET',
        target: `/events?type=${types}`,
        body: NO_BYTES,
        headers: peer.lastId === undefined ? {} : { 'last-event-id': peer.lastId },
        isStream: true,
        isRepeatable: () => true,
      },
      answer,
    );
    stream.cancel = () => forwarding.cancel();
    if (isOver()) forwarding.cancel();
  }

  #add(peer: FollowedPeer, text: string, id: string): void {
    const event = eventOf(text, peer.node, id);
    if (event === undefined) return;
    peer.lastId = id;
    this.#options.events.add(event);
  }

  /**
   * Ends the stream of a node that does not answer. The readers learn it once. Its events of the meantime follow when it answers
   * again.
   */
  #lose(peer: FollowedPeer): void {
    const nowMs = this.#clock.now();
    const isStable = peer.stream !== undefined && nowMs - peer.stream.openedAtMs >= STABLE_MS;
    stop(peer);
    this.#options.loads.forget(peer.life);
    if (!peer.isMissing) this.#options.events.miss();
    peer.isMissing = true;
    peer.failures = isStable ? 1 : peer.failures + 1;
    const pauseMs = FIRST_PAUSE_MS * 2 ** Math.min(10, peer.failures - 1);
    peer.dueAtMs = nowMs + Math.min(LAST_PAUSE_MS, pauseMs);
  }
}

function stop(peer: FollowedPeer): void {
  const { stream } = peer;
  peer.stream = undefined;
  stream?.cancel();
}

/** The event in a text of the stream; undefined for the end of the stream, and for events that this version does not know. */
function eventOf(text: string, node: string, id: string): PeerEvent | undefined {
  const { type, template, principal, tool, view, alias } = Object(jsonIn(text));
  if (typeof type !== 'string' || !Object.hasOwn(EVENTS, type)) return undefined;
  // All that decide which readers get an event.
  const fields: Required<Omit<SelectableEvent, 'type' | 'node'>> = { template, principal, tool, view, alias };
  if (Object.values(fields).some((value) => value !== undefined && typeof value !== 'string'))
    return undefined;
  return { type, ...fields, node, id, text: `${text.slice(0, -1)},"node":${JSON.stringify(node)}}` };
}
