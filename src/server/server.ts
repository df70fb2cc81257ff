// The composition root: config -> ports -> storage -> authentication -> gateway -> koa app. running-server.ts
// closes them in reverse order. The command line handles signals and exit codes.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import { merge, NEVER, Subject, share } from 'rxjs';
import type { FirstPassword } from '../auth/accounts/first-password.ts';
import { type Secrets, secretId } from '../auth/secrets/secrets.ts';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { LIMITS } from '../domain/limits.ts';
import { memoryBounds, TLS_CONNECTION_BYTES } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import type { OwnWorker, ServingGateway } from '../domain/nodes/workers.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { HttpApp } from '../http/app.ts';
import { describeDatabase } from '../persistence/database-url.ts';
import { fileExposureOf, loadStore } from '../persistence/open-store.ts';
import { type RevisionChange, watchRevision } from '../persistence/revision-watch.ts';
import { NO_SPACE } from '../persistence/store-errors.ts';
import {
  type RegistryContents,
  RegistryFileError,
  readRegistryFile,
} from '../registry/files/registry-file.ts';
import { readCatalogue } from '../templates/catalogue.ts';
import { namesCollector } from '../tracing/tracing.ts';
import { configuredApp } from './configured-app.ts';
import { configuredGateway } from './configured-gateway.ts';
import { watchClockSkew } from './nodes/clock-skew.ts';
import { lockNodeOfFile, lockNodeOfServer } from './nodes/node-lock.ts';
import { openOtherNodes } from './nodes/other-nodes.ts';
import { countsOf, foreignGrants, foreignPrograms, logDatabase, syncLines } from './operator-lines.ts';
import { programUser } from './program-user.ts';
import { type Close, closeOrLog, type RunningServer, runningServer } from './running-server.ts';
import { openServerAuth } from './server-auth.ts';
import { lastClientFile } from './sockets/file-limit.ts';
import { type OpenPorts, Ports, publicTlsOf } from './sockets/ports.ts';
import { openStorage, reaperPipeOf } from './storage.ts';

export type { RunningServer } from './running-server.ts';

const READY_CHECK_MS = 50;

export interface ServerOptions {
  /** Undefined when this process is the whole gateway. */
  readonly worker?: OwnWorker | undefined;
  readonly log?: Logger;
  /** Called with the gateway once the ports are open, before its first event and its first program. */
  readonly onGateway?: (gateway: Gateway) => void;
  /**
   * Gets lines for the operator, such as the first password, at once, because the start may fail later. They are
   * never logged.
   */
  readonly onNotice?: (line: string) => void;
  /** True when a terminal shows the notices. Default: false, and the first password is written to a file. */
  readonly isTerminal?: boolean;
  /** The first password of a database without an admin. Default: it is made once the database is open. */
  readonly firstPassword?: FirstPassword | undefined;
  /** Aborts the start, which rejects with the reason after the current step. No effect after the last step. */
  readonly signal?: AbortSignal;
}

/**
 * Starts a gateway. Resolves when it listens and has applied its registry file; instances may still be starting.
 * Rejects with StoreOpenError, ConfigError, ListenError or RegistryFileError, and leaves nothing running.
 */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<RunningServer> {
  /** The close functions of the open parts, newest first. */
  const opened: Close[] = [];
  try {
    return await start(config, options, opened);
  } catch (error) {
    for (const close of opened) await closeOrLog(close, options.log);
    throw error;
  }
}

async function start(config: Config, options: ServerOptions, opened: Close[]): Promise<RunningServer> {
  const { log = pino({ level: 'silent' }), worker, signal } = options;
  const closeLater = (close: Close): void => {
    opened.unshift(close);
    signal?.throwIfAborted();
  };
  const isFirst = worker === undefined || worker.number === 1;
  const memoryBytes = Math.floor((config.memoryBytes ?? availableMemoryBytes()) / (worker?.count ?? 1));
  const begun: Start = { config, options, log, worker, isFirst, memoryBytes, closeLater };
  await startTraces(begun);
  const files = await readFiles(begun);
  const network = await bindPorts(begun);
  const database = await openDatabase(begun, network.ids.lock);
  const accounts = await openAccounts(begun, network, database);
  const core = await makeGateway(begun, { files, network, database, accounts });
  const app = makeApp(begun, { network, database, accounts, core });
  signal?.throwIfAborted();
  const served = await serve(begun, { files, network, database, accounts, core, app });
  // This does not begin earlier, because a start without its database reports that itself.
  const databaseLog = logDatabase(database.storeChanges$, log);
  databaseLog.add(watchClockSkew(database.store, log));
  const { gateway, others } = core;
  return runningServer({
    ...served,
    gateway,
    gatewayId: network.ids.gateway,
    secretIds: core.secrets.map(secretId),
    auth: accounts.auth,
    others,
    app,
    databaseLog,
    opened,
    graceMs: config.graceMs,
    log,
    noteChange: database.noteChange,
    store: database.store,
  });
}

