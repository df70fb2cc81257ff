// The composition root: config -> store -> gateway -> koa app -> listeners, and back in order at the end.
// What each part does is its own business; signals and exit codes are the command line's.

import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { createGateway, type Gateway } from './gateway.ts';
import { createApp } from './http/app.ts';
import { type Listeners, openListeners } from './listeners.ts';
import { MemoryStore } from './persistence/memory-store.ts';
import { type RegistryContents, readRegistryFile } from './persistence/registry-file.ts';

/** A gateway that serves. */
export interface RunningServer {
  /** Where it listens, as this machine reaches it: `http://127.0.0.1:8080`. At least one. */
  readonly urls: readonly string[];
  /** The same as a person wants to read it: `0.0.0.0:8080 (http://127.0.0.1:8080 here)` for every address. */
  readonly places: readonly string[];
  /** One line each: what is not as it should be but did not prevent the start. */
  readonly warnings: readonly string[];
  readonly gateway: Gateway;
  /**
   * Ends in order: not ready, no new connections, calls in flight finish within the grace time, children stop, event
   * streams end, connections close. Idempotent.
   */
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Default: silent. */
  readonly log?: Logger;
  /** Version of the package, shown as `build`. Default `unknown`. */
  readonly build?: string;
}

/** For answers that are still being sent when all calls have ended, in ms. */
const LAST_ANSWERS_MS = 2_000;

/**
 * Starts a gateway and resolves once it listens and has taken in its registry file; instances may still be starting.
 * Throws ListenError or RegistryFileError, with nothing left running.
 */
export async function startServer(
  config: Config,
  { log = pino({ level: 'silent' }), build = 'unknown' }: ServerOptions = {},
): Promise<RunningServer> {
  // Before anything is open: a document that cannot be read must not leave a half-started gateway.
  const document =
    config.registryFile === undefined ? undefined : await readRegistryFile(config.registryFile);
  const gateway = await createGateway({
    store: new MemoryStore(),
    policy: config.defaultPolicy,
    graceMs: config.graceMs,
    deniedNetworks: config.deniedNetworks,
  });
  const app = createApp(gateway, { ...config, maxBodyBytes: config.requestBodyBytes, log, build });
  let listeners: Listeners | undefined;
  let problems: readonly string[] = [];
  try {
    listeners = await openListeners(config, app.callback());
    // After the ports are ours: a second start by mistake must not start every child a second time.
    if (document !== undefined) problems = await takeIn(document, gateway, log);
  } catch (error) {
    await gateway.close({ graceMs: 0 });
    await listeners?.close(0);
    throw error;
  }
  const { urls, places, warnings, stopAccepting, close: closeListeners } = listeners;

  const close = async (): Promise<void> => {
    const drained = gateway.close(); // from here on it is not ready and refuses new calls
    stopAccepting();
    try {
      await drained;
    } finally {
      app.closeStreams();
      await closeListeners(LAST_ANSWERS_MS);
    }
  };
  let closed: Promise<void> | undefined;
  return {
    urls,
    places,
    warnings: [...config.warnings, ...warnings, ...problems],
    gateway,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Brings the registry in step with the file; what could not be used is told, one line each. */
async function takeIn(document: RegistryContents, gateway: Gateway, log: Logger): Promise<readonly string[]> {
  const { added, changed, removed, unchanged, keptAway, problems } = await gateway.importFile(document);
  const unusable = [...document.problems, ...problems];
  const counts = {
    added: added.length,
    changed: changed.length,
    removed: removed.length,
    unchanged: unchanged.length,
    kept_away: keptAway.length,
    problems: unusable.length,
  };
  log.info(counts, 'registry file taken in');
  return unusable.map((problem) => `registry file: ${problem}`);
}
