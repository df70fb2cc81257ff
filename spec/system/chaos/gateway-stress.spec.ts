// Everything at once: calls, cancels, timeouts, registrations, drains and restarts in orders that fast-check generates; a
// failing order is printed with its seed. Every call ends, nothing stays counted, and the statistics of the gateway match what
// its callers saw.

import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { STRATEGY_NAMES } from '../../../src/balancing/strategies.ts';
import type { GatewayEvent } from '../../../src/domain/events/events.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { rpcError, serving, type ToolBody } from '../../helpers/backends/function-backend.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a gateway under stress', { timeoutMs: 120_000 });
const IDS = ['a', 'b', 'c'] as const;

const id = fc.constantFrom(...IDS);
const tool = fc.constantFrom('works', 'read', 'breaks', 'slow', 'unknown', 'special');
const few = fc.integer({ min: 1, max: 5 });

/** One action on the gateway; calls are not awaited. */
type Step = (harness: StressHarness) => unknown;

const calls: readonly fc.Arbitrary<Step>[] = [
  fc.tuple(tool, fc.integer({ min: 1, max: 40 })).map(
    ([name, times]) =>
      (harness) =>
        harness.call(name, times),
  ),
  fc.tuple(tool, few).map(
    ([name, turns]) =>
      (harness) =>
        harness.cancel(name, turns),
  ),
  few.map((times) => (harness) => harness.call('slow', times, { timeoutMs: 1 })),
  fc.tuple(tool, id).map(
    ([name, instanceId]) =>
      (harness) =>
        harness.call(name, 1, { instanceId }),
  ),
  fc.constantFrom('works', 'slow').map((name) => (harness) => harness.call(name, 900)),
];
const changes: readonly fc.Arbitrary<Step>[] = [
  id.map((one) => (harness) => harness.register(one)),
  id.map(
    (one) =>
      ({ gateway }) =>
        codeOf(gateway.deregister('t', one)),
  ),
  id.map(
    (one) =>
      ({ gateway }) =>
        codeOf(() => gateway.drain('t', one)),
  ),
  id.map(
    (one) =>
      ({ gateway }) =>
        codeOf(() => gateway.resume('t', one)),
  ),
  id.map(
    (one) =>
      ({ gateway }) =>
        codeOf(() => gateway.restart('t', one)),
  ),
  fc.tuple(id, few).map(
    ([one, weight]) =>
      ({ gateway }) =>
        codeOf(gateway.changeInstance('t', one, { weight })),
  ),
  fc.constantFrom(...STRATEGY_NAMES).map(
    (strategy) =>
      ({ gateway }) =>
        gateway.changeTemplate('t', { strategy }),
  ),
];
const pause: fc.Arbitrary<Step> = few.map((turns) => () => pass(turns));
const step = fc.oneof(
  { weight: 4, arbitrary: fc.oneof(...calls) },
  { weight: 3, arbitrary: fc.oneof(...changes) },
  { weight: 3, arbitrary: pause },
);

test('ends every call, counts down to zero, and has statistics that match what its callers saw', () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const harness = new StressHarness(await createGateway());
      for (const one of IDS) await harness.register(one);
      for (const one of steps) await one(harness);
      await harness.end();
    }),
    { numRuns: 60 },
  ));

test('ends every call when it is closed while calls are in flight', () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), few, async (steps, graceMs) => {
      const harness = new StressHarness(await createGateway({ graceMs }));
      for (const one of IDS) await harness.register(one);
      for (const one of steps) void one(harness);
      await harness.gateway.close();
      await harness.end();
    }),
    { numRuns: 60 },
  ));

test.run();

class StressHarness {
  readonly gateway: Gateway;
  readonly #ends: Promise<unknown>[] = [];
  readonly #events: GatewayEvent[] = [];
  #cancelled = 0;