/** The parts that every phase of the start uses. */
interface Start {
  readonly config: Config;
  readonly options: ServerOptions;
  readonly log: Logger;
  readonly worker: OwnWorker | undefined;
  /** True for the first worker, which applies changes for all of them. */
  readonly isFirst: boolean;
  /** Memory that this process may use. */
  readonly memoryBytes: number;
  /** Takes the close function of each part that is opened. Throws when the start was aborted. */
  readonly closeLater: (close: Close) => void;
}

type Files = Awaited<ReturnType<typeof readFiles>>;
type Network = Awaited<ReturnType<typeof bindPorts>>;
type OpenedDatabase = Awaited<ReturnType<typeof openDatabase>>;
type ServerAccounts = Awaited<ReturnType<typeof openAccounts>>;
type Core = Awaited<ReturnType<typeof makeGateway>>;

/** Sends traces if the standard variables name a collector. */
async function startTraces({ log, closeLater }: Start): Promise<void> {
  if (!namesCollector(process.env)) return;
  const { startOtlp } = await import('../tracing/otlp.ts');
  const otlp = await startOtlp(process.env, log);
  closeLater(async () => otlp?.close());
}

/** Reads the files before anything is opened: an unreadable document must not leave a half-started gateway. */
async function readFiles(begun: Start) {
  const { config, options } = begun;
  const document = await readDocument(begun);
  const user = config.programUser === undefined ? undefined : await programUser(config.programUser);
  // The store is loaded before a port is open, on which requests would wait for it.
  await loadStore(config.databaseUrl, config.folder);
  options.signal?.throwIfAborted();
  return { document, programUser: user };
}

/** Reads the registry file. A worker that joins the others can do without: the database has what the last good one said. */
async function readDocument({ config, options, worker, log, isFirst, memoryBytes }: Start) {
  if (config.registryFile === undefined || !isFirst) return undefined;
  try {
    return await readRegistryFile(config.registryFile, { memoryBytes, signal: options.signal });
  } catch (thrown) {
    if (worker?.gateway === undefined || !(thrown instanceof RegistryFileError)) throw thrown;
    log.warn(`${thrown.message}; its instances are left unchanged`);
    return undefined;
  }
}

/**
 * Opens the ports before anything is created: an accidental second start must create no database, first admin or child process.
 */
async function bindPorts({ config, log, worker, memoryBytes, closeLater }: Start) {
  const tls = await publicTlsOf(config, log);
  closeLater(async () => tls?.close());
  const bounds = memoryBounds(memoryBytes, tls && TLS_CONNECTION_BYTES);
  const connections = { ...bounds.connections, files: lastClientFile() };
  const ports = new Ports(config, { bounds: connections, log, tls, kept: worker?.gateway?.ports });
  // The others serve until this worker is ready: none of their clients gets a connection to one that starts.
  const early = worker?.gateway === undefined ? await ports.open(closeLater) : undefined;
  const ids = idsOf(config, worker, early?.listeners.urls[0]);
  return { ports, early, ids, unreadBounds: bounds.unreadAnswers };
}

/** The ids of this process; `url`: its first port. `lock`: the first worker holds the lock of the gateway as a whole. */
function idsOf({ nodeId, nodeHost }: Config, worker: OwnWorker | undefined, url = '') {
  const own = nodeHost === undefined ? nodeId : `${nodeHost}:${URL.parse(url)?.port}`;
  const gateway = worker?.gateway?.id ?? own;
  const node = nodeOf(gateway, worker?.number);
  const isFirst = worker === undefined || worker.number === 1;
  return { gateway, node, lock: isFirst ? gateway : node };
}

