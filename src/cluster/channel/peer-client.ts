// Sends requests to one other node, in one of its lives: over two pools, one for calls and one for streams, one request
// at a time on each connection.

import type { ClusterCounts, HopOutcome } from '../../counts/cluster-counts.ts';
import { asGatewayError, codeOf } from '../../domain/errors/errors.ts';
import { nodeUnavailable } from '../../domain/errors/node-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LinkedSet } from '../../domain/memory/linked-set.ts';
import type { ForwardedAnswer, ForwardedRequest, Forwarding } from '../../domain/nodes/forwarding.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { ConnectionPool } from '../../net/http1/connection-pool.ts';
import type { Connector } from '../../net/http1/connector.ts';
import type { ReachableLife } from '../reachable-life.ts';
import { MultiplexedConnection } from './multiplexed/multiplexed-connection.ts';
import { peerConnector, peerHost } from './peer-connector.ts';
import { PeerExchange } from './peer-exchange.ts';
import { LOST_PING_MS, Ping } from './peer-ping.ts';
import { PEER_PATHS, PEER_REFUSAL, type RefusalReason } from './peer-protocol.ts';
import { peerRequestText } from './peer-request.ts';
import type { ChannelKeys } from './trust/channel-keys.ts';
import { TokenIssuer } from './trust/peer-tokens.ts';

/** Requests under way at one node. Over it: NODE_UNAVAILABLE. */
const MAX_CALLS = 1_024;
const MAX_PEER_STREAMS = 8_192;
const PING_MS = 1_000;
/** A gap between two looks at the requests, in ms, after which this node slept: it could not hear the other one. */
const SLEPT_MS = 3_000;
/** The time after a sleep of this process in which nothing is given up, in ms. */
const AWAKE_MS = 3_000;
/**
 * The longest wait of a request for a silent node, in ms. Its answer is then 503, never 404: a silent holder of a session is not
 * an answer.
 */
const SILENT_HOLDER_MS = 15_000;
/**
 * The time after the longest one of a request, in ms, in which its node may still recover its session and write its answer. After
 * it the answer is lost, though the node is heard.
 */
const OVERDUE_MS = 60_000;
/** The most requests that wait for a silent node. Further ones get 503 at once. */
const MAX_WAITING = 1_000;
/** A request that must not be carried out twice is sent to a node that was heard in this time, in ms, or after a ping. */
const FRESH_MS = 20;
/** The time after the failure of a multiplexed connection until the next one is opened, in ms. */
const MULTIPLEXED_AGAIN_MS = 5_000;
/** Connections for pings beside the calls. */
const PING_CONNECTIONS = 2;

interface PeerClientOptions {
  readonly keys: ChannelKeys;
  readonly clock: Clock;
  /** The present life of this node. */
  readonly life: () => string;
  /** True when the node does not answer the pings of the members, which go on between requests. */
  readonly isSilent: () => boolean;
  /** Called when the node refuses connections. */
  readonly suspect: () => void;
  /** The node does not know the life of this one. Resolves when the present life is known. Throws NODE_UNAVAILABLE. */
  readonly recheck: () => Promise<void>;
  readonly counts?: ClusterCounts | undefined;
}

/** Another node, to which requests are forwarded. */
export type Peer = Pick<PeerClient, 'node' | 'forward'>;

/**
 * The connections to one life of a node, and the requests under way there. While requests are under way it pings the node
 * every second. A node that does not answer for 3 s is silent: requests wait for it, 15 s at most. Between requests the
 * members know whether it is silent. Source: ADR 148, 319.
 */
export class PeerClient {
  readonly #peer: ReachableLife;
  readonly #options: PeerClientOptions;
  readonly #host: string;
  readonly #issuer: TokenIssuer;
  readonly #connector: Connector;
  readonly #calls: ConnectionPool;
  readonly #streams: ConnectionPool;
  /** All requests that have not ended. */
  readonly #exchanges = new LinkedSet<PeerExchange>();
  readonly #waiting = new Set<PeerExchange>();
  #multiplexed: MultiplexedConnection | undefined;
  #multiplexedAgainAtMs = 0;
  #openStreams = 0;
  #hasEnded = false;
  /** The ping that has no answer yet. */
  #ping: Ping | undefined;
  #silentSinceMs: number | undefined;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #stopPings: (() => void) | undefined;
  #tickedAtMs = 0;
  #givesUpFromMs = Number.NEGATIVE_INFINITY;

