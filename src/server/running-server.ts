// A server that runs: the requests that its process may make of it, and its end, in the order of RunningServer.close.

import type { Logger } from 'pino';
import type { Subscription } from 'rxjs';
import type { Auth } from '../auth/auth.ts';
import type { NodeTable } from '../cluster/node-table/node-table.ts';
import type { PortNumbers, WorkerQuestion } from '../domain/nodes/workers.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { HttpApp } from '../http/app.ts';
import type { Store } from '../persistence/store.ts';
import type { OtherNodes } from './nodes/other-nodes.ts';
import type { Close } from './opened-parts.ts';
import type { Listeners } from './sockets/listeners.ts';
import type { OpenPorts } from './sockets/ports.ts';

export interface RunningServer extends Pick<Listeners, 'urls' | 'addresses'> {
  /** The problems that did not prevent the start, one line each. */
  readonly warnings: readonly string[];
  readonly gateway: Gateway;
  readonly auth: Auth;
  /** The id of the node, without the number of a worker. */
  readonly gatewayId: string;
  /** Name its secrets; the first one signs tokens. */
  readonly secretIds: readonly string[];
  /** The port numbers, including that of the port for Prometheus. */
  readonly ports: PortNumbers;
  /** The table of the lives of all nodes. Undefined without other nodes. */
  readonly nodes: Pick<NodeTable, 'life'> | undefined;
  /** Takes the lives of the workers that run, and of one whose process is gone: others may continue its sessions. */
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

/** The longest wait for answers that are still being sent after the end of all calls, in ms. */
const LAST_ANSWERS_MS = 2_000;
/** The longest wait for the last writes to the database together, in ms: it may not answer. */
const LAST_WRITES_MS = 2_000;

interface RunningServerOptions
  extends OpenPorts,
    Pick<RunningServer, 'warnings' | 'gateway' | 'gatewayId' | 'secretIds' | 'auth'> {
  readonly others: OtherNodes;
  readonly app: Pick<HttpApp, 'closeStreams' | 'ownMetrics'>;
  readonly databaseLog: Subscription;
  /** The close functions of the parts that are not closed by name, newest first. */
  readonly opened: readonly Close[];
  readonly graceMs: number;
  readonly log: Logger;
  /** Tells all subscribers at once that the store has changed. */
  readonly noteChange: () => void;
  readonly store: Pick<Store, 'finishWithin'>;
}

export function runningServer(options: RunningServerOptions): RunningServer {
  const { gateway, gatewayId, secretIds, auth, warnings, others, app, listeners, scrapes } = options;
  let closed: Promise<void> | undefined;
  return {
    urls: listeners.urls,
    addresses: listeners.addresses,
    ports: { ...listeners.ports, ...scrapes?.ports },
    warnings,
    gateway,
    auth,
    gatewayId,
    secretIds,
    nodes: others.table,
    seeProcesses: (running, gone) => void others.table?.seeProcesses(running, gone),
    answer: async (question) => {
      if (question.kind === 'metrics') return app.ownMetrics(question);
      if (question.kind === 'members') await others.table?.readAgain();
      else {
        options.noteChange();
        await gateway.internals.catchUp();
      }
      return '';
    },
    announceClose: () => {
      gateway.internals.readiness.announceClose();
      listeners.drain();
    },
    close: () => {
      closed ??= closeServer(options);
      return closed;
    },
  };
}

/** Ends in the order that RunningServer.close describes. */
async function closeServer(options: RunningServerOptions): Promise<void> {
  const { gateway, others, listeners, scrapes, databaseLog, app, opened, graceMs, log, store } = options;
  gateway.internals.readiness.announceClose();
  others.handOver();
  // The gateway refuses new calls from now on.
  const drained = Promise.all([gateway.close(), others.untilIdle(graceMs)]);
  // Connections are accepted until the calls have ended: clients answer requests of servers on further connections.
  listeners.drain();
  try {
    await drained;
  } finally {
    databaseLog.unsubscribe();
    app.closeStreams();
    // The audit log is closed after the last answer, so that it contains the entry of that answer.
    await closeOrLog(() => listeners.close(LAST_ANSWERS_MS), log);
    // A request of another node that arrives meanwhile is answered that its session has moved; after the close it would be lost.
    await closeOrLog(() => others.leave(), log);
    await closeOrLog(() => others.closeChannel(LAST_ANSWERS_MS), log);
    await closeOrLog(async () => scrapes?.close(LAST_ANSWERS_MS), log);
    store.finishWithin(LAST_WRITES_MS);
    for (const last of opened) await closeOrLog(last, log);
  }
}

/** Logs an error: one part that cannot be closed must not leave the others open. */
export async function closeOrLog(close: Close, log: Logger | undefined): Promise<void> {
  try {
    await close();
  } catch (error) {
    log?.warn({ err: error }, 'a part of the gateway could not be closed');
  }
}
