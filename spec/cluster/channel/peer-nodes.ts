// Nodes of the peer channel for specs: each has a real listener, a listener for what reaches it, and clients for the other nodes. The
// members are a map that the spec changes.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PeerRefusal, ServedInstances } from '../../../src/cluster/channel/peer-admission.ts';
import { openPeerListener, type PeerListener } from '../../../src/cluster/channel/peer-listener.ts';
import { Peers } from '../../../src/cluster/channel/peers.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import type { PeerTls } from '../../../src/cluster/channel/trust/peer-tls.ts';
import { TokenVerifier } from '../../../src/cluster/channel/trust/peer-tokens.ts';
import type { ReachableLife } from '../../../src/cluster/reachable-life.ts';
import { ClusterCounts } from '../../../src/counts/cluster-counts.ts';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { ForwardedCaller, Forwarding, Hop } from '../../../src/domain/nodes/forwarding.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import type { HttpHeaders } from '../../../src/domain/text.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { knownNodesIn } from './known-nodes.ts';

type Serve = (request: IncomingMessage, response: ServerResponse, caller: ForwardedCaller) => void;

export interface NodeOptions {
  /** Default: the same for all. */
  readonly secrets?: readonly [string, ...string[]];
  /** Default: false, plain HTTP. */
  readonly isSecure?: boolean;
  /** Default: by the secrets. */
  readonly tls?: PeerTls;
  readonly clock?: Clock;
  readonly serve?: Serve;
  readonly instances?: ServedInstances;
  /** It goes on under this life when it learns of the end of the first one. */
  readonly nextLife?: string;
  /** While its life is in doubt. */
  readonly untilLifeKnown?: () => Promise<void> | undefined;
  /** Default: none. */
  readonly hasSession?: (sessionId: string) => boolean;
  /** What it says to a member that asks. Default: nothing. */
  readonly isDatabaseAway?: boolean;
}

/** A caller whose fields all cross. */
export const ADA: Principal = {
  id: 'key:0123456789abcdef',
  kind: 'api-key',
  name: 'ada\u00e9',
  userId: 'u1',
  scopes: new Set(['tools:call']),
  templates: new Set(['demo', 'other']),
  hourlyLimit: 5,
};

/** The nodes of one deployment. */
export class Deployment {
  readonly rows = new Map<string, ReachableLife>();
  /** Lives that refused connections. */
  readonly suspected: string[] = [];
  /** Lives that do not answer the pings of members. */
  readonly silent = new Set<string>();
  readonly #opened: (() => unknown)[] = [];
  readonly #listeners: (() => void)[] = [];

  /** Ends a life: every node learns of it. */
  end(life: string): void {
    this.rows.delete(life);
    for (const listener of this.#listeners) listener();
  }

  async node(firstLife: string, options: NodeOptions = {}): Promise<PeerNode> {
    let life = firstLife;
    const {
      secrets: [first, ...others] = ['a secret of these nodes, 32 bytes or more'],
      isSecure = false,
      clock = systemClock,
    } = options;
    const keys = channelKeys(
      [Buffer.from(first), ...others.map((secret) => Buffer.from(secret))],
      options.tls,
    );
    const refusals: PeerRefusal[] = [];
    const nodes = knownNodesIn(this.rows, () => life, {
      recheck: async () => {
        await options.untilLifeKnown?.();
        if (this.rows.has(life) || options.nextLife === undefined) return;
        life = options.nextLife;
        this.rows.set(life, { ...member, life });
      },
      isSilent: (other) => this.silent.has(other),
      suspect: (other) => this.suspected.push(other),
      onChanged: (listener) => this.#listeners.push(listener),
    });
    const tokens = new TokenVerifier(
      keys.tokens,
      clock.now,
      () => life,
      (from) => this.rows.has(from),
    );
    const listener = await openPeerListener({
      clock: systemClock,
      host: '127.0.0.1',
      port: 0,
      tls: isSecure ? keys.tls : undefined,
      tokens,
      headerBytes: 16 * 1024,
      untilLifeKnown: options.untilLifeKnown ?? (() => undefined),
      refreshNodes: async () => {},
      isRefused: async () => false,
      isDatabaseAway: async () => options.isDatabaseAway,
      serve: options.serve ?? ((_request, response) => response.end()),
      ...(options.instances === undefined ? {} : { instances: options.instances }),
      onRefused: (refusal) => refusals.push(refusal),
    });
    const counts = new ClusterCounts();
    const peers = new Peers({
      nodes,
      keys,
      clock,
      hasSession: options.hasSession ?? (() => false),
      counts,
    });
    this.#opened.push(
      () => peers.close(),
      () => listener.close(0),
    );
    const address = `${isSecure ? 'https' : 'http'}://127.0.0.1:${listener.port}`;
    const member = { node: `node ${life}`, life, address };
    this.rows.set(life, member);
    return { life, member, peers, listener, refusals, counts };
  }

