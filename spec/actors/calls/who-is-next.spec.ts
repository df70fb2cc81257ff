// Who may take a call, in one moment of a template; how a call goes through them is in the call*.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { CallOrder } from '../../../src/actors/calls/call-order.ts';
import {
  certainlyLacksTool,
  isOnlyFull,
  mayLackTool,
  nextInstance,
} from '../../../src/actors/calls/next-instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { answers, Stage, settled, silent, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('who is next');
let stage = new Stage();

test.before.each(() => {
  stage = new Stage();
});
test.after.each(async () => {
  mock.timers.reset();
  await stage.close();
});

test('is any that was not tried, and then nobody', async () => {
  for (const id of ['a', 'b']) await stage.add(id, answers());
  assert.is(nextInstance(order(), new Set(['a']))?.id, 'b');
  assert.is(nextInstance(order(), new Set(['a', 'b'])), undefined);
  assert.is(isOnlyFull(order(), new Set(['a', 'b'])), false);
});

test('is the pinned one, unless it was tried', async () => {
  for (const id of ['a', 'b']) await stage.add(id, answers());
  const pinned = order({ pinned: stage.ref('b') });
  assert.is(nextInstance(pinned, undefined)?.id, 'b');
  assert.is(nextInstance(pinned, new Set(['b'])), undefined);
  assert.is(isOnlyFull(pinned, new Set(['b'])), false);
});

test('is a pinned one that drains only for what goes on there', async () => {
  await stage.add('a', answers());
  stage.ref('a').drain();
  await settled();
  assert.is(nextInstance(order({ pinned: stage.ref('a') }), undefined), undefined);
  assert.is(nextInstance(order({ pinned: stage.ref('a'), goesOn: true }), undefined)?.id, 'a');
});

test('is nobody while all are full, for which a call may wait', async () => {
  const ref = await stage.add('a', silent);
  for (let place = 0; place < LIMITS.inFlightPerInstance; place += 1) stage.call('write');
  for (const pinned of [undefined, ref]) {
    assert.is(nextInstance(order({ pinned }), undefined), undefined);
    assert.is(isOnlyFull(order({ pinned }), undefined), true);
  }
});

test('may lack a tool that it has not listed, and lacks it when there is no use in looking again', async () => {
  mock.timers.enable({ apis: ['Date'] });
  const ref = await stage.add('a', answers());
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

function order(fields: Partial<CallOrder> = {}): CallOrder {
  return {
    group: stage.fleet.group('t'),
    request: toolCall('write'),
    wantedTool: undefined,
    pinned: undefined,
    goesOn: false,
    upstream: undefined,
    timeoutMs: 1_000,
    slow: undefined,
    ...fields,
  };
}
