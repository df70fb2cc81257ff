// The other nodes that this one forwards requests to: a client for each life that was needed. The first characters of a session id are
// the life that opened it, so its holder is found without a query.

import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { backendUnavailable } from '../../domain/errors/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { InstanceHeldBytes } from '../../domain/memory/held-bytes.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import type { PlacedInstance } from '../../domain/nodes/forwarding.ts';
import { lifeOf } from '../../domain/nodes/life.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import { type Clock, sleep } from '../../domain/time/clock.ts';
import type { Open } from '../../transports/open-options.ts';
import type { MemberTable } from '../member-table.ts';
import type { Member } from '../members.ts';
import type { ChannelKeys } from './channel-keys.ts';
import { type Peer, PeerClient } from './peer-client.ts';
import { type LastBackend, openPeerTransport } from './peer-transport.ts';

/** Interval at which a gateway that closes checks for calls at other nodes. */
const IDLE_CHECK_MS = 50;

/** Longest time until another node takes the program of one that has ended. */
const TAKEN_MS = 15_000;
/** Pause before it is waited for again, in ms. */
const AGAIN_MS = 1_000;
/** Lives that no member has are remembered, for this time. */
const MAX_ABSENT = 10_000;
const ABSENT_MS = 1_000;
/** Sessions that other lives claimed, with the life that has each. */
const MAX_HOLDERS = 10_000;

/** What the channel asks of the table. */
export type KnownMembers = Pick<
  MemberTable,
  | 'life'
  | 'find'
  | 'runsOn'
  | 'knowsPrograms'
  | 'takesSessions'
  | 'isSilent'
  | 'openers'
  | 'refresh'
  | 'isRefused'
  | 'isDatabaseAway'
  | 'certain'
  | 'recheck'
  | 'suspect'
  | 'onChanged'
>;

export interface PeersOptions {
  readonly members: KnownMembers;
  readonly keys: ChannelKeys;
  readonly clock: Pick<Clock, 'now' | 'alarm' | 'background'>;
  /** The session with this id is open on this node. */
  readonly hasSession: (sessionId: string) => boolean;
  /** Default: nothing is counted. */
  readonly counts?: ClusterCounts | undefined;
}

/** What serves the requests of clients asks. */
export type ForwardingPeers = Pick<
  Peers,
  'certain' | 'ofSession' | 'noteHolder' | 'ofLife' | 'ofInstances' | 'opener'
>;

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
    options.members.onChanged(() => {
      this.#endEnded();
      for (const look of this.#waiting) look();
    });
  }

  /** A promise after a freeze of this node: other nodes may have taken over its sessions. Resolves when that is known. NODE_UNAVAILABLE. */
  certain(): Promise<void> | undefined {
    return this.#options.members.certain();
  }

  /** Undefined for a session that is served here, or by no node. Returns a promise only for a life that is not known yet. */
  ofSession(sessionId: string): Peer | undefined | Promise<Peer | undefined> {
    const { members, clock, hasSession } = this.#options;
    const isOfThis = sessionId.startsWith(members.life);
    if (isOfThis && this.#holders.size === 0) return undefined; // nearly always
    const life = lifeOf(sessionId);
    if (life === undefined || hasSession(sessionId)) return undefined;
    const holder = this.#clientOf(this.#holders.get(sessionId) ?? '');
    if (isOfThis || holder !== undefined) return holder;
    const client = this.#clientOf(life);
    if (client !== undefined || this.#isAbsent(life)) return client;
    return members.refresh().then(() => {
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

  /** The peer with this life. */
  ofLife(life: string): Peer | undefined {
    return this.#clientOf(life);
  }

  /** The peer that runs all of these instances, if it takes new sessions. Source: ADR 171. */
  ofInstances([first, ...others]: readonly PlacedInstance[]): Peer | undefined {
    const { members } = this.#options;
    const life = first && members.runsOn(first)?.life;
    if (life === undefined || !members.takesSessions(life)) return undefined;
    const isThere = (other: PlacedInstance): boolean => members.runsOn(other)?.life === life;
    return others.every(isThere) ? this.#clientOf(life) : undefined;
  }

  /** A peer for a session that this node cannot open, because it is cut off from the database, or from a member. Source: ADR 260. */
  opener(): Peer | undefined {
    const { openers } = this.#options.members;
    this.#turn += 1;
    return this.#clientOf(openers[this.#turn % openers.length] ?? '');
  }

  /** Opens the way to an instance that another node runs. */
  openInstance(definition: InstanceDefinition, answers?: InstanceHeldBytes): Open {
    const last: LastBackend = {};
    return async (signal, { onDraining } = {}) => {
      const { members } = this.#options;
      if (members.runsOn(definition) === undefined) await members.refresh();
      const member = this.#runnerOf(definition) ?? (await this.#untilRun(definition, signal));
      const client = member && this.#clientOf(member.life);
      // Calls wait for the first opening only, not for each: see HttpRefusal.
      const later = { delivered: 'no', backendStatus: 503, backendWaitMs: AGAIN_MS } as const;
      if (client?.isSilent) throw backendUnavailable('its node does not answer', later);
      if (client === undefined)
        throw backendUnavailable(
          absenceOf(definition),
          runsAnywhere(definition) ? later : { delivered: 'no' },
        );
      return openPeerTransport({ definition, client, signal, last, answers, onDraining });
    };
  }

  /** A program of any node leaves one that is silent: that is frozen, or its life ends. */
  #runnerOf(definition: InstanceDefinition): Member | undefined {
    const { members } = this.#options;
    const member = members.runsOn(definition);
    const isLeft = member !== undefined && runsAnywhere(definition) && members.isSilent(member.life);
    return isLeft ? undefined : member;
  }

  /** The node that takes a program of any node soon: meanwhile it is one that starts, so that its calls wait. */
  async #untilRun(definition: InstanceDefinition, signal: AbortSignal): Promise<Member | undefined> {
    const { members, clock } = this.#options;
    if (!runsAnywhere(definition) || !members.knowsPrograms || signal.aborted) return undefined;
    const run = Promise.withResolvers<Member | undefined>();
    const look = (): void => {
      const member = this.#runnerOf(definition);
      if (member !== undefined) run.resolve(member);
    };
    const giveUp = (): void => run.resolve(undefined);
    const cancel = clock.background.alarm(TAKEN_MS, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(look);
    try {
      return await run.promise;
    } finally {
      cancel();
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
    const { members, keys, clock, counts } = this.#options;
    const known = this.#clients.get(life);
    const member = members.find(life);
    if (member === undefined || known !== undefined) return member && known;
    const client = new PeerClient(member, {
      keys,
      clock,
      counts,
      life: () => members.life,
      isSilent: () => members.isSilent(life),
      suspect: () => members.suspect(life),
      recheck: () => members.recheck(),
    });
    this.#clients.set(life, client);
    return client;
  }

  /** The clients of lives that are over. */
  #endEnded(): void {
    for (const [life, client] of this.#clients) {
      if (this.#options.members.find(life) !== undefined) continue;
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
