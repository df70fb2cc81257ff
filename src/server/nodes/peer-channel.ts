// Opens the channel to the other nodes of the deployment: its address, its listener, and the clients for the
// others. src/cluster has its parts; the members come from their table.

import { connect } from 'node:net';
import type { Logger } from 'pino';
import type { Auth } from '../../auth/auth.ts';
import type { InstanceHost } from '../../cluster/channel/instances/instance-host.ts';
import { InstanceListener } from '../../cluster/channel/instances/instance-listener.ts';
import type { PeerRefusal } from '../../cluster/channel/peer-admission.ts';
import {
  openPeerListener,
  type PeerListener,
  type PeerListenerOptions,
} from '../../cluster/channel/peer-listener.ts';
import { type ForwardingPeers, type KnownNodes, Peers } from '../../cluster/channel/peers.ts';
import type { ChannelKeys } from '../../cluster/channel/trust/channel-keys.ts';
import { TokenVerifier } from '../../cluster/channel/trust/peer-tokens.ts';
import { type ReachableLife, socketAddress } from '../../cluster/reachable-life.ts';
import type { Config } from '../../config/config.ts';
import type { ClusterCounts } from '../../counts/cluster-counts.ts';
import { OperatorError, reasonOf } from '../../domain/errors/errors.ts';
import { isLoopback, joinHostPort } from '../../domain/local-address.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import { unreachableNode } from '../../domain/nodes/nodes.ts';
import { systemClock } from '../../domain/time/clock.ts';

/** Refusals that the audit log records in a minute; further ones are counted. */
const RECORDED_PER_MINUTE = 30;
const CONNECT_MS = 5_000;

export interface PeerChannel {
  /** The nodes to which requests are forwarded. Undefined while none is to be (setting cluster.forward). */
  readonly peers: ForwardingPeers | undefined;
  readonly openInstance: Peers['openInstance'];
  /** Resolves when no call that came here is under way at another node, or after this time. */
  untilIdle(timeoutMs: number): Promise<void>;
  /** Requests under way fail; the listener waits for its last answers at most this long. */
  close(timeoutMs: number): Promise<void>;
}

interface PeerChannelOptions {
  readonly config: Pick<Config, 'cluster' | 'requestHeaderBytes'>;
  readonly nodeId: string;
  /** The life of this start. */
  readonly life: string;
  /** The keys of the deployment. */
  readonly keys: ChannelKeys;
  /** True when the channel uses certificates of the operator, on loopback too. */
  readonly hasCertificates: boolean;
  /** Host and port of the database; undefined for one without. */
  readonly database: DatabaseHost | undefined;
  readonly audit: Auth['audit'];
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /**
   * The socket file for the other workers of this gateway. On a database file no other node comes, and this is the
   * only listener.
   */
  readonly socket?: string | undefined;
  readonly serve: PeerListenerOptions['serve'];
  /** The instances of this node. */
  readonly host: InstanceHost;
  readonly hasSession: (sessionId: string) => boolean;
  readonly counts?: ClusterCounts | undefined;
  /** Tells the others of this node. */
  readonly join: (own: ReachableLife) => Promise<KnownNodes>;
}

interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

