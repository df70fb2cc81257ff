// One worker of a gateway with several: a gateway that shares its ports with the others. It obeys its supervisor
// and not the terminal, and ends in order when its supervisor is gone. Source: ADR 174.

import cluster from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { rmdir } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import type { WorkerQuestion } from '../../domain/nodes/workers.ts';
import type { RunningServer } from '../../server/server.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { createLog } from '../foreground/log.ts';
import { runGateway } from '../foreground/run-gateway.ts';
import type { Terminal } from '../terminal.ts';
import { endsInOrder } from './hang-watch.ts';
import { type ToSupervisor, type ToWorker, WORKER_VARIABLE, type WorkerStart } from './messages.ts';

/** The longest wait for the answers of other workers, in ms. */
const ANSWER_MS = 1_500;

/** Runs one worker. `settings` throws for settings that have become wrong since the gateway was started. */
export async function runWorker(settings: () => Config, terminal: Terminal): Promise<number> {
  const start: WorkerStart = JSON.parse(process.env[WORKER_VARIABLE] ?? '');
  delete process.env[WORKER_VARIABLE];
  // Otherwise node:cluster ends this process at once when its supervisor is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  try {
    return await serve(settings(), start, terminal);
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (!isUsage && !(error instanceof CommandFailure)) throw error;
    send({ kind: 'failed', text: error.message, isUsage });
    return 1;
  } finally {
    // The last one to end without the supervisor removes it.
    if (!process.connected && start.sockets !== undefined) await rmdir(start.sockets).catch(() => undefined);
  }
}

async function serve(
  config: Config,
  { number, count, gateway, sockets, columns }: WorkerStart,
  terminal: Terminal,
): Promise<number> {
  const log = createLog(config.logLevel, undefined, undefined, number);
  // The lines of all workers are the same.
  const print = (text: string): void => {
    if (gateway === undefined) send({ kind: 'print', text });
    else log.debug(text);
  };
  const supervisor = new SupervisorLink(number);
  const ask = (question: WorkerQuestion) => supervisor.ask(question);
  return runGateway(config, {
    isDemo: false,
    log,
    worker: { number, count, gateway, sockets, ask },
    terminal: { ...terminal, columns, print },
    stop: { source: supervisor.signals, hasTerminal: false },
    onReady: (server) => supervisor.started(server),
  });
}

/** The messages between the supervisor and this worker. */
class SupervisorLink {
  /** The events that end the worker: signals that the supervisor passes on, its end, and uncaught errors. */
  readonly signals = new EventEmitter();
  readonly #number: number;
  #server: RunningServer | undefined;
  /** The process that watches whether this one hangs. */
  #watch: number | undefined;
  readonly #asked = new Map<string, (answers: readonly string[]) => void>();

  constructor(number: number) {
    this.#number = number;
    process.on('message', (message: ToWorker) => this.#receive(message));
    process.on('disconnect', () => {
      endsInOrder(this.#watch);
      this.signals.emit('SIGTERM', 'SIGTERM');
    });
    // The terminal sends these to all processes, and the supervisor passes them on.
    for (const signal of ['SIGINT', 'SIGHUP', 'SIGBREAK'] as const) process.on(signal, () => {});
    process.on('SIGTERM', (signal) => this.signals.emit(signal, signal));
    for (const event of ['uncaughtException', 'unhandledRejection'])
      process.on(event, (error) => this.signals.emit(event, error));
  }

  started(server: RunningServer): void {
    this.#server = server;
    this.#sayAlive();
    const { urls, gatewayId, secretIds, ports } = server;
    send({ kind: 'ready', urls, gateway: { id: gatewayId, secretIds, ports } });
  }

  /** The answers of the other workers; none when the supervisor is gone. */
  async ask(question: WorkerQuestion): Promise<readonly string[]> {
    const id = `${this.#number} ${randomUUID()}`;
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    this.#asked.set(id, resolve);
    // The supervisor answers after a second at the latest, unless it is gone.
    const timer = setTimeout(() => resolve([]), ANSWER_MS);
    send({ kind: 'question', id, question });
    return promise.finally(() => {
      clearTimeout(timer);
      this.#asked.delete(id);
    });
  }

  #receive(message: ToWorker): void {
    if (message.kind === 'answers') this.#asked.get(message.id)?.(message.answers);
    else if (message.kind === 'question') void this.#answer(message.id, message.question);
    else if (message.kind === 'ping') this.#sayAlive();
    else if (message.kind === 'watched') this.#watch = message.by;
    else if (message.kind === 'signal') this.signals.emit(message.signal, message.signal);
    else this.#server?.seeProcesses(message.running, message.gone);
  }

  async #answer(id: string, question: WorkerQuestion): Promise<void> {
    let answer = '';
    try {
      answer = (await this.#server?.answer(question)) ?? '';
    } catch {
      // Without its database it notices changes later.
    }
    send({ kind: 'answer', id, answer });
  }

  #sayAlive(): void {
    send({ kind: 'alive', life: this.#server?.nodes?.life });
  }
}

function send(message: ToSupervisor): void {
  // Without a callback, a supervisor that was killed a moment ago would be an uncaught error.
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}