  constructor(peer: ReachableLife, options: PeerClientOptions) {
    const { keys, clock, life } = options;
    this.#peer = peer;
    this.#options = options;
    this.#host = peerHost(peer.address);
    this.#issuer = new TokenIssuer(keys.tokens[0], clock.now, life, peer.life);
    const connector = peerConnector(peer.address, keys.tls);
    this.#connector = connector;
    this.#calls = new ConnectionPool(connector, { clock, maxConnections: MAX_CALLS + PING_CONNECTIONS });
    this.#streams = new ConnectionPool(connector, { clock, maxConnections: MAX_PEER_STREAMS, isKept: false });
  }

  /** Id of the node. */
  get node(): string {
    return this.#peer.node;
  }

  /**
   * True for a node that does not answer requests here, or was not heard for as long as a ping takes, and does not
   * answer the members.
   */
  get isSilent(): boolean {
    if (this.#silentSinceMs !== undefined) return true;
    return this.#options.clock.now() - this.#heardAtMs >= LOST_PING_MS && this.#options.isSilent();
  }

  /** Requests under way, without streams. */
  get calls(): number {
    return this.#exchanges.size - this.#openStreams;
  }

  forward(request: ForwardedRequest, answer: ForwardedAnswer): Forwarding {
    const { isStream } = request;
    const exchange = new PeerExchange(request, answer, {
      startedAtMs: this.#options.clock.now(),
      heard: () => this.#heard(),
      refused: (reason) => this.#refused(exchange, reason),
      lost: (error) => this.#lost(exchange, error),
      ended: (outcome) => this.#ended(exchange, outcome),
    });
    const isFull = isStream ? this.#openStreams >= MAX_PEER_STREAMS : this.calls >= MAX_CALLS;
    this.#exchanges.add(exchange);
    if (isStream) this.#openStreams += 1;
    if (isFull) queueMicrotask(() => this.#fail(exchange, 'it has too many requests from this node'));
    else this.#begin(exchange);
    return exchange;
  }

  /**
   * Ends the connections, because the life of the node has ended. Requests that were certainly not carried out, or may be carried
   * out twice, go on at another node. A stream whose answer has begun ends. Other requests get their answer, as from a node that
   * stops, or fail with their connection, or in silence.
   */
  end(): void {
    this.#hasEnded = true;
    const sinceMs = this.#silentSinceMs ?? this.#options.clock.now();
    for (const exchange of this.#exchanges.values()) {
      if (!exchange.isSent) exchange.notHolder();
      else if (exchange.retract()) exchange.notHolder(sinceMs);
      else if (exchange.request.isStream) this.#fail(exchange, 'it has left');
    }
    if (this.#exchanges.size === 0) this.close();
  }

  /** Fails every request under way. */
  close(): void {
    for (const exchange of this.#exchanges.values()) this.#fail(exchange, 'it has left');
    this.#stopPings?.();
    this.#multiplexedAgainAtMs = Number.POSITIVE_INFINITY;
    this.#multiplexed?.destroy();
    this.#calls.destroy();
    this.#streams.destroy();
  }

  /** `asksNow`: it is known at once whether a silent node answers; false: with the next look, within a second. */
  #begin(exchange: PeerExchange, asksNow = true): void {
    if (this.#hasEnded) {
      exchange.notHolder();
      return;
    }
    if (this.#stopPings === undefined) {
      this.#giveUpPing(); // from before the rest, in which its connection may have died
      this.#tickedAtMs = this.#options.clock.now();
      this.#stopPings = this.#options.clock.background.every(PING_MS, () => this.#tick());
    }
    const { isSilent } = this;
    if (isSilent) this.#silentSinceMs ??= this.#options.clock.now();
    if (!isSilent && this.#issuer.isReady && this.#mayBeSent(exchange)) {
      this.#send(exchange);
      return;
    }
    if (isSilent && exchange.request.hop === 'instance') {
      queueMicrotask(() => this.#fail(exchange, 'it does not answer'));
      return;
    }
    if (isSilent && this.#waiting.size >= MAX_WAITING) {
      queueMicrotask(() => this.#fail(exchange, 'too many requests wait for it'));
      return;
    }
    this.#waiting.add(exchange);
    if (asksNow && this.#ping === undefined) this.#sendPing();
  }

  /**
   * False when the connections may lead to a node that is gone or frozen: then it is unknown whether it carried
   * the request out.
   */
  #mayBeSent({ request }: PeerExchange): boolean {
    return this.#options.clock.now() - this.#heardAtMs < FRESH_MS || request.isRepeatable();
  }

  #send(exchange: PeerExchange): void {
    const { request } = exchange;
    const token = this.#issuer.tokenFor(request.caller.principal);
    if (!request.mayShare || !this.#sendMultiplexed(exchange, token)) this.#sendAlone(exchange, token);
  }

  #sendAlone(exchange: PeerExchange, token: string): void {
    const { request } = exchange;
    const text = peerRequestText(request, this.#host, token);
    const pool = request.isStream ? this.#streams : this.#calls;
    pool.dispatch({ text, answer: exchange });
  }

  /** False: it takes a connection of its own, also while the multiplexed one is opened. */
  #sendMultiplexed(exchange: PeerExchange, token: string): boolean {
    if (this.#multiplexed !== undefined) return this.#multiplexed.dispatch(exchange, token);
    const nowMs = this.#options.clock.now();
    if (nowMs < this.#multiplexedAgainAtMs) return false;
    this.#multiplexedAgainAtMs = nowMs + MULTIPLEXED_AGAIN_MS;
    try {
      this.#multiplexed = new MultiplexedConnection({
        clock: this.#options.clock,
        connector: this.#connector,
        host: this.#host,
        token,
        over: () => {
          this.#multiplexed = undefined;
        },
        returned: (unsent, withToken) => this.#sendAlone(unsent, withToken),
      });
    } catch {
      // The exchange meets the same error on a connection of its own.
    }
    return false;
  }

  #ended(exchange: PeerExchange, outcome: HopOutcome): void {
    if (!this.#exchanges.delete(exchange)) return;
    const { counts, clock } = this.#options;
    const { hop = 'session', isStream } = exchange.request;
    counts?.ended(hop, outcome, isStream ? undefined : clock.now() - exchange.startedAtMs);
    this.#waiting.delete(exchange);
    if (exchange.request.isStream) this.#openStreams -= 1;
    if (this.#exchanges.size > 0) return;
    this.#stopPings?.();
    this.#stopPings = undefined;
    if (this.#silentSinceMs !== undefined) this.#giveUpPing(); // the next request asks again
    this.#silentSinceMs = undefined;
    if (this.#hasEnded) queueMicrotask(() => this.close()); // after the answer
  }

  /**
   * The node refused a request, before it read more of it than its token. If another token may be accepted, the
   * request is sent again, once.
   */
  #refused(exchange: PeerExchange, reason: RefusalReason): void {
    if (reason === PEER_REFUSAL.notHolder) {
      exchange.notHolder();
      return;
    }
    if (reason === PEER_REFUSAL.elsewhere) {
      this.#silentSinceMs ??= this.#options.clock.now(); // it goes on under another life: the members will know
      this.#begin(exchange, false);
      return;
    }
    const isUnknown = reason === PEER_REFUSAL.unknownSender;
    if ((reason !== PEER_REFUSAL.expired && !isUnknown) || exchange.isResent) {
      this.#fail(exchange, `it refuses this node (${reason})`);
      return;
    }
    exchange.isResent = true;
    if (isUnknown) {
      // Others may have ended the life of this node.
      this.#options.recheck().then(
        () => this.#exchanges.has(exchange) && this.#begin(exchange),
        (thrown) => exchange.fail(asGatewayError(thrown)),
      );
      return;
    }
    this.#issuer.forgetClock();
    this.#begin(exchange);
  }

  /**
   * Handles a lost connection. A node that accepts no connection, or loses it, is silent until the members know more: it answers
   * a ping, or its life ends. Requests that may have been carried out fail.
   */
  #lost(exchange: PeerExchange, error: Error): void {
    const wasSent = exchange.isSent;
    if (wasSent && !exchange.retract()) {
      this.#fail(exchange, error.message);
      return;
    }
    const nowMs = this.#options.clock.now();
    if (wasSent) exchange.waitsSinceMs = nowMs;
    if (codeOf(error) !== 'ETIMEDOUT') this.#options.suspect();
    this.#silentSinceMs ??= nowMs;
    this.#begin(exchange);
  }

  #heard(): void {
    this.#heardAtMs = this.#options.clock.now();
    this.#silentSinceMs = undefined;
  }

  #tick(): void {
    const nowMs = this.#options.clock.now();
    const hasSlept = nowMs - this.#tickedAtMs > SLEPT_MS;
    this.#tickedAtMs = nowMs;
    if (hasSlept) {
      // The bytes that the other node sent meanwhile are read after this turn.
      this.#giveUpPing();
      this.#silentSinceMs = undefined;
      this.#givesUpFromMs = nowMs + AWAKE_MS;
    }
    const { sentAtMs = nowMs } = this.#ping ?? {};
    if (nowMs - sentAtMs >= LOST_PING_MS) {
      this.#silentSinceMs ??= sentAtMs;
      this.#giveUpPing();
      this.#multiplexed?.leaveSilent(); // after a cut TCP repeats what was lost ever more rarely
    }
    if (this.isSilent) this.#silentSinceMs ??= nowMs;
    if (!hasSlept) this.#multiplexed?.probe(nowMs);
    for (const exchange of this.#exchanges.values())
      if (nowMs >= Math.max(this.#givesUpAtMs(exchange), this.#givesUpFromMs))
        this.#fail(exchange, 'it does not answer');
    if (this.#ping === undefined && this.#exchanges.size > 0) this.#sendPing();
  }

  #giveUpPing(): void {
    this.#ping?.abort();
    this.#ping = undefined;
  }

  #sendPing(): void {
    const ping = new Ping(this.#issuer, this.#options.clock.now(), (answer) => {
      if (this.#ping === ping) this.#ping = undefined;
      this.#pinged(answer);
    });
    this.#ping = ping;
    ping.send(this.#calls, this.#host, PEER_PATHS.greeting);
  }

  /** `answer`: see Ping. */
  #pinged(answer: string | undefined | Error): void {
    if (typeof answer !== 'string') {
      if (codeOf(answer) !== 'ETIMEDOUT') this.#options.suspect();
      if (this.#exchanges.size > 0) this.#silentSinceMs ??= this.#options.clock.now();
      return;
    }
    this.#heard();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const exchange of waiting) this.#send(exchange);
  }

  /** A request about an instance does not wait for its node, since another instance may take the call. A call under way does. */
  #givesUpAtMs({ request, isSent, startedAtMs, waitsSinceMs }: PeerExchange): number {
    const { hop, isStream, untilMs = Number.POSITIVE_INFINITY } = request;
    const sinceMs = this.#silentSinceMs;
    if (!isSent && hop !== 'instance') return Math.min(waitsSinceMs + SILENT_HOLDER_MS, untilMs);
    if (sinceMs === undefined) return this.#overdueAtMs(request, startedAtMs);
    return (
      Math.max(sinceMs, startedAtMs) + (hop === 'instance' && (isStream || !isSent) ? 0 : SILENT_HOLDER_MS)
    );
  }

  #overdueAtMs({ isStream, longestMs }: ForwardedRequest, startedAtMs: number): number {
    const isShort = this.#options.clock.now() - startedAtMs < LIMITS.callDefaultBoundMs;
    if (isStream || longestMs === undefined || isShort) return Number.POSITIVE_INFINITY;
    return startedAtMs + longestMs() + OVERDUE_MS;
  }

  #fail(exchange: PeerExchange, reason: string): void {
    exchange.fail(nodeUnavailable(this.#peer.node, reason, exchange.isSent ? 'unknown' : 'no'));
  }
}
