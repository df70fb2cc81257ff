// The connections to one origin that requests share, one request on each at a time.

import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Connector } from './connector.ts';
import { type ConnectionOwner, Http1Connection, type Http1Request } from './http1-connection.ts';

/** The idle time of a connection whose server names none. */
const USUAL_IDLE_MS = 4_000;
/** A connection is closed this much earlier than its server would close it, because a request could be on its way then. */
const IDLE_MARGIN_MS = 2_000;
const MAX_IDLE_MS = 600_000;
/** All but one of several idle connections are closed after this time. */
const SPARE_IDLE_MS = 4_000;

const AT_ONCE: ConnectionOwner['scheduler'] = {
  run: (task) => task(),
  restAfter: () => 0,
};

interface PoolOptions {
  readonly clock: Clock;
  readonly maxConnections: number;
  /** False: a connection carries one request, whose answer may take any time. Default: true. */
  readonly isKept?: boolean;
  /** Handles many failures in turns. Default: they are handled at once, and no connection rests. */
  readonly scheduler?: ConnectionOwner['scheduler'] | undefined;
}

/**
 * Opens connections when requests need them; `destroy` closes all. An origin at rest has at most one idle connection.
 * The one that was used last is used next, so that the others expire. Source: ADR 135.
 */
export class ConnectionPool {
  readonly #connector: Connector;
  readonly #maxConnections: number;
  readonly #isKept: boolean;
  readonly clock: Clock;
  readonly scheduler: ConnectionOwner['scheduler'];
  readonly #connections = new Set<Http1Connection>();
  readonly #idle: Http1Connection[] = [];
  /**
   * The connections that were freed in this turn of the event loop: bytes after the answer, and their end, are read in the next
   * one.
   */
  readonly #fresh: Http1Connection[] = [];
  /**
   * The idle connection that lives as long as its server allows. Not the first one ever made: a stream may hold
   * that for days.
   */
  #kept: Http1Connection | undefined;
  /** Requests without a connection, in order of arrival. */
  readonly #waiting: Http1Request[] = [];
  #hasTurn = false;
  #isDestroyed = false;
  #sweepAtMs = Number.POSITIVE_INFINITY;
  #cancelSweep: (() => void) | undefined;

  constructor(
    connector: Connector,
    { clock, maxConnections, isKept = true, scheduler = AT_ONCE }: PoolOptions,
  ) {
    this.#connector = connector;
    this.clock = clock;
    this.#maxConnections = maxConnections;
    this.#isKept = isKept;
    this.scheduler = scheduler;
  }

  /** Every failure goes to the answer. */
  dispatch(request: Http1Request): void {
    if (this.#isDestroyed) {
      queueMicrotask(() => request.answer.onResponseError(endpointClosed()));
      return;
    }
    this.#waiting.push(request);
    this.#openMissing();
    this.#awaitTurn();
  }

  /** Requests that are under way or wait for a connection fail. */
  destroy(): void {
    this.#isDestroyed = true;
    this.#cancelSweep?.();
    const waiting = this.#waiting.splice(0);
    for (const connection of [...this.#connections]) connection.destroy(endpointClosed());
    for (const { answer } of waiting) answer.onResponseError(endpointClosed());
  }

  freed(connection: Http1Connection): void {
    const idleMs = this.#idleMs(connection);
    if (idleMs <= 0) {
      connection.destroy(endpointClosed());
      return;
    }
    this.#kept ??= connection;
    const mayRestMs = this.#kept === connection ? idleMs : Math.min(idleMs, SPARE_IDLE_MS);
    connection.endsAtMs = this.clock.now() + mayRestMs;
    this.#fresh.push(connection);
    this.#sweepBy(connection.endsAtMs);
    this.#awaitTurn();
  }

  closed(connection: Http1Connection): void {
    this.#connections.delete(connection);
    if (this.#kept === connection) this.#kept = undefined;
    for (const free of [this.#idle, this.#fresh]) {
      const index = free.indexOf(connection);
      if (index !== -1) free.splice(index, 1);
    }
    this.#openMissing();
  }

  #idleMs({ keepAliveMs }: Http1Connection): number {
    if (!this.#isKept) return 0;
    const allowedMs = keepAliveMs === undefined ? USUAL_IDLE_MS : keepAliveMs - IDLE_MARGIN_MS;
    return Math.min(allowedMs, MAX_IDLE_MS);
  }

  /** Opens connections for the requests that get none of the free ones. */
  #openMissing(): void {
    for (;;) {
      const free = this.#idle.length + this.#fresh.length;
      if (this.#waiting.length <= free || this.#connections.size >= this.#maxConnections) return;
      const [request] = this.#waiting.splice(free, 1);
      if (request === undefined || this.#isDestroyed) return;
      const connection = new Http1Connection(this.#connector, this, request);
      connection.endsAtMs = this.#endOfUse();
      this.#connections.add(connection);
    }
  }

  /**
   * An idle connection is used only after everything that the system has received was read: its server may have
   * closed it, or sent bytes that belong to no request. Source: the advisory GHSA-35p6-xmwp-9g52 of undici.
   */
  #awaitTurn(): void {
    if (
      this.#hasTurn ||
      (this.#fresh.length === 0 && (this.#waiting.length === 0 || this.#idle.length === 0))
    )
      return;
    this.#hasTurn = true;
    setImmediate(this.#takeTurn);
  }

  /** Runs after all sockets were read. */
  readonly #takeTurn = (): void => {
    this.#hasTurn = false;
    const nowMs = this.clock.now();
    while (this.#waiting.length > 0) {
      const connection = this.#idle.pop();
      if (connection === undefined) break;
      if (connection.endsAtMs <= nowMs) connection.destroy(endpointClosed());
      else this.#sendNext(connection);
    }
    for (const connection of this.#fresh) this.#idle.push(connection);
    this.#fresh.length = 0;
    this.#openMissing();
    this.#awaitTurn();
  };

  /** Sends the first request that is still needed. */
  #sendNext(connection: Http1Connection): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (!connection.send(next)) continue;
      if (this.#kept === connection) this.#kept = undefined;
      connection.endsAtMs = this.#endOfUse();
      return;
    }
    this.#idle.push(connection);
  }

  #endOfUse(): number {
    if (!this.#isKept) return Number.POSITIVE_INFINITY;
    const endsAtMs = this.clock.now() + LIMITS.callHardBoundMs;
    this.#sweepBy(endsAtMs);
    return endsAtMs;
  }

  /** Schedules a sweep at this time, or keeps an earlier one. */
  #sweepBy(endsAtMs: number): void {
    if (endsAtMs >= this.#sweepAtMs) return;
    this.#cancelSweep?.();
    this.#sweepAtMs = endsAtMs;
    const waitMs = Math.max(1, Math.ceil(endsAtMs - this.clock.now()));
    this.#cancelSweep = this.clock.background.alarm(waitMs, () => this.#sweep());
  }

  #sweep(): void {
    const nowMs = this.clock.now();
    this.#sweepAtMs = Number.POSITIVE_INFINITY;
    for (const connection of [...this.#connections]) {
      if (connection.endsAtMs <= nowMs) connection.destroy(endpointClosed());
      else this.#sweepBy(connection.endsAtMs);
    }
  }
}

function endpointClosed(): Error {
  return Object.assign(new Error('the gateway closed the connection'), { code: 'ECONNABORTED' });
}
