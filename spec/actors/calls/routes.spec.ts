// Who may take a call, in one moment of a template; how a call goes through them is in the call*.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { type CallOrder, certainlyLacksTool, mayLackTool } from '../../../src/actors/calls/call-order.ts';
import { BalancedRoute, BoundRoute } from '../../../src/actors/calls/routes.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { answers, Harness, settled, silent, toolCall } from '../../helpers/failing-backend.ts';
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

test('is any that was not tried, and then nobody', async () => {
  for (const id of ['a', 'b']) await harness.add(id, answers());
  assert.is(balanced().next(new Set(['a']))?.id, 'b');
  assert.is(balanced().next(new Set(['a', 'b'])), undefined);
  assert.is(balanced().isOnlyFull(new Set(['a', 'b'])), false);
});

test('is the one it is bound to, unless it was tried', async () => {
  for (const id of ['a', 'b']) await harness.add(id, answers());
  const route = boundTo(harness.ref('b'));
  assert.is(route.next(undefined)?.id, 'b');
  assert.is(route.next(new Set(['b'])), undefined);
  assert.is(route.isOnlyFull(new Set(['b'])), false);
});

test('is an instance that drains only for what goes on there', async () => {
  await harness.add('a', answers());
  harness.ref('a').drain();
  await settled();
  assert.is(boundTo(harness.ref('a')).next(undefined), undefined);
  assert.is(boundTo(harness.ref('a'), true).next(undefined)?.id, 'a');
});

test('is nobody while all are full, for which a call may wait', async () => {
  const ref = await harness.add('a', silent);
  for (let place = 0; place < LIMITS.inFlightPerInstance; place += 1) harness.call('write');
  for (const route of [balanced(), boundTo(ref)]) {
    assert.is(route.next(undefined), undefined);
    assert.is(route.isOnlyFull(undefined), true);
  }
});

test('may lack a tool that it has not listed, and lacks it when there is no use in looking again', async () => {
  mock.timers.enable({ apis: ['Date'] });
  const ref = await harness.add('a', answers());
  const wants = (wantedTool?: string) => order({ wantedTool });
  assert.equal(
    ['write', 'other', undefined].map((tool) => mayLackTool(wants(tool), ref)),
    [false, true, false],
  );
  assert.equal(
    ['write', 'other', undefined].map((tool) => certainlyLacksTool(wants(tool), ref)),
    [false, true, false],
  );
  mock.timers.tick(LIMITS.toolListAgeMs);
  assert.is(mayLackTool(wants('other'), ref), true);
  assert.is(certainlyLacksTool(wants('other'), ref), false);
});

test.run();

function balanced(): BalancedRoute {
  return new BalancedRoute(harness.fleet.group('t'), toolCall('write'));
}

function boundTo(ref: InstanceRef, goesOn = false): BoundRoute {
  return new BoundRoute(ref, toolCall('write'), { goesOn });
}

function order(fields: Partial<CallOrder> = {}): CallOrder {
  return {
    group: harness.fleet.group('t'),
    request: toolCall('write'),
    route: balanced(),
    wantedTool: undefined,
    timeoutMs: 1_000,
    ...fields,
  };
}
