// The composition root: config -> ports -> storage -> authentication -> gateway -> koa app. running-server.ts
// closes them in reverse order. The command line handles signals and exit codes.

import { type Logger, pino } from 'pino';
import { secretId } from '../auth/secrets/secrets.ts';
import type { Config } from '../config/config.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { LIMITS } from '../domain/limits.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { HttpApp } from '../http/app.ts';
import type { RegistryContents } from '../registry/files/registry-file.ts';
import { makeApp } from './configured-app.ts';
import { type JoinedGateway, makeGateway } from './configured-gateway.ts';
import { watchClockSkew } from './nodes/clock-skew.ts';
import {
  type Close,
  type OpenedParts,
  openParts,
  type ServerOptions,
  type ServerStart,
} from './opened-parts.ts';
import { countsOf, foreignGrants, foreignPrograms, logDatabase, syncLines } from './operator-lines.ts';
import { closeOrLog, type RunningServer, runningServer } from './running-server.ts';
import type { OpenPorts } from './sockets/ports.ts';

export type { ServerOptions } from './opened-parts.ts';
export type { RunningServer } from './running-server.ts';

const READY_CHECK_MS = 50;

/**
 * Starts a gateway. Resolves when it listens and has applied its registry file; instances may still be starting.
 * Throws StoreOpenError, ConfigError, ListenError or RegistryFileError, and leaves nothing running.
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
  const parts = await openParts(begun);
  const joined = await makeGateway(begun, parts);
  const app = makeApp(begun, parts, joined);
  signal?.throwIfAborted();
  const served = await serve(begun, parts, joined, app);
  const { network, database, accounts } = parts;
  // This does not begin earlier, because a start without its database reports that itself.
  const databaseLog = logDatabase(database.storeChanges$, log);
  databaseLog.add(watchClockSkew(database.store, log));
  const { gateway, others } = joined;
  return runningServer({
    ...served,
    gateway,
    gatewayId: network.ids.gateway,
    secretIds: joined.secrets.map(secretId),
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

/** Loads the registry, and serves requests once the first admin exists. */
async function serve(
  { config, options, log, isFirst, closeLater }: ServerStart,
  { files, network, database, accounts }: OpenedParts,
  { gateway, catalogue }: JoinedGateway,
  app: HttpApp,
): Promise<OpenPorts & Pick<RunningServer, 'warnings'>> {
  const { ports, early, ids } = network;
  const { auth, firstAdmin } = accounts;
  const { exposure } = database;
  options.onGateway?.(gateway);
  const { document } = files;
  // Thousands of instances may take minutes: a closing gateway starts no more of them.
  const endLoading = (): void => void closeOrLog(() => gateway.close({ graceMs: 0 }), log);
  options.signal?.addEventListener('abort', endLoading);
  const loaded = loadRegistry(gateway, isFirst ? { document, isSynced: config.sync.isEnabled } : {}, log);
  loaded.catch(() => undefined); // awaited below
  const { warnings, notices } = await firstAdmin;
  for (const notice of notices) options.onNotice?.(notice);
  ports.serve = app.callback();
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
