// The other nodes that this one forwards requests to: a client for each life that was needed.

import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { InstanceHeldBytes } from '../../domain/memory/held-bytes.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { InstanceOnNode } from '../../domain/nodes/forwarding.ts';
import { lifeOf } from '../../domain/nodes/life.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import { type Clock, sleep } from '../../domain/time/clock.ts';
import type { Open } from '../../transports/open-options.ts';
import type { NodeTable } from '../node-table/node-table.ts';
import type { ReachableLife } from '../reachable-life.ts';
import type { LastBackend } from './instances/peer-link.ts';
import { openPeerTransport } from './instances/peer-transport.ts';
import { type Peer, PeerClient } from './peer-client.ts';
import type { ChannelKeys } from './trust/channel-keys.ts';

/** Interval at which a gateway that closes checks for calls at other nodes. */
const IDLE_CHECK_MS = 50;

/** The longest time until another node takes the program of one that has ended. */
const TAKEN_MS = 15_000;
/** Pause before it is waited for again, in ms. */
const AGAIN_MS = 1_000;
/** The most lives without a member that are remembered, and the time for which they are, in ms. */
const MAX_ABSENT = 10_000;
const ABSENT_MS = 1_000;
/** Sessions that other lives claimed, with the life that has each. */
const MAX_HOLDERS = 10_000;

/** The part of the table of nodes that the channel uses. */
export type KnownNodes = Pick<
  NodeTable,
  | 'life'
  | 'find'
  | 'runsOn'
  | 'knowsPrograms'
  | 'takesSessions'
  | 'isSilent'
  | 'openers'
  | 'refresh'
  | 'readAgain'
  | 'isRefused'
  | 'isDatabaseAway'
  | 'untilLifeKnown'
  | 'recheck'
  | 'suspect'
  | 'onChanged'
>;

interface PeersOptions {
  readonly nodes: KnownNodes;
  readonly keys: ChannelKeys;
  readonly clock: Clock;
  /** True when the session with this id is open on this node. */
  readonly hasSession: (sessionId: string) => boolean;
  /** Counts what happens between the nodes. Default: nothing is counted. */
  readonly counts?: ClusterCounts | undefined;
}

/** The part of the channel that serves the requests of clients. */
export type ForwardingPeers = Pick<
  Peers,
  'untilLifeKnown' | 'ofSession' | 'noteHolder' | 'ofLife' | 'ofInstances' | 'ofOpeners'
>;

/**
 * The clients of all lives that were needed, which `close` closes. The first characters of a session id are the life
 * that opened it, so its holder is found without a query.
 */
export class Peers {
  readonly #options: PeersOptions;
  readonly #clients = new Map<string, PeerClient>();
  /** Lives that no member had, and when: sessions of earlier lives are recovered here, and their requests need no promise. */
  readonly #absentAtMs = new LruMap<number>(MAX_ABSENT);
  readonly #holders = new LruMap<string>(MAX_HOLDERS);
  /** Called after each change of the members. */
  readonly #waiting = new Set<() => void>();
  #turn = 0;

