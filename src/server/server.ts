// The composition root: config -> ports -> storage -> authentication -> gateway -> koa app, closed in reverse
// order. The command line handles signals and exit codes.

import { existsSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import { merge, NEVER, Subject, share } from 'rxjs';
import { ClusterCounts } from '../actors/cluster-counts.ts';
import type { Auth } from '../auth/auth.ts';
import type { FirstPassword } from '../auth/first-password.ts';
import { channelKeys } from '../cluster/channel/channel-keys.ts';
import { deploymentSalt } from '../cluster/deployment-key.ts';
import { loneNode } from '../cluster/lone-node.ts';
import type { MemberTable } from '../cluster/member-table.ts';
import type { Member, Members } from '../cluster/members.ts';
import { type Config, isLoopback } from '../config/config.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { programUser } from '../config/program-user.ts';
import { systemClock } from '../domain/clock.ts';
import { memoryBounds } from '../domain/held-bytes.ts';
import { newLife } from '../domain/life.ts';
import { nodeOf, type SharedPrograms } from '../domain/nodes.ts';
import { GatewayAddress } from '../domain/resource.ts';
import { VERSION } from '../domain/version.ts';
import { type WorkerPlace, type WorkerQuestion, workerSocket } from '../domain/workers.ts';
import { Gateway } from '../gateway/gateway.ts';
import { createApp, createStartingApp, type HttpApp } from '../http/app.ts';
import { watchClockSkew } from '../persistence/clock-skew.ts';
import { databaseHost, describeDatabase } from '../persistence/database-url.ts';
import { fileExposureOf } from '../persistence/open.ts';
import { readRegistryFile } from '../persistence/registry-file.ts';
import { type RevisionChange, watchRevision } from '../persistence/revision-watch.ts';
import { FULL } from '../persistence/store-errors.ts';
import { readCatalogue } from '../templates/catalogue.ts';
import { namesCollector } from '../tracing/tracing.ts';
import { Connections } from './connections.ts';
import { logDatabase } from './database-log.ts';
import { type Listeners, openListeners } from './listeners.ts';
import { claimNodeOfFile, claimNodeOfServer } from './node-claim.ts';
import { addressesOfWorkers, readByWorkers } from './other-workers.ts';
import { certificatesOf } from './peer-certificates.ts';
import type { PeerChannel } from './peer-channel.ts';
import { openPortsWhenReady, openScrapes, publicTlsOf } from './ports.ts';
import { authorizationServerOf, connectionsOf, openServerAuth, signInOf } from './server-auth.ts';
import type { ServeQuestion } from './share-with-peers.ts';
import { countsOf, foreignGrants, foreignPrograms, linesOf } from './start-lines.ts';
import { openStorage, reaperPipeOf } from './storage.ts';

export interface RunningServer extends Pick<Listeners, 'urls' | 'addresses'> {
  /** One line each: problems that did not prevent the start. */
  readonly warnings: readonly string[];
  readonly gateway: Gateway;
  readonly auth: Auth;
  /** The id of the node, without the number of a worker. */
  readonly gatewayId: string;
  /** Undefined without other nodes. */
  readonly members: Pick<MemberTable, 'life'> | undefined;
  /** The lives of the workers that run, and of one whose process is gone: others may continue its sessions. */
  seeProcesses(running: readonly string[], gone: string | undefined): void;
  /** Answers a question of another worker. */
  answer(question: WorkerQuestion): Promise<string>;
  /** Readiness fails from now on and connections are closed after their next answer; everything is served until `close`. */
  announceClose(): void;
  /**
   * Ends in order: readiness fails, new calls are refused, calls in flight finish within the grace time,
   * children stop, event streams end, connections close, the database closes. Idempotent.
   */
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Undefined: this process is the whole gateway. */
  readonly worker?: WorkerPlace | undefined;
  readonly log?: Logger;
  /** Called with the gateway once the ports are open, before its first event and its first program. */
  readonly onGateway?: (gateway: Gateway) => void;
  /** Gets lines for the operator, such as the first password, at once, because the start may fail later. They are never logged. */
  readonly onNotice?: (line: string) => void;
  /** True when a terminal shows the notices. Default false: the first password is written to a file. */
  readonly isTerminal?: boolean;
  /** For a database without an admin. Default: it is made once the database is open. */
  readonly firstPassword?: FirstPassword | undefined;
  /** Joins the members of the deployment, once the other nodes can reach this one. Default: by the table of a database server. */
  readonly joinMembers?: (own: Member) => Members | Promise<Members>;
  /** Aborts the start, which rejects with the reason after the current step. No effect after the last step. */
  readonly signal?: AbortSignal;
}

/** Longest wait for answers that are still being sent after the end of all calls, in ms. */
const LAST_ANSWERS_MS = 2_000;

/**
 * Starts a gateway. Resolves when it listens and has applied its registry file; instances may still be starting.
 * Rejects with StoreOpenError, ConfigError, ListenError or RegistryFileError, and leaves nothing running.
 */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<RunningServer> {
  /** Close functions of what is open, newest first. */
  const opened: (() => Promise<unknown>)[] = [];
  try {
    return await start(config, options, opened);
  } catch (error) {
    for (const close of opened) await closeQuietly(close, options.log);
    throw error;
  }
}

async function start(
  config: Config,
  options: ServerOptions,
  opened: (() => Promise<unknown>)[],
): Promise<RunningServer> {
  const onUndo = (close: () => Promise<unknown>): void => {
    opened.unshift(close);
    options.signal?.throwIfAborted();
  };
  const { log = pino({ level: 'silent' }), isTerminal = false, worker } = options;
  const isFirst = worker === undefined || worker.number === 1;
  // Sends traces if the standard variables name a collector.
  const otlp = namesCollector(process.env)
    ? await (await import('../tracing/otlp.ts')).startOtlp(process.env, log)
    : undefined;
  onUndo(async () => otlp?.close());
  // Read before anything is opened: an unreadable document must not leave a half-started gateway.
  const document =
    config.registryFile === undefined ? undefined : await readRegistryFile(config.registryFile);
  const user = config.programUser === undefined ? undefined : await programUser(config.programUser);
  options.signal?.throwIfAborted();
  // Bound before anything is created: an accidental second start must create no database, first admin or child process.
  let serve = createStartingApp();
  const memoryBytes = Math.floor((config.memoryBytes ?? availableMemoryBytes()) / (worker?.count ?? 1));
  const bounds = memoryBounds(memoryBytes);
  const connections = new Connections({
    ...bounds.connections,
    perAddress: config.connectionsPerAddress,
    headerBytes: config.requestHeaderBytes,
    trustedProxies: config.trustedProxies,
  });
  const tls = await publicTlsOf(config, log);
  onUndo(async () => tls?.close());
  const answer: RequestListener = (request, response) => serve(request, response);
  let metrics: HttpApp['metrics'] | undefined;
  let ports = config.listeners.map(({ port }) => port);
  const address = new GatewayAddress(config.publicUrl, () => ports, tls === undefined ? 'http' : 'https');
  const openPorts = async () => {
    const listeners = await openListeners(config, answer, { connections, tls });
    ports = listeners.urls.map((opened) => Number(URL.parse(opened)?.port || 80));
    onUndo(() => listeners.close(0));
    const scrapes = await openScrapes(config, connections, () => metrics, log);
    onUndo(async () => scrapes?.close(0));
    return { listeners, scrapes };
  };
  // The others serve until this worker is ready: none of their clients gets a connection to one that starts.
  const early = worker?.gateway === undefined ? await openPorts() : undefined;
  const { nodeHost } = config;
  const [url = ''] = early?.listeners.urls ?? [];
  const ownId = nodeHost === undefined ? config.nodeId : `${nodeHost}:${URL.parse(url)?.port}`;
  const gatewayId = worker?.gateway ?? ownId;
  const nodeId = nodeOf(gatewayId, worker?.number);
  // The first worker holds the claim of the gateway as a whole.
  const claimId = isFirst ? gatewayId : nodeId;
  const { kind, file } = describeDatabase(config.databaseUrl, config.folder);
  // Before the database is opened: a start that is refused must not migrate the database of the gateway that runs.
  if (file !== undefined && existsSync(dirname(file))) {
    const claim = await claimNodeOfFile(file, claimId);
    onUndo(() => claim.release());
  }
  const storage = await openStorage(config, {
    migrations: 'apply',
    onNotice: (line) => log.info(line),
    onWarning: (line) => log.warn(line),
    onRefusal: (reason, isFull) => log.error({ reason }, isFull ? FULL : 'a change of the database failed'),
  });
  const { store } = storage;
  onUndo(() => store.close());
  const exposure = file === undefined ? undefined : await fileExposureOf(file);
  // No other process can reach a database in memory.
  const isOnServer = kind !== 'memory' && kind !== 'sqlite';
  const hasOthers = isOnServer || worker !== undefined;
  if (isOnServer) {
    const claim = await claimNodeOfServer(store.settings, claimId, { onNotice: (line) => log.warn(line) });
    onUndo(() => claim.release());
  }
  // One watch for all subscribers. No other process writes a store in memory.
  const known$ = new Subject<RevisionChange>();
  const storeChanges$ = store.kind === 'memory' ? NEVER : merge(watchRevision(store), known$).pipe(share());
  const serverAuth = await openServerAuth(config, storage, { storeChanges$, log, isTerminal, address });
  const { auth } = serverAuth;
  onUndo(serverAuth.close);
  // Another thread hashes the password, which takes 0.2 s; the gateway and its app are made meanwhile. Awaited below.
  const firstAdmin = serverAuth.ensureAdmin(options.firstPassword);
  const settled = Promise.allSettled([firstAdmin]);
  onUndo(() => settled);
  const catalogue = await readCatalogue(config.templatesFolder);
  const largestBody = config.requestBodyBytes;
  const { totalBytes, ownerBytes } = bounds.requests;
  const life = newLife();
  const { secrets } = await storage.signingSecrets();
  const certificates = hasOthers ? await certificatesOf(config.cluster.tls, log) : undefined;
  onUndo(async () => certificates?.close());
  const salt = isOnServer && certificates === undefined ? await deploymentSalt(store.settings) : undefined;
  const keys = channelKeys(secrets, certificates, salt);
  let table: MemberTable | undefined;
  const clusterCounts = hasOthers ? new ClusterCounts() : undefined;
  let channel: PeerChannel | undefined;
  let shared: SharedPrograms | undefined;
  const reaperPipe = await reaperPipeOf(config, claimId);
  await nextTurn(); // the gateway and its app are made in a turn each
  const gateway = new Gateway(store, {
    definitions: catalogue.templates,
    storeChanges$,
    nodeId: gatewayId,
    worker: worker?.number,
    life,
    sharePrograms: hasOthers
      ? (programs) => {
          shared = programs;
        }
      : undefined,
    ...{ isAnyDefault: storage.isAnyDefault, protectedPaths: storage.protectedPaths },
    hasEphemeralNodes: config.cluster.ephemeralNodes,
    policy: config.defaultPolicy,
    maxCallMs: config.maxCallMs,
    graceMs: config.graceMs,
    stateKeys: [Buffer.from(secrets[0]), ...secrets.slice(1).map((secret) => Buffer.from(secret))],
    // Nothing is served before this node has joined the members.
    decideOwner:
      hasOthers && options.joinMembers === undefined
        ? async (row) => table?.decideOwner(row) ?? { do: 'end' }
        : undefined,
    openElsewhere:
      hasOthers && config.cluster.forward
        ? (...instance) => {
            if (channel === undefined) throw new Error('instances are opened once the channel is');
            return channel.openInstance(...instance);
          }
        : undefined,
    ...{ successorOf: (key) => table?.successorOf(key), mayStore: (life) => table?.mayStore(life) },
    isCutOff: () => table?.isCutOff ?? false,
    // The claim of the node shows that every earlier life of it is over. A database in memory ends with the process.
    sessions: { ...config.sessions, recover: config.cluster.recover && (isOnServer || file !== undefined) },
    memoryBytes,
    // One body of the largest size always fits.
    requestBounds: {
      totalBytes: Math.max(totalBytes, largestBody),
      ownerBytes: Math.max(ownerBytes, largestBody),
    },
    ...{ aggregate: config.aggregate, deniedNetworks: config.deniedNetworks, passEnv: config.passEnv },
    ...{ callLimiter: auth.callLimiter, programUser: user },
    reaperPipe:
      reaperPipe === undefined
        ? undefined
        : {
            path: reaperPipe,
            onNotice: (line) => log.info(line),
            onWarning: (line) => log.error(line),
          },
    discovery: {
      ...{ env: process.env, namespace: config.sync.namespace },
      registryFile: config.registryFile,
      onNotice: (line) => log.warn(line),
    },
    connections: connectionsOf(config, storage, address, () => table),
    changedCallers$: auth.changed$,
    onFault: (error) => log.error({ err: error }, 'an MCP request failed'),
  });
  onUndo(() => gateway.close({ graceMs: 0 }));
  await nextTurn();
  let app: HttpApp | undefined;
  const report = () => ({ ...gateway.activity(), isDraining: gateway.readiness.isLeaving });
  let nodes = loneNode({ id: nodeId, life, version: VERSION }, systemClock, report);
  // Loaded only where there are other nodes.
  const join = async (own: Member): Promise<MemberTable> => {
    const { PeerProber } = await import('../cluster/channel/peer-prober.ts');
    const { MemberTable } = await import('../cluster/member-table.ts');
    const prober = new PeerProber({ keys, clock: systemClock, life: () => members.life });
    const members = new MemberTable({
      ...{ nodes: store.nodes, settings: store.settings, own, version: VERSION, secrets, prober, report },
      ...{
        clock: systemClock,
        counts: clusterCounts,
        addressOf: worker && addressesOfWorkers(worker, gatewayId),
      },
      sessionIdleMs: config.sessions.idleMs,
      programs: shared && { store: store.programs, host: shared },
      takesNoPrograms: !config.cluster.programs,
      onNextLife: (next) =>
        gateway
          .beginLife(next)
          .catch((error) => log.error({ err: error }, 'sessions of the ended life remain')),
      onNotice: (line) => log.warn(line),
    });
    onUndo(async () => {
      prober.close();
      await members.close();
    });
    await members.join();
    nodes = () => members.list();
    table = members;
    return members;
  };
  const joinMembers = options.joinMembers ?? (hasOthers ? join : undefined);
  let serveQuestion: ServeQuestion | undefined;
  channel =
    joinMembers === undefined
      ? undefined
      : await (await import('./peer-channel.ts')).openPeerChannel({
          ...{ config, nodeId, life, log, keys, audit: auth.audit, host: gateway.host, join: joinMembers },
          counts: clusterCounts,
          ...{ hasSession: gateway.hasSession, socket: worker && workerSocket(worker, worker.number) },
          hasCertificates: certificates !== undefined,
          database: databaseHost(config.databaseUrl, config.folder),
          serve: (request, response, caller) => {
            if (serveQuestion?.(request, response, caller.principal)) return;
            if (app === undefined)
              response.writeHead(503, { 'Retry-After': '1', 'Content-Length': '0' }).end();
            else app.serveForwarded(request, response, caller);
          },
        });
  onUndo(async () => channel?.close(0));
  if (channel?.owners !== undefined) {
    const { shareWithPeers } = await import('./share-with-peers.ts');
    serveQuestion = shareWithPeers({
      ...{ limiter: config.authEnabled ? auth.limiter : undefined, logins: auth.throttle },
      ...{ calls: auth.callLimiter, process: life, tasks: gateway.mcp.tasks },
      owners: channel.owners,
      nodes: () => nodes(),
    });
  }
  const signIn = signInOf(config, address);
  const authorizationServer = signIn?.hasOwnServer
    ? authorizationServerOf(config, storage, {
        ...{ address, auth, keys: serverAuth.keys, secrets, log },
        ...{ assertions: serverAuth.assertions, providers: serverAuth.providers },
      })
    : undefined;
  onUndo(async () => authorizationServer?.close());
  app = createApp(gateway, {
    ...config,
    owners: channel?.owners,
    clusterCounts,
    worker,
    nodes: () => nodes(),
    signIn,
    authorizationServer,
    auth,
    mcp: gateway.mcp,
    definitions: catalogue.templates,
    settings: config.rows,
    isPublic: config.authEnabled && config.listeners.some(({ host }) => !isLoopback(host)),
    maxBodyBytes: largestBody,
    unreadBounds: bounds.unreadAnswers,
    connections,
    log,
  });
  metrics = app.metrics;
  auth.watchSessions(() => new Set([...gateway.openCallers(), ...app.openCallers()]));
  options.signal?.throwIfAborted();
  options.onGateway?.(gateway);
  const problems: string[] = [];
  const loaded = gateway.load(async () => {
    if (document !== undefined && isFirst) {
      const report = await gateway.importFile(document);
      log.info({ ...countsOf(report), problems: document.problems.length }, 'registry file applied');
      problems.push(...linesOf('registry file', document.problems, report));
    }
    if (config.sync.isEnabled && isFirst) {
      const report = await gateway.followDeployments();
      log.info(countsOf(report), 'deployments synced');
      problems.push(...linesOf('sync', report.warnings, report));
    }
  });
  loaded.catch(() => undefined); // awaited below
  const { warnings, notices } = await firstAdmin;
  for (const notice of notices) options.onNotice?.(notice);
  serve = app.callback();
  await loaded;
  const { listeners, scrapes } = early ?? (await openPortsWhenReady(gateway, openPorts));
  const otherGrants = isFirst ? await foreignGrants(auth.grants, address).catch(() => []) : [];
  // Not earlier: a start without its database reports this itself.
  const databaseLog = logDatabase(storeChanges$, log);
  databaseLog.add(watchClockSkew(store, log));

  const close = async (): Promise<void> => {
    gateway.readiness.announceClose();
    void table?.refresh(true); // it drains: programs of any node go on elsewhere while other calls finish here
    // It is not ready and refuses new calls from now on.
    const drained = Promise.all([gateway.close(), channel?.untilIdle(config.graceMs)]);
    // Connections are accepted until the calls have ended: clients answer requests of servers on further connections.
    listeners.drain();
    try {
      await drained;
    } finally {
      databaseLog.unsubscribe();
      app.closeStreams();
      // The audit log is closed after the last answer, so that it contains the entry of that answer.
      await closeQuietly(() => listeners.close(LAST_ANSWERS_MS), log);
      // A request of another node that arrives meanwhile is answered that its session has moved; after the close it would be lost.
      await closeQuietly(async () => table?.leave(readByWorkers(table, gatewayId, worker)), log);
      await closeQuietly(async () => channel?.close(LAST_ANSWERS_MS), log);
      await closeQuietly(async () => scrapes?.close(LAST_ANSWERS_MS), log);
      for (const last of opened) await closeQuietly(last, log);
    }
  };
  let closed: Promise<void> | undefined;
  return {
    urls: listeners.urls,
    addresses: listeners.addresses,
    warnings: [
      ...config.warnings,
      ...warnings,
      ...(exposure === undefined ? [] : [exposure]),
      ...otherGrants,
      ...foreignPrograms(gateway, gatewayId),
      ...catalogue.problems.map((problem) => `templates: ${problem}`),
      ...listeners.warnings,
      ...problems,
    ],
    gateway,
    auth,
    gatewayId,
    members: table,
    seeProcesses: (running, gone) => void table?.processes(running, gone),
    answer: async (question) => {
      if (question.kind === 'metrics') return app.ownMetrics(question);
      if (question.kind === 'members') return (await table?.refresh(true)) ?? '';
      known$.next({ kind: 'changed' });
      await gateway.catchUp();
      return '';
    },
    announceClose: () => {
      gateway.readiness.announceClose();
      listeners.drain();
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Logs an error: one part that cannot be closed must not leave the others open. */
async function closeQuietly(close: () => Promise<unknown>, log: Logger | undefined): Promise<void> {
  try {
    await close();
  } catch (error) {
    log?.warn({ err: error }, 'a part of the gateway could not be closed');
  }
}