  constructor(gateway: Gateway) {
    this.gateway = gateway;
    gateway.events$.subscribe((event) => this.#events.push(event));
  }

  register(one: string): Promise<unknown> {
    return codeOf(this.gateway.register('t', { id: one, handler: handlerOf(one) }, { waitMs: 1_000 }));
  }

  call(name: string, times: number, options?: Parameters<Gateway['call']>[3]): void {
    for (let time = 0; time < times; time += 1) {
      this.#ends.push(codeOf(this.gateway.call('t', name, {}, options)));
    }
  }

  async cancel(name: string, turns: number): Promise<void> {
    const controller = new AbortController();
    const reason = new Error('the caller went away');
    const end = codeOf(this.gateway.call('t', name, {}, { signal: controller.signal }));
    this.#ends.push(
      end.then((outcome) => {
        if (outcome === reason) this.#cancelled += 1;
        return outcome;
      }),
    );
    await pass(turns);
    controller.abort(reason);
  }

  /** Waits for all calls, and compares the statistics of the gateway with their outcomes. */
  async end(): Promise<void> {
    const outcomes = await Promise.all(this.#ends);
    await pass(3);
    for (const outcome of outcomes) assert.ok(isExpected(outcome), `ended with ${String(outcome)}`);
    const { totalRequests, activeConnections, errorRate } = this.gateway.stats();
    assert.equal([totalRequests, activeConnections], [outcomes.length, 0]);
    for (const { snapshot } of this.gateway.servers()) assert.is(snapshot.inFlight, 0);
    const ends = this.#events.flatMap((event) => (event.type === 'call.finished' ? [event] : []));
    const attempts = this.#events.flatMap((event) => (event.type === 'attempt.finished' ? [event] : []));
    const finished = [...attempts, ...ends.filter(({ instanceId }) => instanceId !== undefined)];
    const waited = ends.filter(({ instanceId }) => instanceId === undefined);
    const refused = waited.filter(({ outcome }) => outcome === 'refused').length;
    const cancelled = waited.length - refused;
    assert.is(this.#events.filter(({ type }) => type === 'call.started').length, outcomes.length);
    assert.ok(cancelled <= this.#cancelled, `${cancelled} calls were cancelled while they waited`);
    const calls = new Set(ends.map(({ call }) => call));
    assert.equal(
      [calls.size, ends.length],
      [outcomes.length, outcomes.length],
      'each call has one last event',
    );
    const answers = outcomes.filter(
      (outcome) => typeof outcome === 'object' && 'resolvedWith' in Object(outcome),
    );
    assert.is(finished.filter(({ outcome }) => outcome === 'result').length, answers.length);
    const failed = finished.filter(({ outcome }) => outcome === 'error' || outcome === 'failed').length;
    const ended = finished.length + refused;
    assert.is(errorRate, ended === 0 ? 0 : (failed + refused) / ended);
    await this.gateway.close();
  }
}

/** Only one of the three instances has the tool `special`. */
function handlerOf(one: string) {
  const works: ToolBody = () => ({ by: one });
  const slow: ToolBody = async (_, { signal }) => {
    for (let left = 20; left > 0 && !signal.aborted; left -= 1) await turn();
    return {};
  };
  const breaks: ToolBody = () => {
    throw rpcError(-32603, 'broken');
  };
  return serving({ works, read: works, breaks, slow, ...(one === 'a' ? { special: works } : {}) });
}

const EXPECTED: readonly unknown[] = [
  'TOOL_NOT_FOUND',
  'TOOL_EXECUTION_FAILED',
  'SERVER_NOT_FOUND',
  'NO_HEALTHY_INSTANCE',
  'QUEUE_FULL',
  'BACKEND_UNAVAILABLE',
  'BACKEND_TIMEOUT',
  'SHUTTING_DOWN',
];

function isExpected(outcome: unknown): boolean {
  if (typeof outcome === 'string') return EXPECTED.includes(outcome);
  return outcome instanceof Error ? outcome.message === 'the caller went away' : outcome !== undefined;
}

async function pass(turns: number): Promise<void> {
  for (let left = turns; left > 0; left -= 1) await turn();
}
