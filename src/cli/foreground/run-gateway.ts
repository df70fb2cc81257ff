// Runs a gateway in the foreground: starts it, prints its addresses, and ends it in order after a signal or an uncaught error.

import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { hasCode, OperatorError } from '../../domain/errors/errors.ts';
import { isLoopback } from '../../domain/local-address.ts';
import { VERSION } from '../../domain/version.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import { DamagedFileError } from '../../persistence/open-store.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../server/server.ts';
import { commandAt } from '../background/daemon-files.ts';
import { databaseFailure } from '../database/open-database.ts';
import type { Demo } from '../demo/demo.ts';
import { UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import { logEvents } from './event-log.ts';
import { keepHeapSmall } from './heap-size.ts';
import { createLog } from './log.ts';
import { listenForStop, type StopOptions, type StopReason } from './stop-signals.ts';

export interface RunOptions {
  readonly isDemo: boolean;
  /** The worker that this process is. Default: this process is the whole gateway. */
  readonly worker?: ServerOptions['worker'];
  readonly firstPassword?: ServerOptions['firstPassword'];
  readonly terminal: Pick<Terminal, 'print' | 'paint' | 'columns' | 'env' | 'folder'>;
  /** The log. Default: standard error, see log.ts. */
  readonly log?: Logger;
  readonly onReady?: (server: RunningServer) => void;
  readonly stop?: StopOptions;
  /** Ends the process at once, with process.exitCode when no code is given. Default: see `endProcess`. */
  readonly exit?: (code?: number) => void;
}

/** The longest time for which a leaked handle may keep the process alive after the orderly end, in ms. */
const LAST_RESORT_MS = 2_000;

/**
 * Resolves with the exit code when everything has ended: 0 after a signal, 1 after an uncaught error. A second signal ends the
 * process at once, children first. Throws UsageError for a port, a file, a database or a secret that cannot be used.
 */
export async function runGateway(config: Config, options: RunOptions): Promise<number> {
  const { exit = endProcess, log = createLog(config.logLevel) } = options;
  const onUncaught = (error: unknown): void => log.fatal({ err: error }, 'uncaught error; shutting down');
  const stop = listenForStop(onUncaught, options.stop);
  const run = new GatewayRun(config, { ...options, exit, log }, stop);
  try {
    const server = await run.start();
    return server === undefined ? (await stop.first).exitCode : await run.serve(server);
  } finally {
    stop.dispose();
    setTimeout(exit, LAST_RESORT_MS).unref();
  }
}

type ResolvedOptions = RunOptions & Required<Pick<RunOptions, 'exit' | 'log'>>;

/** One gateway from its start to its end. */
class GatewayRun {
  readonly #config: Config;
  readonly #options: ResolvedOptions;
  readonly #stop: ReturnType<typeof listenForStop>;
  readonly #starting = new AbortController();
  #isStarted = false;
  /** Whether this start created the first admin. */
  #isFirst = false;
  #gateway: Gateway | undefined;
  #demo: Demo | undefined;

  /** Signals count from here on, so that a start that hangs (for example on a registry file that is a pipe) can be ended, too. */
  constructor(config: Config, options: ResolvedOptions, stop: ReturnType<typeof listenForStop>) {
    this.#config = config;
    this.#options = options;
    this.#stop = stop;
    void stop.first.then(({ cause }) => this.#cancelStart(cause));
    void stop.urgent.then((code) => this.#endAtOnce(code));
  }

  /** Starts the gateway. Undefined when a signal came before the end of the start. */
  async start(): Promise<RunningServer | undefined> {
    const { log, worker, firstPassword, terminal } = this.#options;
    const onGateway = (opened: Gateway): void => {
      this.#gateway = opened;
      keepGarbageYoung();
      logEvents(opened.events$, log);
    };
    const isTerminal = terminal.columns !== undefined;
    const { signal } = this.#starting;
    const onNotice = (text: string): void => {
      this.#isFirst = true;
      terminal.print(text);
    };
    const options = { log, worker, firstPassword, onGateway, onNotice, isTerminal, signal };
    try {
      const server = await start(this.#config, options);
      this.#isStarted = true;
      return server;
    } catch (error) {
      if (!signal.aborted) throw error;
      if (error !== signal.reason) log.warn({ err: error }, 'the start failed while it was being cancelled');
      return undefined;
    }
  }

  /** Serves until a signal. Resolves with the exit code when the server is closed. */
  async serve(server: RunningServer): Promise<number> {
    const { log, terminal, isDemo, onReady } = this.#options;
    const leaveHeap = keepHeapSmall();
    try {
      optimizeCalls();
      announce(server, this.#config, terminal, log);
      if (this.#isFirst)
        terminal.print(`log in with "${commandAt('gateway login admin', String(server.urls[0]), terminal)}"`);
      onReady?.(server);
      if (isDemo) this.#demo = (await import('../demo/demo.ts')).openDemo(server, terminal);
      const reason = await runUntilStopped(this.#demo, this.#stop.first);
      // A signal during the start was announced already, and there is nothing to finish.
      if (!this.#starting.signal.aborted) await this.#announceStop(server, reason);
      return reason.exitCode;
    } finally {
      leaveHeap();
      const beganAtMs = performance.now();
      await server.close(); // event-log.ts logs the calls that it waits for
      log.info({ duration_ms: Math.round(performance.now() - beganAtMs) }, 'stopped');
      this.#demo?.remove();
    }
  }

  /** Announces the stop, and waits as long as balancers need to see that this gateway is not ready. */
  async #announceStop(server: RunningServer, { cause, exitCode }: StopReason): Promise<void> {
    const { print } = this.#options.terminal;
    const { shutdownDelayMs, graceMs } = this.#config;
    if (exitCode === 0 && shutdownDelayMs > 0) {
      server.announceClose();
      const serving = `not ready from now on, and serving for ${shutdownDelayMs / 1000} s more`;
      print(`stopping after ${cause}: ${serving}; a second signal ends this wait`);
      await this.#stop.wait(shutdownDelayMs);
    }
    const finishing = `calls in flight have ${graceMs / 1000} s to finish`;
    print(`stopping after ${cause}: ${finishing}; a second signal stops at once`);
  }

  #cancelStart(cause: string): void {
    if (this.#isStarted) return;
    this.#starting.abort();
    this.#options.terminal.print(`stopping after ${cause} during the start; a second signal stops at once`);
  }

  #endAtOnce(code: number): void {
    this.#gateway?.killPrograms();
    this.#demo?.remove();
    this.#stop.dispose();
    this.#options.exit(code);
  }
}

/**
 * Makes V8 allocate all objects in the young generation. V8 allocates objects in the old one when earlier objects of
 * the same code lived long, which the start of many instances or connections suggests for code that serves calls. One
 * such object per call keeps all others of its call alive until a full collection. Set before the first instance is
 * opened, but after the modules were loaded: cached code is valid only for the flags with which it was compiled.
 * Source: ADR 79.
 */
function keepGarbageYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Makes V8 optimize functions after a tenth of the usual number of calls, so that the first seconds of load run less
 * slow code, and inline three times as much: a call passes through many small functions. Set after the start, which
 * would optimize code that never runs again. Source: ADR 140.
 */
function optimizeCalls(): void {
  setFlagsFromString('--invocation-count-for-maglev=40');
  setFlagsFromString('--invocation-count-for-turbofan=400');
  setFlagsFromString('--minimum-invocations-after-ic-update=50');
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=3000');
}

async function runUntilStopped(demo: Demo | undefined, stopped: Promise<StopReason>): Promise<StopReason> {
  const stopping = new AbortController();
  void stopped.then(() => stopping.abort());
  // A demo whose servers are still starting does not delay the end.
  await Promise.race([demo?.play(stopping.signal), stopped]);
  return stopped;
}

async function start(config: Config, options: ServerOptions): Promise<RunningServer> {
  try {
    return await startServer(config, options);
  } catch (error) {
    if (error instanceof DamagedFileError || hasCode(error, 'DATABASE_UNAVAILABLE'))
      throw databaseFailure(error);
    if (error instanceof OperatorError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function announce(
  { addresses, urls, warnings }: RunningServer,
  config: Config,
  terminal: RunOptions['terminal'],
  log: Logger,
) {
  for (const address of addresses) terminal.print(`stagedoor ${VERSION} listening on ${address}`);
  const url = String(urls[0]);
  const { kind, printable } = describeDatabase(config.databaseUrl, config.folder);
  terminal.print(
    `database ${printable}${kind === 'memory' ? ': in memory, lost when the gateway stops' : ''}`,
  );
  terminal.print(
    `MCP clients: ${config.publicUrl ?? url}/mcp/<template>; "${commandAt('connect <template>', url, terminal)}" shows how`,
  );
  terminal.print(`console: ${url}/console`);
  for (const warning of warnings) log.warn(warning);
  const open = config.listeners.find(({ host }) => !isLoopback(host));
  const isEncrypted = config.tls.cert !== undefined || config.publicUrl?.startsWith('https:') === true;
  if (open !== undefined && config.authEnabled && !isEncrypted)
    log.warn(
      `PASSWORDS AND KEYS CROSS THE NETWORK UNENCRYPTED: the gateway listens on ${open.host} without TLS, so sign-in by URL is for ` +
        'this machine only; set tls.cert and tls.key, or public_url to the https address of a proxy, and let the gateway listen on 127.0.0.1',
    );
  if (open === undefined || config.authEnabled) return;
  log.warn(
    `authentication is off: anyone who can reach ${open.host} is an admin of this gateway; ` +
      'host names that clients use, other than localhost, belong in allowed_hosts',
  );
}

/**
 * Ends the process. A code over 128 stands for a signal, which then ends the process: `process.exit` waits for busy
 * threads, and a thread that opens a pipe may be busy forever. Process 1 of a container, which its own signals do not
 * end, exits with the code.
 */
export function endProcess(code?: number): void {
  if (code !== undefined && code > 128 && process.platform !== 'win32') process.kill(process.pid, code - 128);
  process.exit(code);
}