  constructor(options: PeersOptions) {
    this.#options = options;
    options.nodes.onChanged(() => {
      this.#endEnded();
      for (const look of this.#waiting) look();
    });
  }

  /**
   * A promise after a freeze of this node: other nodes may have taken over its sessions. Resolves when that is
   * known. Throws NODE_UNAVAILABLE.
   */
  untilLifeKnown(): Promise<void> | undefined {
    return this.#options.nodes.untilLifeKnown();
  }

  /**
   * The result is undefined for a session that is served here, or by no node. It is a promise only for a life that is not known
   * yet.
   */
  ofSession(sessionId: string): Peer | undefined | Promise<Peer | undefined> {
    const { nodes, clock, hasSession } = this.#options;
    const isOfThis = sessionId.startsWith(nodes.life);
    if (isOfThis && this.#holders.size === 0) return undefined; // nearly always
    const life = lifeOf(sessionId);
    if (life === undefined || hasSession(sessionId)) return undefined;
    const holder = this.#clientOf(this.#holders.get(sessionId) ?? '');
    if (isOfThis || holder !== undefined) return holder;
    const client = this.#clientOf(life);
    if (client !== undefined || this.#isAbsent(life)) return client;
    return nodes.refresh().then(() => {
      const found = this.#clientOf(life);
      if (found === undefined) this.#absentAtMs.set(life, clock.now());
      return found;
    });
  }

  /** Remembers the life that has the session now. The peer with that life; undefined when it has ended meanwhile. */
  noteHolder(sessionId: string, life: string): Peer | undefined {
    this.#holders.set(sessionId, life);
    return this.#clientOf(life);
  }

  ofLife(life: string): Peer | undefined {
    return this.#clientOf(life);
  }

  /** The peer that runs all of these instances, if it takes new sessions. Source: ADR 171. */
  ofInstances([first, ...others]: readonly InstanceOnNode[]): Peer | undefined {
    const { nodes } = this.#options;
    const life = first && nodes.runsOn(first)?.life;
    if (life === undefined || !nodes.takesSessions(life)) return undefined;
    const isThere = (other: InstanceOnNode): boolean => nodes.runsOn(other)?.life === life;
    return others.every(isThere) ? this.#clientOf(life) : undefined;
  }

  /**
   * A peer for a session that this node cannot open, because it is cut off from the database, or from a member: the next one of
   * `openers`. Source: ADR 164.
   */
  ofOpeners(): Peer | undefined {
    const { openers } = this.#options.nodes;
    this.#turn += 1;
    return this.#clientOf(openers[this.#turn % openers.length] ?? '');
  }

  /** Opens the link to an instance that another node runs. */
  openInstance(definition: InstanceDefinition, answers?: InstanceHeldBytes): Open {
    const last: LastBackend = {};
    return async (signal, { onDuty } = {}) => {
      const { nodes } = this.#options;
      if (nodes.runsOn(definition) === undefined) await nodes.refresh();
      const peer = this.#runnerOf(definition) ?? (await this.#untilRun(definition, signal));
      const client = peer && this.#clientOf(peer.life);
      // Calls wait for the first opening only, not for each: see HttpRefusal.
      const later = { delivered: 'no', refusal: { status: 503, waitMs: AGAIN_MS } } as const;
      if (client?.isSilent) throw backendUnavailable('its node does not answer', later);
      if (client === undefined)
        throw backendUnavailable(
          absenceOf(definition),
          runsAnywhere(definition) ? later : { delivered: 'no' },
        );
      return openPeerTransport({ definition, client, signal, last, answers, onDuty });
    };
  }

  /** A program of any node leaves one that is silent: that is frozen, or its life ends. */
  #runnerOf(definition: InstanceDefinition): ReachableLife | undefined {
    const { nodes } = this.#options;
    const peer = nodes.runsOn(definition);
    if (peer === undefined || !runsAnywhere(definition)) return peer;
    // What requests see comes before what the members know.
    return nodes.isSilent(peer.life) || this.#clientOf(peer.life)?.isSilent ? undefined : peer;
  }

  /** The node that takes a program of any node soon: meanwhile it is one that starts, so that its calls wait. */
  async #untilRun(definition: InstanceDefinition, signal: AbortSignal): Promise<ReachableLife | undefined> {
    const { nodes, clock } = this.#options;
    if (!runsAnywhere(definition) || !nodes.knowsPrograms || signal.aborted) return undefined;
    const run = Promise.withResolvers<ReachableLife | undefined>();
    const look = (): void => {
      const peer = this.#runnerOf(definition);
      if (peer !== undefined) run.resolve(peer);
    };
    const giveUp = (): void => run.resolve(undefined);
    const cancel = clock.background.alarm(TAKEN_MS, giveUp);
    const stopLooking = clock.background.every(AGAIN_MS, look); // a node that is heard again
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(look);
    try {
      return await run.promise;
    } finally {
      cancel();
      stopLooking();
      signal.removeEventListener('abort', giveUp);
      this.#waiting.delete(look);
    }
  }

  /** Resolves when no call is under way, or after this time. Streams are not waited for. */
  async untilIdle(timeoutMs: number): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.now() + timeoutMs;
    const isBusy = () => [...this.#clients.values()].some(({ calls }) => calls > 0);
    while (isBusy() && clock.now() < untilMs) await sleep(clock, IDLE_CHECK_MS);
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #isAbsent(life: string): boolean {
    const atMs = this.#absentAtMs.get(life) ?? Number.NEGATIVE_INFINITY;
    return this.#options.clock.now() - atMs < ABSENT_MS;
  }

  #clientOf(life: string): PeerClient | undefined {
    const { nodes, keys, clock, counts } = this.#options;
    const known = this.#clients.get(life);
    const peer = nodes.find(life);
    if (peer === undefined || known !== undefined) return peer && known;
    const client = new PeerClient(peer, {
      keys,
      clock,
      counts,
      life: () => nodes.life,
      isSilent: () => nodes.isSilent(life),
      suspect: () => nodes.suspect(life),
      recheck: () => nodes.recheck(),
    });
    this.#clients.set(life, client);
    return client;
  }

  /** The clients of lives that are over. */
  #endEnded(): void {
    for (const [life, client] of this.#clients) {
      if (this.#options.nodes.find(life) !== undefined) continue;
      this.#clients.delete(life);
      client.end();
    }
  }
}

function absenceOf({ nodeId }: InstanceDefinition): string {
  return runsAnywhere({ nodeId })
    ? 'no node runs it now'
    : `the node "${nodeId}", which runs it, is not there`;
}
