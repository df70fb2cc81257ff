// The traffic of all sessions of one endpoint: made at the first request or stream of a session, removed by the first
// sweep that finds no state. One timer sweeps all.

import { perhapsDelivered } from '../../domain/errors/errors.ts';
import { sessionNotFound } from '../../domain/errors/session-errors.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { LegacyTraffic, type LegacyTrafficDeps } from './legacy-traffic.ts';

const SWEEP_MS = 10_000;

/** Finds the LegacyTraffic of a session or makes it, and ends it. */
export class TrafficBySession {
  readonly #traffic = new Map<string, LegacyTraffic>();
  readonly #deps: LegacyTrafficDeps;
  readonly #scheduler: TaskScheduler;
  #isDismissed = false;
  #stopSweeping: (() => void) | undefined;
  #isSweeping = false;

  constructor(deps: LegacyTrafficDeps, scheduler: TaskScheduler) {
    this.#deps = deps;
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#traffic.size;
  }

  get isDismissed(): boolean {
    return this.#isDismissed;
  }

  /** The traffic of the session with this id; undefined without state. */
  find(sessionId: string): LegacyTraffic | undefined {
    return this.#traffic.get(sessionId);
  }

  of(session: McpSession): LegacyTraffic {
    const known = this.#traffic.get(session.id);
    if (known?.session === session) return known;
    known?.close(perhapsDelivered(sessionNotFound())); // that session was released, and continues here again
    const traffic = new LegacyTraffic(session, this.#deps);
    this.#traffic.set(session.id, traffic);
    this.#stopSweeping ??= this.#deps.clock.background.every(SWEEP_MS, () => this.#sweep());
    return traffic;
  }

  /** The calls of the session that are under way fail with this error. */
  end(sessionId: string, error: Error): void {
    this.#traffic.get(sessionId)?.close(error);
    this.#traffic.delete(sessionId);
  }

  /** Ends the calls that only wait for a disconnected client, now and at each later sweep. */
  dismiss(): Promise<void> {
    this.#isDismissed = true;
    return this.#scheduler.each([...this.#traffic.values()], (each) => each.dismiss());
  }

  /** Ends that of all sessions with this error. */
  close(error: Error): Promise<void> {
    this.#stopSweeping?.();
    return this.#scheduler.each([...this.#traffic.keys()], (sessionId) => this.end(sessionId, error));
  }

  /**
   * Sweeps the traffic of all sessions, in several turns of the event loop, since thousands of clients may lose their connections
   * at the same time.
   */
  #sweep(): void {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    this.#scheduler.each(this.#sweptTraffic(), () => undefined).catch(this.#deps.onFault);
  }

  *#sweptTraffic(): Generator<void> {
    try {
      for (const [id, traffic] of [...this.#traffic]) {
        const isPresent = this.#traffic.get(id) === traffic;
        if (this.#isDismissed) traffic.dismiss();
        if (isPresent && traffic.sweep(this.#deps.clock.now())) this.#traffic.delete(id);
        yield;
      }
    } finally {
      this.#isSweeping = false;
    }
  }
}
