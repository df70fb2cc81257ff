// The newest calls, assembled from the events of their attempts. Thousands of events may come per second:
// they are collected, and shown four times a second.

import { signal } from '@preact/signals';
import type { GatewayEvent } from './types.ts';

const KEPT_CALLS = 1_000;
const SHOW_MS = 250;

export interface Attempt {
  readonly instance: string;
  readonly at: string;
  readonly waitMs: number | undefined;
  readonly durationMs: number;
  readonly outcome: string;
  readonly code: string | undefined;
}

export interface Call {
  readonly key: string;
  /** Undefined for the node that the console asks. */
  readonly node: string | undefined;
  readonly at: string;
  readonly template: string;
  readonly method: string;
  readonly tool: string | undefined;
  readonly principal: string;
  readonly requestId: string | undefined;
  readonly attempts: readonly Attempt[];
  /** `running`, `refused`, `cancelled`, or the outcome of the last attempt. */
  readonly outcome: string;
  readonly code: string | undefined;
  readonly durationMs: number | undefined;
}

export class Calls {
  /** The shown calls, newest first. */
  readonly shown = signal<readonly Call[]>([]);
  /** Number of events that came too fast to be read. */
  readonly missed = signal(0);
  readonly isPaused = signal(false);
  readonly #calls = new Map<string, Call>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  clear(): void {
    this.#calls.clear();
    this.isPaused.value = false;
    this.shown.value = [];
    this.missed.value = 0;
  }

  /** Freezes the shown calls; new ones are still collected. */
  pause(isPaused: boolean): void {
    this.isPaused.value = isPaused;
    this.#show();
  }

  /** The gateway, or another node, has started again: earlier running calls have no last event. */
  forgetRunning(node: string | undefined): void {
    for (const [key, call] of this.#calls)
      if (call.outcome === 'running' && call.node === node) this.#calls.delete(key);
    this.#show();
  }

  miss(count: number): void {
    this.missed.value += count;
  }

  add(event: GatewayEvent): void {
    const number = String(event.call);
    const key = event.node === undefined ? number : `${event.node} ${number}`; // each node numbers its own
    // The gateway counts its calls from 1 again after a restart.
    if (event.type === 'call.started') this.#calls.delete(key);
    const call = this.#calls.get(key) ?? started(key, event);
    this.#calls.set(key, after(call, event));
    if (this.#calls.size > KEPT_CALLS) {
      const [oldest] = this.#calls.keys();
      if (oldest !== undefined) this.#calls.delete(oldest);
    }
    this.#timer ??= setTimeout(() => this.#show(), SHOW_MS);
  }

  #show(): void {
    this.#timer = undefined;
    if (!this.isPaused.value) this.shown.value = [...this.#calls.values()].reverse();
  }
}

function started(key: string, event: GatewayEvent): Call {
  return {
    key,
    node: event.node,
    at: event.at,
    template: String(event.template),
    method: String(event.method),
    tool: text(event.tool),
    principal: String(event.principal ?? ''),
    requestId: text(event.request_id),
    attempts: [],
    outcome: 'running',
    code: undefined,
    durationMs: undefined,
  };
}

function after(call: Call, event: GatewayEvent): Call {
  const code = text(event.code);
  const durationMs = Math.max(0, Date.parse(event.at) - Date.parse(call.at));
  const isLast = event.type === 'call.finished';
  if (!isLast && event.type !== 'attempt.finished') return call;
  const outcome = String(event.outcome);
  if (event.instance_id === undefined) return { ...call, outcome, code, durationMs };
  const attempt: Attempt = {
    instance: String(event.instance_id),
    at: event.at,
    waitMs: typeof event.wait_ms === 'number' ? event.wait_ms : undefined,
    durationMs: Number(event.duration_ms),
    outcome,
    code,
  };
  const attempts = [...call.attempts, attempt];
  return isLast ? { ...call, attempts, outcome, code, durationMs } : { ...call, attempts };
}

function text(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value);
}
