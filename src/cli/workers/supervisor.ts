// Runs the workers of a gateway: starts them, starts one again that has ended, kills one that is silent, and tells
// the others of its end. The workers share the ports by node:cluster, which gives each connection to the next one
// that is free. Source: ADR 174.

import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../domain/errors/errors.ts';
import type { ServingGateway } from '../../domain/nodes/workers.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { createLog } from '../foreground/log.ts';
import { endProcess } from '../foreground/run-gateway.ts';
import { listenForStop } from '../foreground/stop-signals.ts';
import type { Terminal } from '../terminal.ts';
import { watchForHang } from './hang-watch.ts';
import { type ToSupervisor, type ToWorker, WORKER_VARIABLE, type WorkerStart } from './messages.ts';
import { openSocketFolder } from './socket-folder.ts';

interface SupervisorOptions {
  readonly count: number;
  readonly terminal: Pick<Terminal, 'print' | 'columns'>;
  readonly log?: Logger;
  readonly onReady?: (gateway: { readonly urls: readonly string[] }) => void;
}

/** The longest wait for the answers of workers to a question of another one, in ms. */
const ANSWER_MS = 1_000;
/** The interval in ms of the questions to each worker whether it is alive. */
const PING_MS = 1_000;
/** The time in ms after which a silent worker is killed: before its row expires, which other nodes would see. */
const SILENT_MS = 8_000;
/**
 * The longest time, in ms, from the start of a worker to its first message, before which it loads its code: long on a
 * busy machine.
 */
const FIRST_SIGN_MS = 60_000;
/** The gap between two pings, in ms, that shows that this process slept itself. */
const SLEPT_MS = 3_000;
/**
 * The time in ms after it was ready within which the end of a worker counts as a failure: it is started again with a
 * growing delay.
 */
const STABLE_MS = 10_000;
const [FIRST_DELAY_MS, MAX_DELAY_MS] = [1_000, 30_000];
/** The time to end beyond the longest orderly stop, and after a signal that demands an immediate end, in ms. */
const [LAST_MS, URGENT_MS] = [20_000, 2_000];

/**
 * Resolves with the exit code when all workers have ended: 0 after a signal, 1 after an uncaught error. Throws UsageError or
 * CommandFailure when the first worker cannot start.
 */