/** Throws OperatorError. */
export async function openPeerChannel(options: PeerChannelOptions): Promise<PeerChannel> {
  const { config, nodeId, life, keys, audit, log, serve, host, join, socket } = options;
  const { listen, advertise } = config.cluster;
  const isSocketOnly =
    socket !== undefined && options.database === undefined && (listen ?? advertise) === undefined;
  // The members are known once the listener has a port. Before that, no other node knows this one.
  let nodes: KnownNodes | undefined;
  const tokens = new TokenVerifier(
    keys.tokens,
    systemClock.now,
    () => nodes?.life ?? life,
    (from) => nodes?.find(from) !== undefined,
  );
  const onRefused = refusalRecorder(audit);
  const common = {
    tokens,
    headerBytes: config.requestHeaderBytes,
    untilLifeKnown: () => nodes?.untilLifeKnown(),
    // The sender has the key: it has just joined.
    refreshNodes: async () => nodes?.readAgain(),
    isRefused: async (life: string) => (await nodes?.isRefused(life)) ?? false,
    isDatabaseAway: async (life: string) => nodes?.isDatabaseAway(life),
    serve,
    clock: systemClock,
    instances: new InstanceListener(host, onRefused),
    onRefused,
  };
  const listeners: PeerListener[] = [];
  const close = async (timeoutMs: number): Promise<void> => {
    await Promise.all(listeners.map((listener) => listener.close(timeoutMs)));
  };
  let address = socketAddress(socket ?? '');
  try {
    if (socket !== undefined)
      listeners.push(await openPeerListener({ ...common, host: '', port: 0, path: socket, tls: undefined }));
    if (!isSocketOnly) {
      const { listen, advertise, isLocal } = await addressesOf(config.cluster, options.database);
      const isSecure = options.hasCertificates || !isLocal;
      const listener = await openPeerListener({ ...common, ...listen, tls: isSecure ? keys.tls : undefined });
      listeners.push(listener);
      address = `${isSecure ? 'https' : 'http'}://${joinHostPort(advertise.host, advertise.port ?? listener.port)}`;
      if (!URL.canParse(address)) throw new OperatorError(unreachableNode(` at ${address}`));
    }
    nodes = await join({ node: nodeId, life, address });
  } catch (thrown) {
    await close(0);
    throw thrown;
  }
  log.info(`other nodes reach this one at ${address}`);
  const { hasSession, counts } = options;
  const peers = new Peers({ nodes, keys, clock: systemClock, hasSession, counts });
  return {
    peers: config.cluster.forward ? peers : undefined,
    openInstance: (...instance) => peers.openInstance(...instance),
    untilIdle: (timeoutMs) => peers.untilIdle(timeoutMs),
    close: (timeoutMs) => {
      peers.close();
      return close(timeoutMs);
    },
  };
}

interface Addresses {
  readonly listen: { readonly host: string | undefined; readonly port: number };
  readonly advertise: { readonly host: string; readonly port: number | undefined };
  /** True when the listen and the advertised address are loopback. */
  readonly isLocal: boolean;
}

/** The address to listen on, and the one that the other nodes use. */
async function addressesOf(
  { listen, advertise }: Config['cluster'],
  database: DatabaseHost | undefined,
): Promise<Addresses> {
  const advertised = partsOf(advertise ?? process.env.POD_IP ?? (await localAddressTo(database)));
  const listening = partsOf(listen ?? '0');
  // An address that was set may be that of a proxy, and a name may be any of the addresses of this machine.
  const usual = advertise === undefined ? advertised.host : undefined;
  const host = listening.host || (isLoopback(advertised.host) ? advertised.host : usual);
  return {
    listen: { host, port: listening.port ?? 0 },
    advertise: advertised,
    isLocal: isLoopback(advertised.host) && isLoopback(host ?? ''),
  };
}

/** `host:port`, a host, or a port alone. */
function partsOf(text: string): { readonly host: string; readonly port: number | undefined } {
  if (/^\d{1,5}$/.test(text)) return { host: '', port: Number(text) };
  const [, inBrackets, plain, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  return { host: inBrackets ?? plain ?? text, port: port === undefined ? undefined : Number(port) };
}

/** The address of this machine on the way to its database. */
async function localAddressTo(database: DatabaseHost | undefined): Promise<string> {
  if (database === undefined || isLoopback(database.host)) return '127.0.0.1';
  const socket = connect({ ...database });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const cancel = systemClock.alarm(CONNECT_MS, () =>
    reject(new Error(`no connection within ${CONNECT_MS} ms`)),
  );
  socket.once('connect', () => resolve(socket.localAddress ?? '127.0.0.1'));
  socket.once('error', reject);
  try {
    return (await promise).replace(/^::ffff:(?=\d+\.)/i, '');
  } catch (cause) {
    throw new OperatorError(
      `the address of this node is not known, because its database cannot be reached (${reasonOf(cause)}); set cluster.advertise`,
      { cause },
    );
  } finally {
    cancel();
    socket.destroy();
  }
}

/** Records refusals in the audit log, a number per minute, and counts the others. */
function refusalRecorder(audit: Pick<Auth['audit'], 'record' | 'suppress'>): (refusal: PeerRefusal) => void {
  const refusals = new WindowCounter({ windowSeconds: 60, keys: 1 });
  return ({ reason, status, method, path, instance = '', callerId, address }) => {
    const actor = callerId || 'unknown';
    const entry = {
      actor,
      actorName: actor,
      action: `peer channel: ${reason}`,
      subject: `${method} ${path} ${instance}`.trim().slice(0, MAX_SUBJECT),
      status,
      address,
    };
    const { count } = refusals.add('', systemClock.now(), 1, RECORDED_PER_MINUTE);
    if (count > RECORDED_PER_MINUTE) audit.suppress(entry);
    else audit.record(entry);
  };
}

const MAX_SUBJECT = 512;