  /** The nodes AAAAAAAA and BBBBBBBB; the second one serves. */
  async pair(serve: Serve, options: NodeOptions = {}): Promise<[PeerNode, PeerNode]> {
    return [await this.node('AAAAAAAA', options), await this.node('BBBBBBBB', { ...options, serve })];
  }

  async close(): Promise<void> {
    for (const close of this.#opened.splice(0)) await close();
  }
}

export interface PeerNode {
  readonly life: string;
  readonly member: ReachableLife;
  readonly peers: Peers;
  readonly listener: PeerListener;
  readonly refusals: PeerRefusal[];
  readonly counts: ClusterCounts;
}

export interface Sent {
  readonly hop?: Hop;
  readonly method?: string;
  readonly target?: string;
  readonly headers?: HttpHeaders;
  readonly body?: Buffer | string;
  readonly principal?: Principal;
  /** Default: false. */
  readonly isRepeatable?: boolean;
  /** Default: false. */
  readonly mayShare?: boolean;
  /** Default: 15 s. */
  readonly untilMs?: number;
  /** The longest time until the end of its answer. Default: as long as the node is heard. */
  readonly longestMs?: number;
  /** Default: it reads everything. */
  readonly isPaused?: () => boolean;
}

/** What came back, and the request. */
export class Received {
  status = 0;
  headers: HttpHeaders = {};
  text = '';
  bytes = 0;
  error: GatewayError | undefined;
  isNotHolder = false;
  readonly head = Promise.withResolvers<void>();
  readonly over = Promise.withResolvers<void>();
  forwarding: Forwarding | undefined;
}

/** Forwards a request from one node to the holder of a session of this life. */
export async function forward(from: PeerNode, life: string, sent: Sent = {}): Promise<Received> {
  const peer = await from.peers.ofSession(newSessionId(life));
  if (peer === undefined) throw new Error('no peer');
  const { method = 'POST', target = '/mcp/demo', headers = {}, body = '', isPaused = () => false } = sent;
  const received = new Received();
  received.forwarding = peer.forward(
    {
      caller: { principal: sent.principal ?? ANONYMOUS, requestId: 'request-1', address: '192.0.2.7' },
      ...{ hop: sent.hop ?? 'session', method, target, headers, body: Buffer.from(body) },
      isStream: method === 'GET',
      isRepeatable: () => sent.isRepeatable ?? false,
      mayShare: sent.mayShare ?? false,
      untilMs: sent.untilMs,
      longestMs: sent.longestMs === undefined ? undefined : () => sent.longestMs ?? 0,
    },
    {
      head: (status, given) => {
        received.status = status;
        received.headers = given;
        received.head.resolve();
      },
      data: (part) => {
        received.bytes += part.length;
        if (received.bytes < 1_000_000) received.text += part.toString();
        return !isPaused();
      },
      end: () => received.over.resolve(),
      failed: (error) => {
        received.error = error;
        received.head.resolve();
        received.over.resolve();
      },
      notHolder: () => {
        received.isNotHolder = true;
        received.head.resolve();
        received.over.resolve();
      },
    },
  );
  return received;
}

/** The same, to its end. */
export async function ask(from: PeerNode, life: string, sent: Sent = {}): Promise<Received> {
  const received = await forward(from, life, sent);
  await received.over.promise;
  return received;
}