/** Opens the database as the one process that is this node. */
async function openDatabase({ config, options, log, worker, closeLater }: Start, lockId: string) {
  const { place, file, printable: database } = describeDatabase(config.databaseUrl, config.folder);
  // This happens before the database is opened: a start that is refused must not migrate the database of the gateway that runs.
  if (file !== undefined && existsSync(dirname(file))) {
    const lock = await lockNodeOfFile(file, lockId);
    closeLater(() => lock.release());
  }
  const storage = await openStorage(config, {
    // A worker that joins the others uses their database: one that is gone by now must not be an empty one.
    migrations: worker?.gateway === undefined ? 'apply' : 'require',
    ...(worker !== undefined && { advice: 'put it back, or start the gateway again' }),
    signal: options.signal,
    onNotice: (line) => log.info(line),
    onWarning: (line) => log.warn(line),
    onRefusal: (reason, isOutOfSpace) =>
      log.error({ reason }, isOutOfSpace ? NO_SPACE : 'a change of the database failed'),
  });
  const { store } = storage;
  closeLater(() => store.close());
  if (worker?.gateway !== undefined) requireSecrets(worker.gateway, (await storage.signingSecrets()).secrets);
  const exposure = file === undefined ? undefined : await fileExposureOf(file);
  const isDatabaseShared = place === 'server';
  if (isDatabaseShared) {
    const onNotice = (line: string) => log.warn(line);
    const lock = await lockNodeOfServer(store.settings, lockId, {
      database,
      onNotice,
      signal: options.signal,
    });
    closeLater(() => lock.release());
  }
  // All subscribers share one watch. No other process writes a store in memory.
  const known$ = new Subject<RevisionChange>();
  return {
    storage,
    store,
    exposure,
    isDatabaseShared,
    // The lock of the node shows that every earlier life of it is over. A database in memory ends with the process.
    outlivesProcess: isDatabaseShared || file !== undefined,
    storeChanges$: store.kind === 'memory' ? NEVER : merge(watchRevision(store), known$).pipe(share()),
    noteChange: () => known$.next({ kind: 'changed' }),
  };
}

/** Opens authentication, and begins to make the first admin. */
async function openAccounts(
  { config, options, log, closeLater }: Start,
  { ports }: Network,
  database: OpenedDatabase,
) {
  const { storage, storeChanges$ } = database;
  const { isTerminal = false, firstPassword } = options;
  const { address } = ports;
  const serverAuth = await openServerAuth(config, storage, { storeChanges$, log, isTerminal, address });
  closeLater(serverAuth.close);
  // Another thread hashes the password, which takes 0.2 s; the gateway and its app are made meanwhile. `serve` awaits it.
  const firstAdmin = serverAuth.ensureAdmin(firstPassword);
  const settled = Promise.allSettled([firstAdmin]);
  closeLater(() => settled);
  return { serverAuth, auth: serverAuth.auth, firstAdmin };
}

/** Makes the gateway, and joins the other nodes. */
async function makeGateway(
  { config, options, log, worker, memoryBytes, closeLater }: Start,
  parts: { files: Files; network: Network; database: OpenedDatabase; accounts: ServerAccounts },
) {
  const { programUser: user } = parts.files;
  const { ids, ports } = parts.network;
  const { storage, store, storeChanges$, isDatabaseShared, outlivesProcess } = parts.database;
  const { auth } = parts.accounts;
  const catalogue = await readCatalogue(config.templatesFolder);
  const life = newLife();
  const { secrets } = await storage.signingSecrets();
  const others = await openOtherNodes({
    config,
    store,
    log,
    worker,
    life,
    secrets,
    isDatabaseShared,
    closeLater,
    nodeId: ids.node,
    gatewayId: ids.gateway,
  });
  const reaperPipe = await reaperPipeOf(config, ids.lock);
  await nextTurn(); // the gateway and its app are made in a turn each
  const gateway = configuredGateway({
    config,
    storage,
    storeChanges$,
    auth,
    address: ports.address,
    others,
    definitions: catalogue.templates,
    life,
    secrets,
    reaperPipe,
    log,
    memoryBytes,
    programUser: user,
    gatewayId: ids.gateway,
    worker: worker?.number,
    outlivesProcess,
  });
  closeLater(() => gateway.close({ graceMs: 0 }));
  await nextTurn();
  closeLater(() => others.close());
  await others.join(gateway, auth, options.signal);
  options.signal?.throwIfAborted();
  return { gateway, others, catalogue, secrets };
}

/**
 * Throws ConfigError for a worker that would refuse tokens that the others of its gateway have signed, or sign tokens that they
 * refuse: during a rotation it may know more secrets than they do.
 */
