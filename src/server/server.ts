// The composition root: config -> ports -> storage -> authentication -> gateway -> koa app. running-server.ts
// closes them in reverse order. The command line handles signals and exit codes.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import { secretId } from '../auth/secrets/secrets.ts';
import type { Config } from '../config/config.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { LIMITS } from '../domain/limits.ts';
import { newLife } from '../domain/nodes/life.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { HttpApp } from '../http/app.ts';
import type { RegistryContents } from '../registry/files/registry-file.ts';
import { readCatalogue } from '../templates/catalogue.ts';
import { configuredApp } from './configured-app.ts';
import { configuredGateway } from './configured-gateway.ts';
import { watchClockSkew } from './nodes/clock-skew.ts';
import { openOtherNodes } from './nodes/other-nodes.ts';
import {
  bindPorts,
  type Close,
  type Network,
  type OpenedDatabase,
  openAccounts,
  openDatabase,
  readFiles,
  type ServerAccounts,
  type ServerFiles,
  type ServerOptions,
  type ServerStart,
  startTraces,
} from './opened-parts.ts';
import { countsOf, foreignGrants, foreignPrograms, logDatabase, syncLines } from './operator-lines.ts';
import { closeOrLog, type RunningServer, runningServer } from './running-server.ts';
import type { OpenPorts } from './sockets/ports.ts';
import { reaperPipeOf } from './storage.ts';

export type { ServerOptions } from './opened-parts.ts';
export type { RunningServer } from './running-server.ts';

const READY_CHECK_MS = 50;

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
  const begun: ServerStart = { config, options, log, worker, isFirst, memoryBytes, closeLater };
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

type Core = Awaited<ReturnType<typeof makeGateway>>;

/** Makes the gateway, and joins the other nodes. */
async function makeGateway(
  { config, options, log, worker, memoryBytes, closeLater }: ServerStart,
  parts: { files: ServerFiles; network: Network; database: OpenedDatabase; accounts: ServerAccounts },
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

/** Makes the HTTP application; it serves clients from `serve` on, other nodes at once. */
function makeApp(
  { config, log, worker, closeLater }: ServerStart,
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
  { config, options, log, isFirst, closeLater }: ServerStart,
  parts: {
    files: ServerFiles;
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
