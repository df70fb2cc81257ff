// Shared by the chaos journey: the present gateway, the times when it was away, and the faults so far.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { objectOr } from '../../fixtures/wire.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type McpHarness, startHarness } from '../../helpers/programs/mcp-program.ts';

/** The time after each end and each start in which a connection may still break. */
const edgeMs = 300;
/** Longest a gateway may take to end, with a grace of `graceSeconds` for calls. */
const endMs = 20_000;
const graceSeconds = 4;

/** Short times, so that every timer ends within the journey. */
const SETTINGS = {
  GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
  GATEWAY_LOG_LEVEL: 'debug',
  GATEWAY_CALL_TIMEOUT: '3',
  GATEWAY_HEALTH_INTERVAL: '1',
  GATEWAY_HEALTH_TIMEOUT: '1',
  GATEWAY_SESSION_IDLE_SECONDS: '2',
  GATEWAY_GRACE_SECONDS: String(graceSeconds),
};

export class ChaosHarness {
  readonly #folder: string;
  readonly #away: { readonly fromMs: number; toMs: number }[] = [];
  /** The faults, one line each. */
  readonly wrong: string[] = [];
  /** The number of calls by outcome, which shows that calls were made. */
  readonly ended = new Map<string, number>();
  #harness: McpHarness;

  private constructor(folder: string, harness: McpHarness) {
    this.#folder = folder;
    this.#harness = harness;
  }

  /** Starts a gateway with its database in that folder. */
  static async start(folder: string): Promise<ChaosHarness> {
    return new ChaosHarness(folder, await startHarness({ folder, env: SETTINGS }));
  }

  get harness(): McpHarness {
    return this.#harness;
  }

  count(kind: string): void {
    this.ended.set(kind, (this.ended.get(kind) ?? 0) + 1);
  }

  /** Whether the gateway was away at some time between the two, so that connections may break. */
  wasAway(fromMs: number, toMs: number): boolean {
    return this.#away.some((away) => fromMs <= away.toMs + edgeMs && toMs >= away.fromMs);
  }

  /** Ends the gateway, checks that it leaves nothing, and starts it again on the same database. */
  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const away = { fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
    this.#away.push(away);
    await this.end(signal);
    this.#harness = await startHarness({ folder: this.#folder, env: SETTINGS });
    away.toMs = performance.now();
  }

  /** Ends the gateway; asserts its exit code, and that it leaves no child and no fault in the log. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { program } = this.#harness;
    program.signal(signal);
    const end = await program.end(endMs);
    assert.equal(
      end,
      signal === 'SIGTERM' ? { code: 0, signal: null } : { code: null, signal },
      program.err.slice(-2_000),
    );
    assert.equal(await program.survivors(), [], `children after ${signal}`);
    const faults = program.err.split('\n').filter((line) => FAULT.test(line));
    assert.equal(faults, [], 'faults in the log');
    await this.#harness.remove();
  }

  /** Removes the gateway, even if its start failed. */
  async remove(): Promise<void> {
    await this.#harness.remove();
  }

  /** Waits until no call, session or dedicated process is left, and `instances` instances are healthy. */
  async quiet(instances: number, withinMs: number): Promise<void> {
    const wanted = { active: 0, sessions: 0, processes: 0, healthy: instances };
    const isQuiet = (counts: object): boolean => JSON.stringify(counts) === JSON.stringify(wanted);
    assert.equal(await eventually(() => this.#counts(), isQuiet, withinMs), wanted);
  }

  async #counts(): Promise<object> {
    await delay(100);
    const stats = objectOr((await this.#harness.admin('GET /gateway/stats')).body);
    const healthy = Object.values(objectOr(stats.instances)).filter((one) => objectOr(one).healthy === true);
    return {
      active: stats.active_connections,
      sessions: objectOr(stats.sessions).open,
      processes: objectOr(stats.own_processes).running,
      healthy: healthy.length,
    };
  }
}

/** Lines of a log that show a fault of the gateway: an error, INTERNAL_ERROR, a warning of Node, a stack. */
const FAULT = /"level":[56]0|INTERNAL_ERROR|MaxListeners|nhandled|^\s+at /;