export async function runSupervisor(config: Config, options: SupervisorOptions): Promise<number> {
  const { count, log = createLog(config.logLevel), terminal } = options;
  const longestStopMs = config.shutdownDelayMs + config.graceMs + LAST_MS;
  const workers = new Workers({ ...options, log, longestStopMs });
  const stop = listenForStop((error) => log.fatal({ err: error }, 'uncaught error; shutting down'));
  const pass = (signal: NodeJS.Signals): void => workers.stop(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  void stop.first.then(async ({ cause, exitCode }) => {
    if (exitCode !== 0 || cause === 'SIGHUP') workers.stop('SIGTERM');
    workers.killAfter(longestStopMs);
    // The delay before the stop is over at once after a second signal, as in the workers.
    if (config.shutdownDelayMs > 0 && exitCode === 0) await stop.wait(config.shutdownDelayMs);
  });
  let urgentCode: number | undefined;
  void stop.urgent.then((code) => {
    urgentCode = code;
    workers.killAfter(URGENT_MS);
  });
  try {
    terminal.print(`starting ${count} workers`);
    const failure = await workers.run();
    if (failure !== undefined) throw failure;
    if (urgentCode !== undefined) endProcess(urgentCode);
    return (await stop.first).exitCode;
  } finally {
    for (const signal of SIGNALS) process.off(signal, pass);
    stop.dispose();
  }
}

/** The longest wait for the end of the channel of a worker that has ended, in ms. */
const HEARD_MS = 1_000;
/** The longest wait of a connection that came back for another worker, in ms: a silent worker is killed before. */
const RETURNED_MS = 10_000;
/** The signals that are passed on as they are. A hangup is not: only this process knows whether its terminal was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGBREAK'] as const;

/** One of the workers, with the process that is this worker now. */
interface Slot {
  readonly number: number;
  process: Worker | undefined;
  life: string | undefined;
  readyAtMs: number;
  /**
   * The time of the last message, or of the start of the process before the first one; undefined while no process is
   * waited for.
   */
  heardAtMs: number | undefined;
  hasSpoken: boolean;
  isReady: boolean;
  /** The number of ends in a row, each before it was ready, or shortly after. */
  failures: number;
  restart: NodeJS.Timeout | undefined;
}

interface WorkersOptions extends SupervisorOptions {
  readonly log: Logger;
  readonly longestStopMs: number;
}

class Workers {
  readonly #options: WorkersOptions;
  readonly #slots: Slot[] = [];
  readonly #sockets = openSocketFolder();
  readonly #ended = Promise.withResolvers<Error | undefined>();
  #isStopping = false;
  /** The data that all workers share; known once the first worker is ready. */
  #gateway: ServingGateway | undefined;
  /** The questions of workers that wait for the answers of the others. */
  readonly #questions = new Map<string, { hear(slot: Slot, answer?: string): void }>();
  /** The error of the first start, if it failed. */
  #failure: Error | undefined;
  /** Connections that workers did not take, until another one gets them. */
  readonly #returned = new Set<Accepted>();
  #pings: NodeJS.Timeout | undefined;
  #pingedAtMs = performance.now();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Runs the workers. Resolves when all have ended; with an error when the first one could not start. */
  run(): Promise<Error | undefined> {
    // The first one creates the database, the secret and the first admin, and applies the registry file; the
    // others start after it.
    this.#open(1);
    this.#pings = setInterval(() => this.#ping(), PING_MS);
    return this.#ended.promise.finally(() => {
      clearInterval(this.#pings);
      this.#sockets?.remove();
    });
  }

  /** Passes a signal on to all workers. After the first signal no worker is started. */
  stop(signal: NodeJS.Signals): void {
    this.#isStopping = true;
    for (const slot of this.#slots) {
      clearTimeout(slot.restart);
      tell(slot, { kind: 'signal', signal });
    }
    this.#endIfOver();
  }

  /** Sends SIGKILL to the workers that are left after this time. */
  killAfter(ms: number): void {
    setTimeout(() => {
      for (const { process } of this.#slots) process?.process.kill('SIGKILL');
    }, ms).unref();
  }

  #open(number: number): void {
    const slot: Slot = {
      number,
      process: undefined,
      life: undefined,
      readyAtMs: 0,
      heardAtMs: undefined,
      hasSpoken: false,
      isReady: false,
      failures: 0,
      restart: undefined,
    };
    this.#slots.push(slot);
    this.#fork(slot);
  }

  #fork(slot: Slot): void {
    const { count, terminal, longestStopMs } = this.#options;
    const { number } = slot;
    const { path: sockets } = this.#sockets ?? {};
    const start: WorkerStart = { number, count, gateway: this.#gateway, sockets, columns: terminal.columns };
    let worker: Worker;
    try {
      worker = cluster.fork({ [WORKER_VARIABLE]: JSON.stringify(start) });
    } catch (thrown) {
      this.#hearEnd(slot, messageOf(thrown)); // without memory, for one
      return;
    }
    slot.process = worker;
    slot.heardAtMs = performance.now();
    slot.hasSpoken = false;
    slot.isReady = false;
    slot.life = undefined;
    // Too many processes or open files: it never ran, and no end is announced.
    if (worker.process.pid === undefined) {
      worker.once('error', (error) => this.#hearEnd(slot, error.message));
      return;
    }
    const connection = watchConnections(worker, this.#returned);
    const watch = watchForHang(worker.process.pid, longestStopMs);
    if (watch !== undefined) tell(slot, { kind: 'watched', by: watch.pid });
    worker.on('error', (error) =>
      this.#options.log.warn({ err: error }, `worker ${number} gets no messages`),
    );
    worker.on('message', (message: ToSupervisor) => this.#hear(slot, message));
    worker.on('exit', (code, signal) => {
      connection.passOn(() => this.#slots.some((other) => other !== slot && other.isReady));
      watch?.close();
      this.#hearEnd(slot, signal ?? `exit code ${code}`);
    });
  }

  #hear(slot: Slot, message: ToSupervisor): void {
    const { count, terminal, log, onReady } = this.#options;
    slot.heardAtMs = performance.now();
    slot.hasSpoken = true;
    if (message.kind === 'print') terminal.print(message.text);
    else if (message.kind === 'alive') this.#hearLife(slot, message.life);
    else if (message.kind === 'failed') this.#hearFailure(slot, message);
    else if (message.kind === 'question') this.#askOthers(slot, message);
    else if (message.kind === 'answer') this.#questions.get(message.id)?.hear(slot, message.answer);
    else {
      const { pid } = slot.process?.process ?? {};
      log.info({ pid }, `worker ${slot.number} is ready`);
      slot.isReady = true;
      slot.readyAtMs = performance.now();
      this.#gateway ??= message.gateway;
      if (this.#slots.length > 1 || this.#isStopping) return;
      for (let number = 2; number <= count; number += 1) this.#open(number);
      onReady?.({ urls: message.urls });
    }
  }

  /** Asks the other workers that are ready, and answers with what they say within a second. */
  #askOthers(asker: Slot, { id, question }: Extract<ToSupervisor, { kind: 'question' }>): void {
    const waiting = new Set(this.#slots.filter((slot) => slot !== asker && slot.isReady));
    const answers: string[] = [];
    const end = (): void => {
      clearTimeout(timer);
      this.#questions.delete(id);
      tell(asker, { kind: 'answers', id, answers });
    };
    const timer = setTimeout(end, ANSWER_MS);
    const hear = (slot: Slot, answer?: string): void => {
      if (!waiting.delete(slot)) return;
      if (answer !== undefined && answer !== '') answers.push(answer);
      if (waiting.size === 0) end();
    };
    this.#questions.set(id, { hear });
    for (const slot of waiting) tell(slot, { kind: 'question', id, question });
    if (waiting.size === 0) end();
  }

  #hearFailure({ number }: Slot, { text, isUsage }: Extract<ToSupervisor, { kind: 'failed' }>): void {
    if (this.#slots.length === 1) this.#failure = new (isUsage ? UsageError : CommandFailure)(text);
    else this.#options.log.error({ reason: text }, `worker ${number} cannot start`);
  }

  #hearEnd(slot: Slot, how: string): void {
    const { log } = this.#options;
    const { number, life, isReady: wasReady } = slot;
    slot.process = undefined;
    slot.heardAtMs = undefined;
    slot.isReady = false;
    for (const question of this.#questions.values()) question.hear(slot);
    if (!this.#isStopping && !wasReady && this.#slots.length === 1) {
      this.#failure ??= new CommandFailure(`worker 1 ended during its start (${how})`);
      this.#isStopping = true;
    }
    if (this.#isStopping) {
      this.#endIfOver();
      return;
    }
    slot.life = undefined;
    if (life !== undefined) this.#tellProcesses(life);
    const isStable = wasReady && performance.now() - slot.readyAtMs >= STABLE_MS;
    slot.failures = isStable ? 0 : slot.failures + 1;
    // The first time at once.
    const exponent = slot.failures - 2;
    const delayMs = exponent < 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** exponent, MAX_DELAY_MS);
    const when = delayMs === 0 ? 'at once' : `in ${delayMs / 1_000} s`;
    log.error(`worker ${number} has ended (${how}); it is started again ${when}`);
    slot.restart = setTimeout(() => this.#fork(slot), delayMs);
  }

  #hearLife(slot: Slot, life: string | undefined): void {
    if (slot.life === life) return;
    slot.life = life;
    this.#tellProcesses();
  }

  /** Tells each worker which lives run: workers do not judge each other. */
  #tellProcesses(gone?: string): void {
    const running = this.#slots.flatMap(({ life }) => life ?? []);
    for (const slot of this.#slots) tell(slot, { kind: 'processes', running, gone });
  }

  #endIfOver(): void {
    if (this.#slots.every(({ process }) => process === undefined)) this.#ended.resolve(this.#failure);
  }

  #ping(): void {
    const nowMs = performance.now();
    const slept = nowMs - this.#pingedAtMs > SLEPT_MS;
    this.#pingedAtMs = nowMs;
    for (const slot of this.#slots) {
      tell(slot, { kind: 'ping' });
      if (slot.heardAtMs === undefined) continue;
      if (slept) slot.heardAtMs = nowMs;
      const [limitMs, what] = slot.hasSpoken
        ? [SILENT_MS, 'did not answer']
        : [FIRST_SIGN_MS, 'gave no sign of life'];
      if (nowMs - slot.heardAtMs < limitMs) continue;
      this.#options.log.error(`worker ${slot.number} ${what} for ${limitMs / 1_000} s: it is killed`);
      slot.process?.process.kill('SIGKILL');
      slot.heardAtMs = undefined;
    }
  }
}

function tell({ process: worker }: Slot, message: ToWorker): void {
  if (worker?.isConnected()) worker.process.send(message, undefined, {}, () => {}); // it may have ended just now
}

/** A connection that node:cluster has accepted. */
interface Accepted {
  close(): void;
}

/**
 * node:cluster forgets a connection that it passed to a worker which ended before it took it: its client would
 * wait. One of each port is on its way. `passOn` says in place of the worker that it left and did not take the
 * connections, which then go to other ones. node:cluster also keeps for ever what comes back after the last worker
 * has closed the port: what is in `returned` for 10 s is closed. Without these internal messages, in another
 * release of Node, nothing happens. Source: ADR 174.
 */
function watchConnections(
  worker: Worker,
  returned: Set<Accepted>,
): { passOn(hasOthers: () => boolean): void } {
  const { process: channel } = worker;
  const passed = new Map<unknown, Accepted>();
  const send = channel.send.bind(channel);
  channel.send = (message: unknown, connection?: unknown, ...rest: unknown[]) => {
    const { act, seq } = Object(message);
    if (act === 'newconn') {
      passed.set(seq, Object(connection));
      returned.delete(Object(connection));
    }
    return Reflect.apply(send, channel, [message, connection, ...rest]);
  };
  // Before node:cluster hears it, which may pass the connection to another worker at once.
  channel.prependListener('internalMessage', ({ ack, accepted }: Acknowledgement) => {
    const connection = passed.get(ack);
    passed.delete(ack);
    if (connection === undefined || accepted !== false) return;
    returned.add(connection);
    setTimeout(() => returned.delete(connection) && connection.close(), RETURNED_MS).unref();
  });
  const passOn = (hasOthers: () => boolean, fromMs = performance.now()): void => {
    // What the worker said is heard before the end of its channel: perhaps that it took the connection.
    const isHeard = !worker.isConnected();
    if (!isHeard && performance.now() - fromMs < HEARD_MS) {
      setImmediate(passOn, hasOthers, fromMs);
      return;
    }
    const canPassOn = isHeard && hasOthers();
    // node:cluster waits for all acknowledgements before it says so: it would choose this worker again.
    if (canPassOn && passed.size > 0) channel.emit('disconnect');
    for (const [seq, connection] of passed)
      if (canPassOn) channel.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
      else connection.close();
  };
  return { passOn };
}

/** An acknowledgement of node:cluster, or another internal message, which has neither field. */
interface Acknowledgement {
  readonly ack?: unknown;
  readonly accepted?: unknown;
}
