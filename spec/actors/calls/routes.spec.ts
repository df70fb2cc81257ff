// Who may take a call, in one moment of a template; how a call goes through them is in the call*.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { BalancedRoute, BoundRoute } from '../../../src/actors/calls/routes.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { Harness, silent, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('who is next');
let harness = new Harness();

test.before.each(() => {
  harness = new Harness();
});
test.after.each(async () => {
  mock.timers.reset();
  await harness.close();
});

test('is undefined while all are full, for which a call may wait', async () => {
  const ref = await harness.add('a', silent);
  for (let place = 0; place < LIMITS.inFlightPerInstance; place += 1) harness.call('write');
  for (const route of [balanced(), boundTo(ref)]) {
    assert.is(route.next(undefined), undefined);
    assert.is(route.isOnlyFull(undefined), true);
  }
});

test.run();

function balanced(): BalancedRoute {
  return new BalancedRoute(harness.fleet.group('t'), toolCall('write'));
}

function boundTo(ref: InstanceRef, isContinuation = false): BoundRoute {
  return new BoundRoute(ref, toolCall('write'), { isContinuation });
}