function requireSecrets({ secretIds }: ServingGateway, secrets: Secrets): void {
  const own = secrets.map(secretId);
  const [signing = '', theirs = ''] = [own[0], secretIds[0]];
  if (secretIds.includes(signing) && own.includes(theirs)) return;
  throw new ConfigError(
    'the secret differs from the one that the gateway uses, which still runs: put it back, or start the gateway again',
  );
}

/** Makes the HTTP application; it serves clients from `serve` on, other nodes at once. */
function makeApp(
  { config, log, worker, closeLater }: Start,
  parts: { network: Network; database: OpenedDatabase; accounts: ServerAccounts; core: Core },
): HttpApp {
  const { ports, unreadBounds } = parts.network;
  const { serverAuth, auth } = parts.accounts;
  const { gateway, others, catalogue, secrets } = parts.core;
  const app = configuredApp({
    config,
    log,
    storage: parts.database.storage,
    serverAuth,
    gateway,
    others,
    ports,
    definitions: catalogue.templates,
    worker,
    secrets,
    unreadBounds,
    closeLater,
  });
  others.serveForwarded = app.serveForwarded;
  ports.app = app;
  auth.watchSessions(() => new Set([...gateway.openCallers(), ...app.openCallers()]));
  return app;
}

/** Loads the registry, and serves requests once the first admin exists. */
async function serve(
  { config, options, log, isFirst, closeLater }: Start,
  parts: {
    files: Files;
    network: Network;
    database: OpenedDatabase;
    accounts: ServerAccounts;
    core: Core;
    app: HttpApp;
  },
): Promise<OpenPorts & Pick<RunningServer, 'warnings'>> {
  const { ports, early, ids } = parts.network;
  const { auth, firstAdmin } = parts.accounts;
  const { gateway, catalogue } = parts.core;
  const { exposure } = parts.database;
  options.onGateway?.(gateway);
  const { document } = parts.files;
  // Thousands of instances may take minutes: a closing gateway starts no more of them.
  const endLoading = (): void => void closeOrLog(() => gateway.close({ graceMs: 0 }), log);
  options.signal?.addEventListener('abort', endLoading);
  const loaded = loadRegistry(gateway, isFirst ? { document, isSynced: config.sync.isEnabled } : {}, log);
  loaded.catch(() => undefined); // awaited below
  const { warnings, notices } = await firstAdmin;
  for (const notice of notices) options.onNotice?.(notice);
  ports.serve = parts.app.callback();
  const problems = await loaded.finally(() => {
    options.signal?.removeEventListener('abort', endLoading);
    options.signal?.throwIfAborted();
  });
  if (early === undefined) await untilReady(gateway);
  const { listeners, scrapes } = early ?? (await ports.open(closeLater));
  const otherGrants = isFirst ? await foreignGrants(auth.grants, ports.address).catch(() => []) : [];
  return {
    listeners,
    scrapes,
    warnings: [
      ...config.warnings,
      ...warnings,
      ...(exposure === undefined ? [] : [exposure]),
      ...otherGrants,
      ...foreignPrograms(gateway, ids.gateway),
      ...catalogue.problems.map((problem) => `templates: ${problem}`),
      ...listeners.warnings,
      ...problems,
    ],
  };
}

/** Applies the registry file, and the findings of the sync, to the stored instances. Resolves with one line for each problem. */
async function loadRegistry(
  gateway: Gateway,
  { document, isSynced = false }: { document?: RegistryContents | undefined; isSynced?: boolean },
  log: Logger,
): Promise<string[]> {
  let problems: string[] = [];
  await gateway.internals.load(async () => {
    if (document !== undefined) {
      const report = await gateway.importFile(document);
      log.info({ ...countsOf(report), problems: document.problems.length }, 'registry file applied');
      problems = syncLines('registry file', document.problems, report);
    }
    if (isSynced) {
      const report = await gateway.followSources();
      log.info(countsOf(report), 'deployments synced');
      problems = problems.concat(syncLines('sync', report.warnings, report));
    }
  });
  return problems;
}

/** Resolves when the instances have opened, after `LIMITS.firstOpeningsMs` at the latest. */
async function untilReady(gateway: Pick<Gateway, 'isReady'>): Promise<void> {
  const untilMs = systemClock.now() + LIMITS.firstOpeningsMs;
  while (!gateway.isReady && systemClock.now() < untilMs) await sleep(systemClock, READY_CHECK_MS);
}
