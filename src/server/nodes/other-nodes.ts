// The other nodes of the deployment, as a server needs them: the table of the members, and the channel between them.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { uptime } from 'node:os';
import type { Logger } from 'pino';
import type { Auth } from '../../auth/auth.ts';
import type { SigningSecrets } from '../../auth/secrets/signing-secret.ts';
import type { ForwardingPeers } from '../../cluster/channel/peers.ts';
import { type ChannelKeys, channelKeys } from '../../cluster/channel/trust/channel-keys.ts';
import type { PeerCertificates } from '../../cluster/channel/trust/peer-certificates.ts';
import { deploymentSalt } from '../../cluster/deployment-key.ts';
import type { NodeTable } from '../../cluster/node-table/node-table.ts';
import type { ReachableLife } from '../../cluster/reachable-life.ts';
import type { ServeQuestion } from '../../cluster/sharing/share-with-peers.ts';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { ClusterCounts } from '../../counts/cluster-counts.ts';
import type { ForwardedCaller } from '../../domain/nodes/forwarding.ts';
import type { ShownNode } from '../../domain/nodes/nodes.ts';
import { workerSocket } from '../../domain/nodes/workers.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { VERSION } from '../../domain/version.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { OthersOptions } from '../../gateway/gateway-types.ts';
import type { HttpApp } from '../../http/app.ts';
import { databaseHost } from '../../persistence/database-url.ts';
import type { Store } from '../../persistence/store.ts';
import type { OpenedParts, ServerStart } from '../opened-parts.ts';
import { addressesOfWorkers, readByWorkers } from './other-workers.ts';
import type { PeerChannel } from './peer-channel.ts';

interface OtherNodesOptions extends Pick<ServerStart, 'config' | 'log' | 'worker'> {
  readonly store: Store;
  /** False when this process is the whole deployment. */
  readonly exist: boolean;
  readonly ids: OpenedParts['network']['ids'];
  /** The life of this start. */
  readonly life: string;
  readonly secrets: SigningSecrets['secrets'];
  readonly keys: ChannelKeys;
  /** True when the channel uses certificates of the operator. */
  readonly hasCertificates: boolean;
}

/**
 * Reads the keys of the channel, which `join` opens. Throws ConfigError, and OperatorError for certificates that cannot be used.
 */
export async function openOtherNodes(
  { config, log, worker, closeLater }: ServerStart,
  { network: { ids }, database }: OpenedParts,
  { life, secrets }: Pick<OtherNodesOptions, 'life' | 'secrets'>,
): Promise<OtherNodes> {
  const { store, isDatabaseShared } = database;
  const exist = isDatabaseShared || worker !== undefined;
  const certificates = exist ? await certificatesOf(config.cluster.tls, log) : undefined;
  closeLater(async () => certificates?.close());
  const salt = isDatabaseShared ? await deploymentSalt(store.settings) : undefined;
  const keys = channelKeys(secrets, certificates, salt);
  const hasCertificates = certificates !== undefined;
  return new OtherNodes({ config, log, worker, store, ids, life, secrets, exist, keys, hasCertificates });
}

/**
 * The table and the channel of one server; `close` closes the rest of both. The gateway asks both from its start
 * on; they exist once this node has joined. Their modules are loaded only where there are other nodes.
 */
export class OtherNodes {
  /** The counts of what happens between the nodes. Undefined without other nodes. */
  readonly counts: ClusterCounts | undefined;
  /** Serves the requests that others forward to this node. Until it is set, they get 503. */
  serveForwarded: HttpApp['serveForwarded'] | undefined;
  readonly #options: OtherNodesOptions;
  #table: NodeTable | undefined;
  #channel: PeerChannel | undefined;
  #closeTable: (() => Promise<void>) | undefined;
  #serveQuestion: ServeQuestion | undefined;
  /** The list of nodes before this one has joined. */
  #alone: () => ShownNode[] = () => [];

  constructor(options: OtherNodesOptions) {
    this.#options = options;
    this.counts = options.exist ? new ClusterCounts() : undefined;
  }

  /** The table of the lives of all nodes. Undefined before this node has joined, and without other nodes. */
  get table(): NodeTable | undefined {
    return this.#table;
  }

  /** The nodes to which requests are forwarded. Undefined while none is to be. */
  get peers(): ForwardingPeers | undefined {
    return this.#channel?.peers;
  }

  /** All nodes, with this one. */
  nodes(): ShownNode[] {
    return this.#table?.list() ?? this.#alone();
  }

