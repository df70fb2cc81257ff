// Opens the parts that the gateway and its app need: files, ports, database and accounts. Each phase gives what the later
// ones use.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { merge, NEVER, Subject, share } from 'rxjs';
import type { FirstPassword } from '../auth/accounts/first-password.ts';
import { type Secrets, secretId } from '../auth/secrets/secrets.ts';
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { memoryBounds, TLS_CONNECTION_BYTES } from '../domain/memory/held-bytes.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import type { OwnWorker, ServingGateway } from '../domain/nodes/workers.ts';
import { systemClock } from '../domain/time/clock.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { SystemLookups } from '../net/system-lookups.ts';
import { describeDatabase } from '../persistence/database-url.ts';
import { fileExposureOf, loadStore } from '../persistence/open-store.ts';
import { type RevisionChange, watchRevision } from '../persistence/revision-watch.ts';
import { NO_SPACE } from '../persistence/store-errors.ts';
import { RegistryFileError, readRegistryFile } from '../registry/files/registry-file.ts';
import { namesCollector } from '../tracing/tracing.ts';
import { lockNodeOfFile, lockNodeOfServer } from './nodes/node-lock.ts';
import { programUser } from './program-user.ts';
import { openServerAuth } from './server-auth.ts';
import { lastClientFile } from './sockets/file-limit.ts';
import { Ports, publicTlsOf } from './sockets/ports.ts';
import { openStorage } from './storage.ts';

export type Close = () => Promise<unknown>;

export interface ServerOptions {
  /** This process as one of several workers; undefined when it is the whole gateway. */
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

/** The parts that every phase of the start uses. */
export interface ServerStart {
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

/** The files that were read, the ports, the database, and the accounts with the making of the first admin. */
export type OpenedParts = Awaited<ReturnType<typeof openParts>>;

/** Opens the parts, one after the other. Throws StoreOpenError, ConfigError, ListenError or RegistryFileError. */
export async function openParts(begun: ServerStart) {
  await startTraces(begun);
  const files = await readFiles(begun);
  const network = await bindPorts(begun);
  const database = await openDatabase(begun, network.ids.lock);
  const accounts = await openAccounts(begun, network, database);
  return { files, network, database, accounts };
}

/** Sends traces if the standard variables name a collector. */
async function startTraces({ log, closeLater }: ServerStart): Promise<void> {
  if (!namesCollector(process.env)) return;
  const { startOtlp } = await import('../tracing/otlp.ts');
  const otlp = await startOtlp(process.env, log);
  closeLater(async () => otlp?.close());
}

/** Reads the files before anything is opened: an unreadable document must not leave a half-started gateway. */
async function readFiles(begun: ServerStart) {
  const { config, options } = begun;
  const document = await readDocument(begun);
  const user = config.programUser === undefined ? undefined : await programUser(config.programUser);
  // The store is loaded before a port is open, on which requests would wait for it.
  await loadStore(config.databaseUrl, config.folder);
  options.signal?.throwIfAborted();
  return { document, programUser: user };
}

/** Reads the registry file. A worker that joins the others can do without: the database has what the last good one said. */
async function readDocument({ config, options, worker, log, isFirst, memoryBytes }: ServerStart) {
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
async function bindPorts({ config, log, worker, memoryBytes, closeLater }: ServerStart) {
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
async function openDatabase({ config, options, log, worker, closeLater }: ServerStart, lockId: string) {
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
    ...storage,
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
  { config, options, log, closeLater }: ServerStart,
  { ports }: Awaited<ReturnType<typeof bindPorts>>,
  database: Awaited<ReturnType<typeof openDatabase>>,
) {
  const { storeChanges$ } = database;
  const { isTerminal = false, firstPassword } = options;
  const { address } = ports;
  const systemLookups = new SystemLookups({ clock: systemClock });
  const { lookup } = systemLookups;
  const own = { storeChanges$, log, isTerminal, address, lookup };
  const serverAuth = await openServerAuth(config, database, own);
  closeLater(serverAuth.close);
  // Another thread hashes the password, which takes 0.2 s; the gateway and its app are made meanwhile. `serve` awaits it.
  const firstAdmin = serverAuth.ensureAdmin(firstPassword);
  const settled = Promise.allSettled([firstAdmin]);
  closeLater(() => settled);
  return { ...serverAuth, firstAdmin, systemLookups };
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
