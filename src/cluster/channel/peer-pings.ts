// Pings the other nodes, for the table of nodes: whether each answers, and whether it refuses connections.

import { codeOf } from '../../domain/errors/errors.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { ConnectionPool } from '../../net/http1/connection-pool.ts';
import type { ReachableLife } from '../reachable-life.ts';
import { peerConnector, peerHost } from './peer-connector.ts';
import { LOST_PING_MS, Ping } from './peer-ping.ts';
import { PEER_PATHS } from './peer-protocol.ts';
import type { ChannelKeys } from './trust/channel-keys.ts';
import { TokenIssuer } from './trust/peer-tokens.ts';

/** Pings of one node that have no answer yet: further ones are not sent, or take the place of one that is lost. */
const MAX_PINGS = 4;

export type PingResult = 'answered' | 'refused' | 'failed';

interface PingedPeer {
  readonly pool: ConnectionPool;
  readonly issuer: TokenIssuer;
  readonly pings: Set<Ping>;
}

/**
 * The pings to all other nodes, each node with connections of its own for them. Only a node with the key of the
 * deployment can answer a greeting: answers of another program at the address do not count.
 */
export class PeerPings {
  readonly #keys: ChannelKeys;
  readonly #clock: Clock;
  /** The life of this node. */
  readonly #life: () => string;
  /** The nodes that it pings, by life. */
  readonly #targets = new Map<string, PingedPeer>();

  constructor(keys: ChannelKeys, clock: Clock, life: () => string) {
    this.#keys = keys;
    this.#clock = clock;
    this.#life = life;
  }

  /** Reports once, or never if the node does not answer. */
  ping(peer: ReachableLife, report: (result: PingResult) => void): void {
    this.#ask(peer, PEER_PATHS.greeting, (answer) => {
      if (!(answer instanceof Error)) report(answer === undefined ? 'failed' : 'answered');
      else report(this.#isRefusal(codeOf(answer)) ? 'refused' : 'failed');
    });
  }

  #isRefusal(code = ''): boolean {
    return REFUSALS.has(code) && !(code === 'ECONNRESET' && this.#keys.tls.mayReset);
  }

  /** Asks a third member whether this life refuses its connections, too. As `ping`; silence says nothing. */
  askThird(third: ReachableLife, life: string, report: (isRefused: boolean) => void): void {
    this.#ask(third, `${PEER_PATHS.refusal}?${life}`, (answer) => {
      if (typeof answer === 'string') report(Object(jsonIn(answer)).is_refused === true);
    });
  }

  /** Asks a member whether its database is away. As `ping`; it does not answer while it has no life. */
  askDatabase(peer: ReachableLife, report: (isAway: boolean) => void): void {
    this.#ask(peer, `${PEER_PATHS.database}?${this.#life()}`, (answer) => {
      const { is_away: isAway } = Object(typeof answer === 'string' ? jsonIn(answer) : undefined);
      if (typeof isAway === 'boolean') report(isAway);
    });
  }

  #ask(peer: ReachableLife, target: string, over: (answer: string | undefined | Error) => void): void {
    const { pool, issuer, pings } = this.#targetOf(peer);
    const nowMs = this.#clock.now();
    const [oldest] = pings;
    if (oldest !== undefined && pings.size >= MAX_PINGS) {
      if (nowMs - oldest.sentAtMs < LOST_PING_MS) return;
      oldest.abort();
      pings.delete(oldest);
    }
    const ping = new Ping(issuer, nowMs, (answer) => {
      pings.delete(ping);
      over(answer);
    });
    pings.add(ping);
    ping.send(pool, peerHost(peer.address), target);
  }

  /** Forgets all lives but these; their idle connections end by themselves. */
  keep(lives: ReadonlySet<string>): void {
    for (const [life, target] of this.#targets) {
      if (lives.has(life)) continue;
      this.#targets.delete(life);
      for (const ping of target.pings) ping.abort();
    }
  }

  close(): void {
    this.keep(new Set());
  }

  #targetOf(peer: ReachableLife): PingedPeer {
    const known = this.#targets.get(peer.life);
    if (known) return known;
    const target: PingedPeer = {
      pool: new ConnectionPool(peerConnector(peer.address, this.#keys.tls), {
        clock: this.#clock,
        maxConnections: MAX_PINGS,
      }),
      issuer: new TokenIssuer(this.#keys.tokens[0], this.#clock.now, this.#life, peer.life),
      pings: new Set(),
    };
    this.#targets.set(peer.life, target);
    return target;
  }
}

/** The machine answers, and no process listens there, or it ended meanwhile; ENOENT: it removed its socket file. */
const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT']);