  /** The functions that a gateway asks about the others. They know no others before this node has joined. */
  forGateway(): OthersOptions {
    const { exist, config } = this.#options;
    const openElsewhere: OthersOptions['openElsewhere'] = (...instance) => {
      if (this.#channel === undefined) throw new Error('instances are opened once the channel is');
      return this.#channel.openInstance(...instance);
    };
    const decideSession: OthersOptions['decideSession'] = async (row) => {
      if (this.#table === undefined) throw new Error('sessions are recovered once this node has joined');
      return this.#table.decideSession(row);
    };
    return {
      leasesPrograms: exist,
      decideSession: exist ? decideSession : undefined,
      openElsewhere: exist && config.cluster.forward ? openElsewhere : undefined,
      successorOf: (key) => this.#table?.successorOf(key),
      mayBeStoredLater: (life) => this.#table?.mayBeStoredLater(life),
      isCutOff: () => this.#table?.isCutOff ?? false,
      untilLifeKnown: () => this.#table?.untilLifeKnown(),
    };
  }

  /** Opens the channel, joins the members, and shares limits, logins and tasks with them. Throws OperatorError. */
  async join(gateway: Gateway, auth: Auth, signal: AbortSignal | undefined): Promise<void> {
    const { config, exist, log, ids, worker, life, keys, hasCertificates } = this.#options;
    const report = () => ({
      ...gateway.internals.activity(),
      isDraining: gateway.internals.readiness.isLeaving,
    });
    const since = new Date(systemClock.wall()).toISOString();
    const own = { id: ids.node, life, version: VERSION, address: undefined, since, state: 'live' } as const;
    this.#alone = () => [{ ...own, ...report() }];
    if (!exist) return;
    const { openPeerChannel } = await import('./peer-channel.ts');
    this.#channel = await openPeerChannel({
      config,
      nodeId: ids.node,
      life,
      log,
      keys,
      hasCertificates,
      join: (own) => this.#joinTable(own, gateway, report, signal),
      audit: auth.audit,
      host: gateway.internals.host,
      hasSession: gateway.internals.hasSession,
      counts: this.counts,
      socket: worker && workerSocket(worker, worker.number),
      database: databaseHost(config.databaseUrl, config.folder),
      serve: (...received) => this.#serve(...received),
    });
    const { peers } = this.#channel;
    if (peers === undefined) return;
    const { shareWithPeers } = await import('../../cluster/sharing/share-with-peers.ts');
    this.#serveQuestion = shareWithPeers({
      limiter: config.authEnabled ? auth.limiter : undefined,
      logins: auth.throttle,
      calls: auth.callLimiter,
      process: life,
      tasks: gateway.mcp.tasks,
      peers,
      nodes: () => this.nodes(),
      clock: systemClock,
    });
  }

  /** Other nodes run the programs of any node from now on, while other calls finish here. Call it when the gateway drains. */
  handOver(): void {
    void this.#table?.readAgain();
  }

  async untilIdle(timeoutMs: number): Promise<void> {
    await this.#channel?.untilIdle(timeoutMs);
  }

  /** Ends the life of this node for the others. */
  async leave(): Promise<void> {
    const { ids, worker } = this.#options;
    await this.#table?.leave(readByWorkers(this.#table, ids.gateway, worker));
  }

  /** Requests under way fail; the listener waits for its last answers at most this long. Idempotent. */
  async closeChannel(lastAnswersMs: number): Promise<void> {
    await this.#channel?.close(lastAnswersMs);
  }

  /** Closes the channel, then leaves the members. May be called again. */
  async close(): Promise<void> {
    await this.closeChannel(0);
    await this.#closeTable?.();
  }

  async #joinTable(
    own: ReachableLife,
    gateway: Gateway,
    report: () => Pick<ShownNode, 'programs' | 'calls' | 'isDraining'>,
    signal: AbortSignal | undefined,
  ): Promise<NodeTable> {
    const { config, store, log, ids, worker, secrets, keys } = this.#options;
    const { PeerPings } = await import('../../cluster/channel/peer-pings.ts');
    const { NodeTable } = await import('../../cluster/node-table/node-table.ts');
    const { beginLife, leasedPrograms } = gateway.internals;
    const pings = new PeerPings(keys, systemClock, () => table.life);
    const table = new NodeTable({
      own,
      secrets,
      pings,
      report,
      counts: this.counts,
      nodes: store.nodes,
      settings: store.settings,
      version: VERSION,
      clock: systemClock,
      uptime: machineUptimeMs,
      addressOf: worker && addressesOfWorkers(worker, ids.gateway),
      sessionIdleMs: config.sessions.idleMs,
      programs: leasedPrograms && { store: store.programs, host: leasedPrograms },
      takesNoPrograms: !config.cluster.programs,
      onNextLife: (next) =>
        beginLife(next).catch((error) => log.error({ err: error }, 'sessions of the ended life remain')),
      onNotice: (line) => log.warn(line),
    });
    this.#closeTable = async () => {
      pings.close();
      await table.close();
    };
    signal?.throwIfAborted();
    await table.join();
    this.#table = table;
    return table;
  }

  #serve(request: IncomingMessage, response: ServerResponse, caller: ForwardedCaller): void {
    if (this.#serveQuestion?.(request, response, caller.principal)) return;
    if (this.serveForwarded !== undefined) this.serveForwarded(request, response, caller);
    else response.writeHead(503, { 'Retry-After': '1', 'Content-Length': '0' }).end();
  }
}

/**
 * The settings `cluster.tls`, all three or none. Undefined without certificates of the operator. Throws ConfigError, and
 * OperatorError for files that cannot be used.
 */
async function certificatesOf(
  { cert, key, ca }: Config['cluster']['tls'],
  log: Pick<Logger, 'warn'>,
): Promise<PeerCertificates | undefined> {
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined || ca === undefined)
    throw new ConfigError('cluster.tls: cert, key and ca belong together; set all three or none');
  const { readCertificates } = await import('../../cluster/channel/trust/peer-certificates.ts');
  const onWarning = (line: string) => log.warn(line);
  return readCertificates({ cert, key, ca }, { clock: systemClock, onWarning });
}

/** The time since the start of the machine, in ms, that of suspensions included; by the wall clock where the system does not say. */
function machineUptimeMs(): number {
  try {
    return uptime() * 1_000;
  } catch {
    return systemClock.wall();
  }
}
