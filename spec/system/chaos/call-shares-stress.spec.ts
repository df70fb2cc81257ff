// Calls of several owners at full instances that answer late, fail, hang, ask, leave and return, made up by fast-check, in
// simulated time: second tries, ejection and the queue meet. In the end each call was answered once and nothing is held.

import { mock } from 'node:test';
import fc from 'fast-check';
import { timer } from 'rxjs';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { Caller, Script } from '../../helpers/failing-backend.ts';
import { Harness, settled, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call: shares under stress', { timeoutMs: 120_000 });
const IDS = ['a', 'b', 'c'];
const OWNERS = ['key:1', 'key:2', 'key:3'];

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

const deed = fc.record({
  does: fc.constantFrom('answer', 'answer', 'fail', 'refuse', 'hang', 'progress'),
  afterMs: fc.constantFrom(0, 1, 100, 2_500, 4_000),
});

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      owner: fc.constantFrom(...OWNERS),
      tool: fc.constantFrom('read', 'write'),
      count: fc.constantFrom(1, 20, 40, 300),
      pinned: fc.constantFrom(null, null, null, ...IDS),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1, 400, 2_100, 6_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('cancel' as const), nth: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('drain' as const), id: fc.constantFrom(...IDS) }),
  },
);

test('answers each call once and holds nothing in the end', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(deed, { minLength: 1, maxLength: 12 }),
      fc.array(step, { minLength: 8, maxLength: 30, size: 'max' }),
      async (deeds, steps) => {
        const harness = new Harness({ policy: { callTimeoutMs: 6_000 } });
        let done = 0;
        const script: Script = (exchange) => {
          const { does, afterMs } = deeds[done % deeds.length] ?? { does: 'hang', afterMs: 0 };
          done += 1;
          const perform = (): void => {
            if (!exchange.isOpen) return;
            if (does === 'answer') exchange.result();
            else if (does === 'refuse') exchange.refuse(-32603);
            else if (does === 'fail')
              exchange.fail(backendUnavailable('it broke', { delivered: 'unknown', suspicious: true }));
            else if (does === 'progress') exchange.notify('notifications/progress', { progress: 1 });
          };
          if (afterMs === 0) perform();
          else timer(afterMs).subscribe(perform);
        };
        for (const id of IDS) await harness.add(id, script);
        const refs = IDS.map((id) => harness.ref(id));
        const { queue, pool } = harness.fleet.group('t');
        const sent = mock.method(pool.outliers, 'sent');
        const ended = mock.method(pool.outliers, 'ended');
        const callers: Caller[] = [];
        for (const one of steps) {
          if (one.kind === 'calls') {
            const { owner, tool, count, pinned } = one;
            for (let call = 0; call < count; call += 1) {
              const request = { ...toolCall(tool), caller: owner };
              callers.push(harness.call(request, pinned === null ? {} : { instanceId: pinned }));
            }
          } else if (one.kind === 'pass') mock.timers.tick(one.ms);
          else if (one.kind === 'cancel') {
            for (const [number, caller] of callers.entries()) {
              if (number % one.nth === 0) caller.subscription.unsubscribe();
            }
          } else if (refs.some(({ id, state }) => id === one.id && state === 'healthy')) {
            void harness.fleet.remove('t', one.id, 3_000);
          }
          await settled();
          for (const ref of pool.candidates) assert.ok(ref.inFlight <= 288, 'within the places');
        }
        for (let second = 0; second < 20; second += 1) {
          mock.timers.tick(1_000);
          await settled();
        }
        assert.ok(
          callers.every(({ subscription }) => subscription.closed),
          'each call has ended',
        );
        assert.is(queue.length, 0);
        assert.equal(
          refs.map(({ inFlight }) => inFlight),
          [0, 0, 0],
        );
        for (const { answers } of callers) {
          assert.ok(answers.filter(({ event }) => event.kind === 'result').length <= 1);
        }
        assert.equal([sent.mock.callCount(), ended.mock.callCount()], [attempts(harness), attempts(harness)]);
        for (const ref of refs) {
          for (const owner of OWNERS) assert.ok(ref.hasPlaceFor(owner) && ref.isBelowShare(owner));
        }
        const closing = harness.close();
        mock.timers.tick(5_000);
        await closing;
      },
    ),
    { numRuns: 60 },
  ));

test.run();

function attempts(harness: Harness): number {
  return harness.told('exchange.finished').length;
}
