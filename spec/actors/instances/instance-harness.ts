// What every spec of an instance needs: one actor on a simulated clock, a scripted backend behind it, and callers that
// record what they receive. Time passes only when the spec says so.

import { createActor, SimulatedClock } from 'xstate';
import { Attempt } from '../../../src/actors/calls/attempt.ts';
import type { AttemptEnding } from '../../../src/actors/calls/call-events.ts';
import { TemplateGroup } from '../../../src/actors/fleet/template-group.ts';
import { instanceMachine } from '../../../src/actors/instances/instance.machine.ts';
import { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { InstanceEmission } from '../../../src/actors/instances/instance-setup.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../../../src/balancing/policy.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../src/domain/calls/exchange-event.ts';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { InstanceDefinition, InstanceState } from '../../../src/domain/instances/instance.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { Conversation } from '../../../src/transports/transport.ts';
import { definition, HTTP } from '../../helpers/backends/profiles.ts';
import { ScriptedOpenings, ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { NO_RULES } from '../../helpers/backends/tool-rules.ts';
import type { Suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

/** One caller: the events it received and how its exchange ended. */
export interface Caller {
  readonly events: ExchangeEvent[];
  readonly endings: AttemptEnding[];
  /** How often its exchange ended; must never be more than one. */
  ends: number;
  error: GatewayError | undefined;
  leave: () => void;
}

export interface InstanceHarnessOptions {
  /** Default: an endpoint. */
  readonly fields?: Partial<InstanceDefinition>;
  readonly policy?: Partial<TemplatePolicy>;
}

/** One instance under test. `close()` leaves no timer behind. */
export class InstanceHarness {
  readonly clock = new SimulatedClock();
  readonly scripted = new ScriptedOpenings();
  readonly emissions: InstanceEmission[] = [];
  /** Every state it was seen in, oldest first. */
  readonly states: InstanceState[] = [];
  readonly actor;
  readonly ref: InstanceRef;

  constructor(options: InstanceHarnessOptions = {}) {
    const now = () => this.clock.now();
    const input = {
      definition: definition('a', options.fields ?? HTTP),
      policy: { ...DEFAULT_POLICY, ...options.policy },
      open: this.scripted.open,
      clock: {
        ...systemClock,
        now,
        wall: () => performance.timeOrigin + now(),
        alarm: (waitMs: number, ring: () => void) => {
          const timer = this.clock.setTimeout(ring, waitMs);
          return () => this.clock.clearTimeout(timer);
        },
      },
      scheduler: untimedScheduler(),
      toolRules: NO_RULES,
      emit: () => {},
      random: () => 0.5, // every back-off is exact
    };
    this.actor = createActor(instanceMachine, { clock: this.clock, input });
    this.ref = new InstanceRef(this.actor);
    this.ref.onEmission((emission) => this.emissions.push(emission));
    this.ref.watch((state) => this.states.push(state));
    this.actor.start();
  }

  /** Opens and settles: healthy from now on. */
  async healthy(transport = new ScriptedTransport()): Promise<ScriptedTransport> {
    this.scripted.last.succeed(transport);
    await settled();
    return transport;
  }

  /** Time passes, in one step, and everything that follows from it. */
  async pass(ms: number): Promise<void> {
    this.clock.increment(ms);
    await settled();
  }

  /** True when the count stays the same until the last ms of that time, and is one higher after it. */
  async happensAfter(ms: number, count: () => number): Promise<boolean> {
    const before = count();
    await this.pass(ms - 1);
    const early = count();
    await this.pass(1);
    return early === before && count() === before + 1;
  }

  /** Subscribes a caller at once; `during` is called for each event, inside the emission. */
  call(
    request: ExchangeRequest = { method: 'tools/call' },
    during?: () => void,
    conversation?: Conversation,
  ): Caller {
    const caller: Caller = { events: [], endings: [], ends: 0, error: undefined, leave: () => attempt.end() };
    const end = (error?: GatewayError): void => {
      caller.ends += 1;
      caller.error = error;
      during?.();
    };
    const now = () => this.clock.now();
    const call = {
      deadline: { beganAtMs: now(), needsProgress: false, longestLeftMs: 60_000 },
      now,
      onEvent: (_: Attempt, event: ExchangeEvent) => {
        caller.events.push(event);
        during?.();
      },
      failed: (failed: Attempt, error: GatewayError) => {
        end(error);
        failed.end();
      },
      completed: () => end(),
      setAwaitingClient: () => {},
      ended: (_: Attempt, ending: AttemptEnding) => caller.endings.push(ending),
    };
    const group = new TemplateGroup('t', DEFAULT_POLICY, {
      ...{ random: Math.random, emit: () => {}, clock: { ...systemClock, now } },
      ...{ scheduler: untimedScheduler(), trustOf: () => undefined },
    });
    const attempt = new Attempt(call, group, this.ref, { request, conversation }, 1, undefined);
    attempt.start();
    return caller;
  }

  /** How many probes it sent so far. */
  get probes(): number {
    return this.scripted.transports.flatMap(({ asked }) => asked.filter((method) => method === 'ping'))
      .length;
  }

  close(): void {
    this.actor.stop();
  }
}

/** Declares tests with a new harness each, which is closed after the test. */
export function onHarness(test: Suite) {
  return (
    sentence: string,
    body: (harness: InstanceHarness) => Promise<void>,
    options?: InstanceHarnessOptions,
  ): void =>
    test(sentence, async () => {
      const harness = new InstanceHarness(options);
      try {
        await body(harness);
      } finally {
        harness.close();
        await settled();
      }
    });
}
